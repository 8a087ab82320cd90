"""The JAAS line of a mechanism on a listener: from the settings, else from a JAAS file.

    listener.name.NAME.MECHANISM.sasl.jaas.config   a line
    java.security.auth.login.config   a file with NAME.KafkaServer { … }, KafkaServer { … }

The first that is there counts. A section of the file may have a line for each mechanism: the class
of the login module tells them apart. In Kafka the file is named by a property of Java
(`KAFKA_OPTS=-Djava.security.auth.login.config=…`); here it is a setting of this name, too.

Source: Kafka JaasContext.loadServerContext, JaasUtils; com.sun.security.auth.login.ConfigFile.
Differs from Kafka: `${property}` in a file is taken as it stands.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from minibroker.broker.config.settings import LISTENER_PREFIX
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.jaas import LoginModule, parse_file, parse_line

if TYPE_CHECKING:
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.config.settings import ConfigValues

FILE_KEY: Final = "java.security.auth.login.config"
_SECTION: Final = "KafkaServer"
_KAFKA: Final = "org.apache.kafka.common.security"
_CLASSES: Final = {
    "PLAIN": f"{_KAFKA}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_KAFKA}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_KAFKA}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
"""Mechanism → its login module."""
_EXAMPLES: Final = {
    "GSSAPI": (
        ' required useKeyTab=true storeKey=true keyTab="/etc/kafka.keytab"'
        ' principal="kafka/host@REALM";'
    ),
    "PLAIN": ' required user_alice="secret";',
}
FILE_BYTES_MAX: Final = 1 << 20


def line_of(config: ConfigValues, listener: Listener, mechanism: str) -> LoginModule:
    """Return the line of a listener's mechanism. Raises ConfigError where it has none."""
    line = find_line(config, listener, mechanism)
    if line is None:
        file = config.text(FILE_KEY)
        example = _CLASSES[mechanism] + _EXAMPLES.get(
            mechanism, ' required username="broker" password="secret";'
        )
        raise ConfigError(
            f"listener {listener.name} enables {mechanism} and has no logins for it: set"
            f" {_key(listener, mechanism)}, for instance to {example}"
            + ("" if file is None else f" or write the line to section {_SECTION} of {file}")
        )
    return line


def find_line(config: ConfigValues, listener: Listener, mechanism: str) -> LoginModule | None:
    """Return the line of a listener's mechanism, None where it has none. Raises ConfigError."""
    key = _key(listener, mechanism)
    text = config.originals.get(key)
    if text is not None:
        try:
            return parse_line(text)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
    contexts = _contexts(config.text(FILE_KEY))
    lines = contexts.get(f"{listener.name.lower()}.{_SECTION}", contexts.get(_SECTION, []))
    return next((line for line in lines if line.name == _CLASSES[mechanism]), None)


def _contexts(location: str | None) -> dict[str, list[LoginModule]]:
    """Return the sections of a file. Raises ConfigError."""
    if not location:
        return {}
    # Java takes a URL, and a second = before the name.
    path = unquote(location.lstrip("=").removeprefix("file:"))
    try:
        with Path(path).open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise ConfigError(f"it is larger than {FILE_BYTES_MAX} bytes")
        return parse_file(data.decode())
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        raise ConfigError(f"{FILE_KEY}={location}: {error}") from None


def _key(listener: Listener, mechanism: str) -> str:
    return f"{LISTENER_PREFIX}{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config"
