"""Listeners: where the broker waits for clients, and what it tells them to connect to.

`listeners` = `NAME://HOST:PORT,…`; the name's security protocol comes from
`listener.security.protocol.map`. An empty host binds every interface, port 0 takes a free one
(the server replaces it with the real one). Listeners named in `controller.listener.names` are
dropped: such a file was written for a KRaft controller, which this process is not.

Source: Kafka SocketServerConfigs.listenerListToEndPoints, CoreUtils, KafkaConfig.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_FORM: Final = "expected NAME://HOST:PORT, for instance PLAINTEXT://127.0.0.1:9092"


class SecurityProtocol(StrEnum):
    """The way in which a client of a listener is authenticated, and whether bytes are encrypted."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_tls(self) -> bool:
        """Return whether the connection begins with a TLS handshake."""
        return self in _TLS

    @property
    def uses_sasl(self) -> bool:
        """Return whether the client proves its identity with SASL."""
        return self in _SASL


_LOOPBACK: Final = ("localhost", "::1", "0:0:0:0:0:0:0:1")
_TLS: Final = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
_SASL: Final = (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class Listener(NamedTuple):
    """One address under one name; the same class holds bound and advertised addresses."""

    name: str
    host: str
    port: int
    security_protocol: SecurityProtocol

    @property
    def is_local(self) -> bool:
        """Return whether only programs on this machine reach the address. The name of a host but
        `localhost` counts as an address that others reach.
        """
        return self.host in _LOOPBACK or self.host.startswith("127.")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    """Return listener name (upper case) → security protocol for `NAME:PROTOCOL,…`. Raises
    ConfigError.
    """
    key = "listener.security.protocol.map"
    protocols: dict[str, SecurityProtocol] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = item.rpartition(":")
        if not colon or protocol.strip().upper() not in SecurityProtocol.__members__:
            allowed = ", ".join(SecurityProtocol)
            raise ConfigError(
                f"Invalid value {text} for configuration {key}: {item!r} is not NAME:PROTOCOL "
                f"with PROTOCOL one of {allowed}"
            )
        protocols[name.strip().upper()] = SecurityProtocol(protocol.strip().upper())
    return protocols


def parse_listeners(
    key: str,
    text: str,
    protocols: Mapping[str, SecurityProtocol],
    *,
    controller_names: Collection[str] = (),
    distinct_ports: bool,
) -> tuple[Listener, ...]:
    """Return the listeners in the value of `key`, without those of a controller. Raises
    ConfigError.
    """
    listeners = tuple(
        listener
        for item in filter(None, (part.strip() for part in text.split(",")))
        if (listener := _parse_listener(key, text, item, protocols, controller_names)) is not None
    )
    _check_distinct(key, text, listeners, distinct_ports=distinct_ports)
    return listeners


def _parse_listener(
    key: str,
    text: str,
    item: str,
    protocols: Mapping[str, SecurityProtocol],
    controller_names: Collection[str],
) -> Listener | None:
    name, separator, address = item.partition("://")
    host, colon, port_text = address.rpartition(":")
    if not (separator and colon and name and port_text.isdecimal() and int(port_text) <= 65535):
        raise ConfigError(f"Invalid value {text} for configuration {key}: {item!r}: {_FORM}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if any(char not in "-%._:" and not char.isalnum() for char in host):
        raise ConfigError(f"Invalid value {text} for configuration {key}: host {host!r}: {_FORM}")
    name = name.upper()
    if name in controller_names:
        return None
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: no security protocol is defined for "
            f"listener {name}; add {name}:PLAINTEXT to listener.security.protocol.map"
        )
    return Listener(name, host, int(port_text), protocol)


def _check_distinct(
    key: str, text: str, listeners: tuple[Listener, ...], *, distinct_ports: bool
) -> None:
    """Check that names differ, and ports too. Port 0 and one IPv4 beside one IPv6 address may be
    twice.
    """
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: each listener needs a different name"
        )
    by_port: dict[int, list[str]] = {}
    for listener in listeners:
        if distinct_ports and listener.port:
            by_port.setdefault(listener.port, []).append(listener.host)
    for port, hosts in by_port.items():
        families = sorted("6" if ":" in host else "4" for host in hosts if _is_address(host))
        if len(hosts) > 1 and not (len(hosts) == 2 and families == ["4", "6"]):
            raise ConfigError(
                f"Invalid value {text} for configuration {key}: port {port} is used more than "
                "once; that is allowed only for one IPv4 and one IPv6 address"
            )


def _is_address(host: str) -> bool:
    return ":" in host or (host.count(".") == 3 and host.replace(".", "").isdecimal())
