"""Private keys as Java's clients read PEM: PKCS8 without a password.

Java 17 takes no key of `PBES2`, which is what OpenSSL and librdkafka's users have, and Kafka takes
no `BEGIN EC PRIVATE KEY`. Read with `cryptography` (`pip install 'minibroker[security]'`).

Source: Kafka DefaultSslEngineFactory (KIP-651); RFC 5958.
"""

from __future__ import annotations

import re
from typing import Final

from minibroker.kafka.errors import ConfigError

_OTHER_FORM: Final = re.compile(r"-----BEGIN [A-Z]+ PRIVATE KEY-----")


def plain_pkcs8(pem: str, password: str | None, source: str) -> str:
    """Return the key in the form that Java reads; as it is if it has that form.

    Args:
        pem: a private key; what stands beside it is left out if the form changes.
        password: of the key; None: it has none.
        source: the setting that names it, for messages.

    Raises:
        ConfigError: the password is wrong or missing, or the package is not installed.
    """
    if not _OTHER_FORM.search(pem):
        return pem
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  an extra
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415  an extra
            Encoding,
            NoEncryption,
            PrivateFormat,
            load_pem_private_key,
        )
    except ImportError:
        raise ConfigError(
            f"{source}: a key with a password, or of another form than PKCS8, needs the package"
            " cryptography: pip install 'minibroker[security]'"
        ) from None
    try:
        key = load_pem_private_key(pem.encode(), None if password is None else password.encode())
    except (TypeError, ValueError, UnsupportedAlgorithm):
        # The library's texts do not tell a wrong password from a damaged key.
        raise ConfigError(
            f"{source}: the key cannot be read with ssl.key.password; check the password and the"
            " file"
        ) from None
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
