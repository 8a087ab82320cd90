"""The settings with which each client library speaks to a broker of tests.

Pure: `security.Security` has the files. Each function takes a `ClientAccess`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.kafka.java_strings import quoted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.broker.config.listeners import SecurityProtocol


_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": _SCRAM_MODULE,
    "SCRAM-SHA-512": _SCRAM_MODULE,
}
"""Mechanism → the Java class of its login."""


class ClientLogin(NamedTuple):
    """The name and the password of a user, and the mechanism that carries them."""

    mechanism: str
    user: str
    password: str

    def __repr__(self) -> str:
        """Return a text without the password."""
        return f"ClientLogin({self.mechanism}, {self.user})"


class ClientAccess(NamedTuple):
    """An address, and what it takes to get in."""

    bootstrap: str
    protocol: SecurityProtocol
    ca_file: Path
    certificate: Path | None
    """Key and certificate that the client shows, None: none."""
    login: ClientLogin | None = None
    """With SASL."""


def _confluent(access: ClientAccess) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": access.bootstrap}
    if access.login is not None:
        settings["security.protocol"] = str(access.protocol)
        settings["sasl.mechanism"] = access.login.mechanism
        settings["sasl.username"] = access.login.user
        settings["sasl.password"] = access.login.password
    if access.protocol.uses_tls:
        settings["security.protocol"] = str(access.protocol)
        settings["ssl.ca.location"] = str(access.ca_file)
    if access.certificate is not None:
        settings["ssl.certificate.location"] = str(access.certificate)
        settings["ssl.key.location"] = str(access.certificate)
    return settings


def _python(access: ClientAccess) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": access.bootstrap}
    if access.login is not None:
        settings["security_protocol"] = str(access.protocol)
        settings["sasl_mechanism"] = access.login.mechanism
        settings["sasl_plain_username"] = access.login.user
        settings["sasl_plain_password"] = access.login.password
    if access.protocol.uses_tls:
        import ssl  # noqa: PLC0415  only with TLS

        context = ssl.create_default_context(cafile=str(access.ca_file))
        if access.certificate is not None:
            context.load_cert_chain(str(access.certificate))
        settings |= {"security_protocol": str(access.protocol), "ssl_context": context}
    return settings


def _java(access: ClientAccess) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": access.bootstrap}
    if access.login is not None:
        settings["security.protocol"] = str(access.protocol)
        settings["sasl.mechanism"] = access.login.mechanism
        settings["sasl.jaas.config"] = _jaas_line(access.login)
    if access.protocol.uses_tls:
        settings["security.protocol"] = str(access.protocol)
        settings["ssl.truststore.type"] = "PEM"
        settings["ssl.truststore.location"] = str(access.ca_file)
    if access.certificate is not None:
        settings["ssl.keystore.type"] = "PEM"
        settings["ssl.keystore.location"] = str(access.certificate)
    return settings


def _java_properties(access: ClientAccess) -> dict[str, Any]:
    from minibroker.kafka.java_formats.properties import escape  # noqa: PLC0415  seldom asked for

    return {key: escape(value) for key, value in _java(access).items()}


def _jaas_line(login: ClientLogin) -> str:
    user, password = quoted(login.user), quoted(login.password)
    return f"{_MODULES[login.mechanism]} required username={user} password={password};"


def _spark(access: ClientAccess) -> dict[str, Any]:
    return {f"kafka.{key}": value for key, value in _java(access).items()}


CLIENTS: Final[dict[str, Callable[[ClientAccess], dict[str, Any]]]] = {
    "confluent-kafka": _confluent,
    "aiokafka": _python,
    "kafka-python": _python,
    "java": _java,
    "java-properties": _java_properties,
    "spark": _spark,
}
"""Client → the function that returns its settings."""
