"""PKCS12 stores, read with the package `cryptography` (`pip install 'minibroker[security]'`).

Source: RFC 7292; cryptography.hazmat.primitives.serialization.pkcs12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.key_material import KeyStore

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


class Pkcs12Store(NamedTuple):
    """The content of a store."""

    key: str | None
    """PEM, not encrypted."""
    own: Certificate | None
    others: list[Certificate]

    def key_store(self, source: str) -> KeyStore:
        """Return the private key with its certificates. Raises ConfigError."""
        if self.key is None or self.own is None:
            raise ConfigError(f"{source}: the store has no private key with a certificate")
        return KeyStore(self.key, None, tuple(map(_pem, self._chain(self.own))), source)

    def trusted(self, source: str) -> tuple[str, ...]:
        """Return the certificates that stand alone, as PEM. Raises ConfigError."""
        if not self.others:
            raise ConfigError(f"{source}: the store has no trusted certificate")
        return tuple(map(_pem, self.others))

    def _chain(self, own: Certificate) -> list[Certificate]:
        """Return the key's certificate and its issuers, each behind the one that it issued."""
        chain = [own]
        remaining_certificates = list(self.others)
        while chain[-1].issuer != chain[-1].subject:
            name = chain[-1].issuer
            issuer = next(
                (candidate for candidate in remaining_certificates if candidate.subject == name),
                None,
            )
            if issuer is None:
                break
            remaining_certificates.remove(issuer)
            chain.append(issuer)
        return chain


def read_pkcs12(data: bytes, password: str | None, source: str) -> Pkcs12Store:
    """Return the content of a store. Raises ConfigError."""
    try:
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415  an extra
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
        from cryptography.hazmat.primitives.serialization.pkcs12 import (  # noqa: PLC0415
            load_pkcs12,
        )
    except ImportError:
        raise ConfigError(
            f"{source}: PKCS12 stores need a package: pip install 'minibroker[security]'; PEM files"
            " and JKS stores need none"
        ) from None
    try:
        store = load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise ConfigError(
            f"{source}: the store's password is missing or wrong, or the file is no store of type"
            " PKCS12 or JKS"
        ) from None
    key = None
    if store.key is not None:
        form = PrivateFormat.PKCS8
        key = store.key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()
    return Pkcs12Store(
        key,
        None if store.cert is None else store.cert.certificate,
        [certificate.certificate for certificate in store.additional_certs],
    )


def _pem(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415  as above
        Encoding,
    )

    return certificate.public_bytes(Encoding.PEM).decode()
