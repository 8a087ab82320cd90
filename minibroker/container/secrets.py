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


def put_secrets(variables: MutableMapping[str, str], directory: str = SECRETS) -> None:
    """Replace the variables that name files by those of the settings. Raises ConfigError."""
    for name, setting in _LOCATIONS.items():
        if name in variables:
            variables[setting] = str(_file(name, variables.pop(name), directory))
    for name, setting in _PASSWORDS.items():
        if name in variables:
            variables[setting] = _password(name, variables.pop(name), directory)


def _file(variable: str, name: str, directory: str) -> Path:
    """Return the path of a file. Raises ConfigError where it is not there."""
    path = Path(directory, name)
    if not path.is_file():
        raise ConfigError(
            f"{variable}={name}: there is no file {path}; mount the directory of the stores at "
            f"{directory}"
        )
    return path


def _password(variable: str, name: str, directory: str) -> str:
    """Return the content of a file with a password. Raises ConfigError."""
    path = _file(variable, name, directory)
    try:
        with path.open("rb") as file:
            data = file.read(_PASSWORD_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{variable}={name}: {path} cannot be read: {error.strerror}") from None
    if len(data) > _PASSWORD_BYTES_MAX:
        raise ConfigError(
            f"{variable}={name}: {path} has more than {_PASSWORD_BYTES_MAX} bytes, expected a "
            "password"
        )
    return data.decode("utf-8", "replace").rstrip("\r\n")
