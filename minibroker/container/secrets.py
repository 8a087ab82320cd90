"""Files under /etc/kafka/secrets that variables of Kafka's images name.

    KAFKA_SSL_KEYSTORE_FILENAME=broker.p12      ─► ssl.keystore.location
    KAFKA_SSL_KEYSTORE_CREDENTIALS=keystore.txt ─► ssl.keystore.password, the content of the file

Kafka's images do so where an advertised listener's name ends in `SSL`; here a variable acts
wherever it is set. A password file is read without the ends of its lines.

Source: docker/resources/common-scripts/configure in Apache Kafka; configure of cp-kafka.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

SECRETS: Final = "/etc/kafka/secrets"
_LOCATIONS: Final = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "KAFKA_SSL_KEYSTORE_LOCATION",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "KAFKA_SSL_TRUSTSTORE_LOCATION",
}
_PASSWORDS: Final = {
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "KAFKA_SSL_KEYSTORE_PASSWORD",
    "KAFKA_SSL_KEY_CREDENTIALS": "KAFKA_SSL_KEY_PASSWORD",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "KAFKA_SSL_TRUSTSTORE_PASSWORD",
}
_PASSWORD_BYTES_MAX: Final = 4096
PEM_BYTES_MAX: Final = 1 << 20
"""Largest file with certificates: the CAs of a browser are a quarter of it."""


def put_secrets(variables: MutableMapping[str, str], directory: str = SECRETS) -> None:
    """Replace the variables that name files by those of the settings. Raises ConfigError."""
    for name, setting in _LOCATIONS.items():
        if name in variables:
            variables[setting] = str(_file(name, variables.pop(name), directory))
    for name, setting in _PASSWORDS.items():
        if name in variables:
            path = _file(name, variables.pop(name), directory)
            variables[setting] = read_secret(name, str(path))


def _file(variable: str, name: str, directory: str) -> Path:
    """Return the path of a file. Raises ConfigError where it is not there."""
    path = Path(directory, name)
    if not path.is_file():
        raise ConfigError(
            f"{variable}={name}: there is no file {path}; mount the directory of the stores at "
            f"{directory}"
        )
    return path


def read_secret(variable: str, path: str, bytes_max: int = _PASSWORD_BYTES_MAX) -> str:
    """Return the content of the file that a variable names, without the ends of its last line.
    Raises ConfigError.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123  pathlib costs 3 ms
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise ConfigError(f"{variable}: {path} cannot be read: {error.strerror}") from None
    if len(data) > bytes_max:
        raise ConfigError(f"{variable}: {path} has more than {bytes_max} bytes, expected less")
    return data.decode("utf-8", "replace").rstrip("\r\n")
