"""Variables of bitnami/kafka, as those of apache/kafka, which the rest of this package reads.

    KAFKA_CFG_NUM_PARTITIONS=3                   ─► KAFKA_NUM_PARTITIONS=3
    KAFKA_CLIENT_USERS=a  KAFKA_CLIENT_PASSWORDS ─► minibroker.users, and JAAS lines of brokers
    KAFKA_CERTIFICATE_PASSWORD, …/config/certs   ─► ssl.keystore.location, ssl.keystore.password
    KAFKA_CLIENT_PASSWORDS_FILE=/run/secrets/p   ─► KAFKA_CLIENT_PASSWORDS, the content of the file

A setting that decides who gets in acts, or ends the start with a sentence. Names of bitnami's files
and their defaults are kept; its image is no longer published.

Source: kafka-env.sh and libkafka.sh of bitnami/containers (2.x to 4.0).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.config.secured import MECHANISMS, SCRAM_CREDENTIALS, USERS, users_text
from minibroker.broker.config.sources import from_environment
from minibroker.container.scram_users import parse_specification
from minibroker.container.secrets import PEM_BYTES_MAX, read_secret
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

CONFIG_DIRS: Final = (
    "/bitnami/kafka/config",
    "/opt/bitnami/kafka/config",
    "/opt/bitnami/kafka/conf",
)
"""Directories at which users mount their own files, in the order in which they are searched."""
PREFIX: Final = "KAFKA_CFG_"

_MAY_BE_IN_A_FILE: Final = (
    "KAFKA_CERTIFICATE_PASSWORD",
    "KAFKA_CLIENT_PASSWORDS",
    "KAFKA_CLIENT_USERS",
    "KAFKA_CLUSTER_ID",
    "KAFKA_INTER_BROKER_PASSWORD",
    "KAFKA_INTER_BROKER_USER",
    "KAFKA_KRAFT_CLUSTER_ID",
    "KAFKA_OPTS",
    "KAFKA_ZOOKEEPER_PROTOCOL",
)
_CLUSTER_IDS: Final = ("KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")
_OLD_NAMES: Final = {
    "KAFKA_BROKER_PASSWORD": "KAFKA_CLIENT_PASSWORDS",
    "KAFKA_BROKER_USER": "KAFKA_CLIENT_USERS",
    "KAFKA_CFG_TLS_CLIENT_AUTH": "KAFKA_TLS_CLIENT_AUTH",
    "KAFKA_CFG_TLS_TYPE": "KAFKA_TLS_TYPE",
    "KAFKA_LOGS_DIRS": "KAFKA_LOG_DIRS",
    "KAFKA_MAX_MESSAGE_BYTES": "KAFKA_MESSAGE_MAX_BYTES",
    "KAFKA_SEGMENT_BYTES": "KAFKA_LOG_SEGMENT_BYTES",
    "KAFKA_ZOOKEEPER_CONNECT_TIMEOUT_MS": "KAFKA_ZOOKEEPER_CONNECTION_TIMEOUT_MS",
}
_OWN: Final = re.compile(
    "ALLOW_PLAINTEXT_LISTENER|BITNAMI_DEBUG|KAFKA_(CLUSTER_ID|CERTIFICATE_PASSWORD"
    "|CLIENT_(LISTENER|LISTENER_NAME|PASSWORDS|SASL_MECHANISM|USERS)|CONTROLLER_(PASSWORD|USER)"
    "|ENABLE_KRAFT|EXTRA_FLAGS|INITIAL_CONTROLLERS|INTER_BROKER_(PASSWORD|USER)|KRAFT_CLUSTER_ID"
    "|MOUNTED_CONF_DIR|PORT_NUMBER|SKIP_KRAFT_STORAGE_INIT|TLS_.*"
    "|ZOOKEEPER_(PASSWORD|PROTOCOL|TLS_.*|USER))"
)
"""Variables of its start scripts, which are no settings of the broker."""
_YES: Final = ("1", "true", "yes")
_DEFAULT_USER: Final = "user"
_DEFAULT_PASSWORD: Final = "bitnami"
_SEPARATORS: Final = re.compile("[,; ]+")
_PEM_FILES: Final = {
    "KAFKA_SSL_KEYSTORE_CERTIFICATE_CHAIN": "kafka.keystore.pem",
    "KAFKA_SSL_KEYSTORE_KEY": "kafka.keystore.key",
}
_JAAS: Final = "KAFKA_LISTENER_NAME_{}_{}_SASL_JAAS_CONFIG"
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.{0}.{1}LoginModule required"


class _Listener(NamedTuple):
    name: str
    protocol: str


def put_bitnami(
    variables: MutableMapping[str, str], config_dirs: tuple[str, ...] = CONFIG_DIRS
) -> list[str]:
    """Replace bitnami's variables by those of apache/kafka; return sentences for the log.

    `config_dirs`: where users mount stores and JAAS files. Raises ConfigError.
    """
    _read_files(variables)
    for old, name in _OLD_NAMES.items():
        if old in variables:
            variables.setdefault(name, variables.pop(old))
    _refuse_what_is_not_served(variables)
    own = {name: variables.pop(name) for name in list(variables) if _OWN.fullmatch(name)}
    notes = _put_settings(variables)
    for name in _CLUSTER_IDS:
        if name in own:
            variables.setdefault("CLUSTER_ID", own[name])
    if _is_yes(own.get("BITNAMI_DEBUG", "")):
        variables.setdefault("MINIBROKER_LOG_LEVEL", "debug")
    _put_overrides(variables, own.get("KAFKA_EXTRA_FLAGS", ""))
    listeners = list(_listeners(from_environment(variables)))
    if any(listener.protocol.endswith("SSL") for listener in listeners):
        _put_stores(variables, own, listeners, config_dirs)
    if any(listener.protocol.startswith("SASL") for listener in listeners):
        notes += _put_logins(variables, own, listeners, config_dirs)
    elif _is_no(own) and not any(listener.protocol == "SSL" for listener in listeners):
        raise ConfigError(
            f"ALLOW_PLAINTEXT_LISTENER={own['ALLOW_PLAINTEXT_LISTENER']}, and every listener is "
            "PLAINTEXT: remove the variable, or give a listener with SASL or SSL"
        )
    return notes


def _read_files(variables: MutableMapping[str, str]) -> None:
    for name in _MAY_BE_IN_A_FILE:
        path = variables.pop(f"{name}_FILE", "")
        if path:
            variables[name] = read_secret(f"{name}_FILE", path)


def _refuse_what_is_not_served(variables: Mapping[str, str]) -> None:
    """Raise ConfigError for a variable of security that cannot act."""
    protocol = variables.get("KAFKA_ZOOKEEPER_PROTOCOL", "PLAINTEXT").upper()
    if protocol != "PLAINTEXT" and "KAFKA_CFG_PROCESS_ROLES" not in variables:
        raise ConfigError(
            f"KAFKA_ZOOKEEPER_PROTOCOL={protocol}: minibroker does not log in at ZooKeeper; use "
            "PLAINTEXT, or leave out ZooKeeper: without KAFKA_CFG_ZOOKEEPER_CONNECT minibroker "
            "keeps the metadata itself"
        )
    if "KAFKA_CLIENT_SASL_MECHANISMS" in variables:
        raise ConfigError(
            f"KAFKA_CLIENT_SASL_MECHANISMS={variables['KAFKA_CLIENT_SASL_MECHANISMS']}: each user "
            "may log in by every enabled mechanism; remove the variable, or give the mechanisms of "
            "all users in KAFKA_CFG_SASL_ENABLED_MECHANISMS"
        )


def _put_settings(variables: MutableMapping[str, str]) -> list[str]:
    """Put `KAFKA_X` for each `KAFKA_CFG_X`; return a sentence for each that differs from it."""
    notes = []
    for variable in [name for name in variables if name.startswith(PREFIX)]:
        value = variables.pop(variable)
        # A listener's name keeps its line: listener.name.sasl_ssl.…
        name = re.sub("SASL_(SSL|PLAINTEXT)", r"SASL__\1", f"KAFKA_{variable[len(PREFIX) :]}")
        if variables.setdefault(name, value) != value:
            notes.append(f"{variable} has no effect, {name} is set, too, and stronger")
    return notes


def _put_overrides(variables: MutableMapping[str, str], flags: str) -> None:
    """Put the pairs of `--override KEY=VALUE …`. Raises ConfigError."""
    words = iter(flags.split())
    for word in words:
        pair = next(words, "")
        key, equals, value = pair.partition("=")
        if word != "--override" or not equals:
            raise ConfigError(f"KAFKA_EXTRA_FLAGS={flags}: expected --override KEY=VALUE …")
        variables[f"KAFKA_{key.upper().replace('_', '__').replace('.', '_')}"] = value


def _listeners(settings: Mapping[str, str]) -> Iterator[_Listener]:
    """Yield the listeners for clients and brokers, as far as they can be read."""
    text = settings.get("listeners") or settings.get("advertised.listeners", "PLAINTEXT://:9092")
    pairs = settings.get("listener.security.protocol.map", "").split(",")
    protocols = {name.strip().upper(): protocol for name, _, protocol in map(_halves, pairs)}
    controllers = settings.get("controller.listener.names", "").upper().split(",")
    for item in text.split(","):
        name = item.partition("://")[0].strip().upper()
        if name not in controllers:
            yield _Listener(name, protocols.get(name, name).strip().upper())


def _halves(pair: str) -> tuple[str, str, str]:
    return pair.partition(":")


def _put_stores(
    variables: MutableMapping[str, str],
    own: Mapping[str, str],
    listeners: list[_Listener],
    config_dirs: tuple[str, ...],
) -> None:
    """Put the key and the trusted certificates, which users mount. Raises ConfigError."""
    kind = own.get("KAFKA_TLS_TYPE", "JKS").upper()
    if kind not in ("JKS", "PEM"):
        raise ConfigError(f"KAFKA_TLS_TYPE={kind}: expected JKS or PEM")
    for listener in listeners:
        auth = own.get(f"KAFKA_TLS_{listener.name}_CLIENT_AUTH")
        if auth is not None:
            variables.setdefault(f"KAFKA_LISTENER_NAME_{_part(listener)}_SSL_CLIENT_AUTH", auth)
    variables.setdefault("KAFKA_SSL_CLIENT_AUTH", own.get("KAFKA_TLS_CLIENT_AUTH", "required"))
    if any(name.startswith("KAFKA_SSL_KEYSTORE_") for name in variables):
        return
    trusted = own.get("KAFKA_TLS_TRUSTSTORE_FILE", "")
    password = own.get("KAFKA_CERTIFICATE_PASSWORD")
    if password is not None:
        variables.setdefault("KAFKA_SSL_KEY_PASSWORD", password)
    if kind == "PEM":
        files = {**_PEM_FILES, "KAFKA_SSL_TRUSTSTORE_CERTIFICATES": "kafka.truststore.pem"}
        for setting, name in files.items():
            is_trusted = name == "kafka.truststore.pem" and bool(trusted)
            path = Path(trusted) if is_trusted else _certificate(name, config_dirs)
            variables[setting] = read_secret("KAFKA_TLS_TYPE=PEM", str(path), PEM_BYTES_MAX)
        variables["KAFKA_SSL_KEYSTORE_TYPE"] = variables["KAFKA_SSL_TRUSTSTORE_TYPE"] = "PEM"
        return
    variables["KAFKA_SSL_KEYSTORE_LOCATION"] = str(_certificate("kafka.keystore.jks", config_dirs))
    variables["KAFKA_SSL_TRUSTSTORE_LOCATION"] = trusted or str(
        _certificate("kafka.truststore.jks", config_dirs)
    )
    if password is not None:
        variables["KAFKA_SSL_KEYSTORE_PASSWORD"] = password
        variables["KAFKA_SSL_TRUSTSTORE_PASSWORD"] = password


def _certificate(name: str, config_dirs: tuple[str, ...]) -> Path:
    """Return the path of a store that the user has mounted. Raises ConfigError."""
    places = [Path(directory, "certs", name) for directory in config_dirs]
    for place in places:
        if place.is_file():
            return place
    raise ConfigError(
        f"a listener has SSL, and there is no file {name}: mount it at {places[0].parent}, or give "
        "KAFKA_CFG_SSL_KEYSTORE_LOCATION"
    )


def _put_logins(
    variables: MutableMapping[str, str],
    own: Mapping[str, str],
    listeners: list[_Listener],
    config_dirs: tuple[str, ...],
) -> list[str]:
    """Put the mechanisms, the users and the login of brokers; return sentences for the log. Raises
    ConfigError.

    A JAAS file of the user has the users, if there is one.
    """
    mechanisms = variables.setdefault("KAFKA_SASL_ENABLED_MECHANISMS", ",".join(MECHANISMS))
    file = _jaas_file(config_dirs)
    options = variables.get("KAFKA_OPTS", "")
    if "java.security.auth.login.config" in options:
        return []
    if file is not None:
        variables["KAFKA_OPTS"] = f"{options} -Djava.security.auth.login.config={file}".strip()
        return []
    users = _users(own)
    user = own.get("KAFKA_INTER_BROKER_USER", _DEFAULT_USER)
    password = own.get("KAFKA_INTER_BROKER_PASSWORD", _DEFAULT_PASSWORD)
    variables[f"KAFKA_{USERS.upper().replace('.', '_')}"] = users_text(users)
    between = variables.get("KAFKA_INTER_BROKER_LISTENER_NAME", "INTERNAL").upper()
    for listener in listeners:
        if listener.name == between and listener.protocol.startswith("SASL"):
            plain = users_text({"username": user, "password": password})
            passwords = {f"user_{name}": word for name, word in {**users, user: password}.items()}
            users_words = users_text(passwords)
            lines = {
                "PLAIN": f"{_LOGIN_MODULE.format('plain', 'Plain')} {plain} {users_words};",
                "SCRAM": f"{_LOGIN_MODULE.format('scram', 'Scram')} {plain};",
            }
            for mechanism in filter(None, mechanisms.split(",")):
                name = _JAAS.format(_part(listener), mechanism.strip())
                variables.setdefault(name, lines[mechanism.strip().partition("-")[0]])
    mechanism = variables.get("KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL", "")
    if mechanism.startswith("SCRAM") and user not in users:
        credential = parse_specification(f'{mechanism}=[password="{password}"]', user)
        variables[f"KAFKA_{SCRAM_CREDENTIALS.upper().replace('.', '_')}"] = users_text(
            {f"{mechanism}:{user}": credential.stored}
        )
    if "KAFKA_CLIENT_PASSWORDS" in own:
        return []
    return [
        f"KAFKA_CLIENT_PASSWORDS is not set: {', '.join(users)} may log in with the password "
        f"{_DEFAULT_PASSWORD!r}, as in bitnami's image"
    ]


def _users(own: Mapping[str, str]) -> dict[str, str]:
    """Return user → password. Raises ConfigError."""
    names = _words(own.get("KAFKA_CLIENT_USERS", _DEFAULT_USER))
    passwords = _words(own.get("KAFKA_CLIENT_PASSWORDS", _DEFAULT_PASSWORD))
    if len(names) != len(passwords):
        raise ConfigError(
            f"KAFKA_CLIENT_USERS has {len(names)} names and KAFKA_CLIENT_PASSWORDS has "
            f"{len(passwords)} passwords: expected a password for each user"
        )
    return dict(zip(names, passwords, strict=True))


def _jaas_file(config_dirs: tuple[str, ...]) -> Path | None:
    places = (Path(directory, "kafka_jaas.conf") for directory in config_dirs)
    return next((place for place in places if place.is_file()), None)


def _part(listener: _Listener) -> str:
    """Return the listener's name as a part of a variable's name."""
    return listener.name.replace("_", "__").replace("-", "___")


def _words(text: str) -> list[str]:
    return [word for word in _SEPARATORS.split(text) if word]


def _is_yes(text: str) -> bool:
    return text.lower() in _YES


def _is_no(own: Mapping[str, str]) -> bool:
    """Return whether a PLAINTEXT listener is expressly not allowed."""
    text = own.get("ALLOW_PLAINTEXT_LISTENER")
    return text is not None and not _is_yes(text)
