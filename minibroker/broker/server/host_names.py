"""IP entities that are named by a host name: the address that the name has.

Between the cluster's configurations and the quotas, for entities of type `ips`. An address is
passed on at once. A name is asked for when its limit is set, as Kafka does, and the limit then
holds for the first address found (IPv4 before IPv6); a name that nobody knows limits nobody.

Source: Kafka IpConfigHandler (InetAddress.getByName).
Differs from Kafka: a name that cannot be resolved is one line in the log; 3.9 throws, and reads no
further notification.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.paths import DEFAULT_ENTITY, desanitize, sanitize
from minibroker.broker.resolver import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.resolver import Resolver

    Config = Mapping[str, str]
    Apply = Callable[[str, str, Config], None]

ENTITY_TYPE: Final = "ips"
logger = logging.getLogger(__name__)


class HostNames:
    """Resolves names of IP entities; belongs to the loop's thread.

    Args:
        apply: is given entity type, entity name (an address, or the default) and config.
    """

    __slots__ = ("_addresses", "_apply", "_configs", "_resolver", "_tasks")

    def __init__(self, apply: Apply, resolver: Resolver) -> None:
        self._apply = apply
        self._resolver = resolver
        self._addresses: dict[str, str] = {}
        """Entity name → address that its limit is set for."""
        self._configs: dict[str, Config] = {}
        """Entity name → what holds for it now."""
        self._tasks: set[asyncio.Task[None]] = set()

    def on_config_changed(self, entity_name: str, config: Config) -> None:
        """Take the values that a node of /config/ips has now."""
        if entity_name == DEFAULT_ENTITY or is_address(desanitize(entity_name)):
            self._apply(ENTITY_TYPE, entity_name, config)
            return
        self._configs[entity_name] = config
        address = self._addresses.pop(entity_name, None)
        if address is not None:
            self._apply(ENTITY_TYPE, address, {})
        if config:
            task = asyncio.get_running_loop().create_task(self._resolve(entity_name, config))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            del self._configs[entity_name]

    async def _resolve(self, entity_name: str, config: Config) -> None:
        name = desanitize(entity_name)
        try:
            address = sanitize((await self._resolver.addresses(name))[0])
        except (OSError, UnicodeError) as error:
            logger.warning(
                "connection_creation_rate of %s limits nobody: the name has no address (%s)",
                name,
                error,
            )
            return
        if self._configs.get(entity_name) is config:  # not changed meanwhile
            self._addresses[entity_name] = address
            self._apply(ENTITY_TYPE, address, config)
