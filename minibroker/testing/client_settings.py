"""The settings with which each client library speaks to a broker of tests.

Pure: `security.Security` has the files. Each function takes a `ClientAccess`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.config.listeners import SecurityProtocol


class ClientAccess(NamedTuple):
    """An address, and what it takes to get in."""

    bootstrap: str
    protocol: SecurityProtocol
    ca_file: Path
    certificate: Path | None
    """Key and certificate that the client shows, None: none."""


def _confluent(access: ClientAccess) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": access.bootstrap}
    if access.protocol.uses_tls:
        settings["security.protocol"] = str(access.protocol)
        settings["ssl.ca.location"] = str(access.ca_file)
    if access.certificate is not None:
        settings["ssl.certificate.location"] = str(access.certificate)
        settings["ssl.key.location"] = str(access.certificate)
    return settings


def _python(access: ClientAccess) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": access.bootstrap}
    if access.protocol.uses_tls:
        import ssl  # noqa: PLC0415  only with TLS

        context = ssl.create_default_context(cafile=str(access.ca_file))
        if access.certificate is not None:
            context.load_cert_chain(str(access.certificate))
        settings |= {"security_protocol": str(access.protocol), "ssl_context": context}
    return settings


def _java(access: ClientAccess) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": access.bootstrap}
    if access.protocol.uses_tls:
        settings["security.protocol"] = str(access.protocol)
        settings["ssl.truststore.type"] = "PEM"
        settings["ssl.truststore.location"] = str(access.ca_file)
    if access.certificate is not None:
        settings["ssl.keystore.type"] = "PEM"
        settings["ssl.keystore.location"] = str(access.certificate)
    return settings


def _spark(access: ClientAccess) -> dict[str, Any]:
    return {f"kafka.{key}": value for key, value in _java(access).items()}


CLIENTS: Final[dict[str, Callable[[ClientAccess], dict[str, Any]]]] = {
    "confluent-kafka": _confluent,
    "aiokafka": _python,
    "kafka-python": _python,
    "java": _java,
    "spark": _spark,
}
"""Client → the function that returns its settings."""
