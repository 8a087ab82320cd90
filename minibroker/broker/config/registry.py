"""Options of the schema registry: address, users, certificate. Loaded only for `serve --registry`.

flags ─► registry_options ─► process ─► registry.service
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.config.control import LOOPBACK
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


class RegistryOptions(NamedTuple):
    """The schema registry of one broker."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: a free port."""
    users: Mapping[str, str] = {}
    """Name → password of those who may use it, by HTTP basic authentication; empty: everybody."""
    tls: str | None = None
    """A listener with TLS whose certificate is used, or a PEM file; None: plain HTTP."""

    @property
    def address(self) -> str:
        """Return HOST:PORT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Return the URL for clients."""
        return f"{'http' if self.tls is None else 'https'}://{self.address}"

    @property
    def is_local(self) -> bool:
        """Return whether only programs on this machine reach it."""
        return self.host in LOOPBACK


def registry_options(
    address: tuple[str, int], users: Mapping[str, str], tls: str | None, *, is_secured: bool
) -> RegistryOptions:
    """Return the options. `is_secured`: the broker asks its clients who they are.

    Raises ConfigError where other machines could change the schemas of such a broker without saying
    who they are.
    """
    options = RegistryOptions(*address, users, tls)
    if is_secured and not users and not options.is_local:
        raise ConfigError(
            f"--registry {options.address} can be reached from other machines, and this broker asks"
            " its clients who they are: give the registry users with --registry-user @FILE"
        )
    return options
