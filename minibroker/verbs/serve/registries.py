"""`serve --registry`: a schema registry beside each broker of the process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from minibroker.broker.app import Broker
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.config.registry import RegistryOptions
    from minibroker.registry.service import RegistryService


async def start_registries(
    members: Sequence[Any], options: RegistryOptions
) -> list[RegistryService]:
    """Start a registry for each of the brokers, which serve; the ports follow that of the first.

    Raises MinibrokerError; then none is left running.
    """
    from minibroker.registry.service import RegistryService  # noqa: PLC0415  as above

    registries: list[RegistryService] = []
    try:
        for number, member in enumerate(members):
            port = options.port + number if options.port else 0
            if port > 65535:
                raise ConfigError(
                    f"--registry {options.address}: the ports of the other brokers follow this"
                    f" one, and {port} is none: give a lower port, or 0 for free ones"
                )
            broker = partial(_running, member)
            has_peers = len(members) > 1 or _app(member).config.zookeeper_connect is not None
            registry = RegistryService(broker, options._replace(port=port), has_peers=has_peers)
            await registry.start()
            registries.append(registry)
            if not isinstance(member, Broker):
                member.show_registry(registry.api.begin_within)
    except BaseException:
        await stop_registries(registries)
        raise
    return registries


async def stop_registries(registries: Sequence[RegistryService]) -> None:
    """Stop the registries; their brokers still run."""
    for registry in registries:
        await registry.stop()


def _app(member: Any) -> Broker:
    app: Broker = member if isinstance(member, Broker) else member.app
    return app


def _running(member: Any) -> Broker | None:
    """Return the broker, None while a fault has it killed or paused."""
    if isinstance(member, Broker):
        return member
    running: Broker | None = member.running_app
    return running
