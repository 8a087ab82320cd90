"""Configs of topics, brokers, users, clients and IPs: one node each under /config.

An edit starts from what the tree has, never from the image. It is written with the version that was
read (again from the start when another process was faster), and announced by a sequence node under
/config/changes when others listen, both at once: others read nothing that is not announced.

Source: Kafka's AdminZkClient (changeEntityConfig, tryCleanQuotaNodes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.announcements import announcement_of
from minibroker.broker.cluster.codecs import decode_config, encode_config, encode_config_change
from minibroker.broker.cluster.tree import (
    BadVersion,
    Create,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
    ensure_node,
    parent_of,
)
from minibroker.broker.slices import TimeSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from minibroker.broker.cluster.context import ClusterContext

    Edit = Callable[[dict[str, str]], dict[str, str]]
    """Returns the whole config that an entity shall have, from the one that the tree has.

    It is called again when another process wrote meanwhile. An exception of it ends the edit, and
    nothing is written."""

_CLEANED_TYPES: Final = frozenset({"clients", "users", "ips", *paths.UNANNOUNCED_CONFIG_TYPES})
"""Types whose empty nodes are removed; an empty topic or broker config stays."""


class Configs:
    """Reads and writes config nodes and keeps the image's `configs`."""

    def __init__(self, context: ClusterContext) -> None:
        self._context = context

    async def edit(
        self, entity_type: str, entity_name: str, edit: Edit, *, validate_only: bool = False
    ) -> dict[str, str]:
        """Give an entity the config that `edit` returns; return it.

        Nothing is written with `validate_only`, nor where nothing changes. Raises what `edit`
        raises.
        """
        path = paths.config(entity_type, entity_name)
        announcement: tuple[Create, ...] = ()
        if entity_type in paths.CONFIG_TYPES:
            change = encode_config_change(entity_type, entity_name)
            announcement = announcement_of(self._context.tree, paths.CONFIG_CHANGE_PREFIX, change)
        async with self._context.lock:
            while True:
                (node,) = await self._context.tree.get_many((path,))
                old = decode_config(path, node[0]) if node else {}
                config = edit(dict(old))
                if validate_only:
                    return config
                if config == old:
                    self._context.updater.apply_config(entity_type, entity_name, config)
                    return config
                version = node[1].version if node else None
                if await self._write(path, config, version, announcement):
                    break
            self._context.updater.apply_config(entity_type, entity_name, config)
            if not config and entity_type in _CLEANED_TYPES:
                await self._clean(path)
            return config

    async def _write(
        self,
        path: str,
        config: dict[str, str],
        version: int | None,
        announcement: tuple[Create, ...],
    ) -> bool:
        """Write and announce the node if it still has this version (None: if there is none)."""
        tree, data = self._context.tree, encode_config(config)
        if version is None:
            await ensure_node(tree, parent_of(path))
        write = Create(path, data) if version is None else Set(path, data, version)
        try:
            await tree.multi((write, *announcement))
        except (BadVersion, NodeExists):
            return False
        except NoNode as error:
            if error.path == paths.CONFIG_CHANGES:
                raise
            return False
        return True

    async def _clean(self, path: str) -> None:
        """Remove an empty quota node, and the empty nodes above it below the entity type."""
        while path.count("/") > 2:  # /config/<type> itself stays
            try:
                data, stat = await self._context.tree.get(path)
                if decode_config(path, data):
                    return
                await self._context.tree.delete(path, stat.version)
            except (BadVersion, NoNode, NotEmpty):
                return
            path = parent_of(path)

    async def stored_config(self, entity_type: str, entity_name: str) -> dict[str, str]:
        """Return one entity's config as the tree has it."""
        path = paths.config(entity_type, entity_name)
        (node,) = await self._context.tree.get_many((path,))
        return decode_config(path, node[0]) if node else {}

    async def refresh(self, entity_type: str, entity_names: Sequence[str]) -> None:
        """Read the configs of these entities again. Call it under the cluster's lock."""
        config_paths = [paths.config(entity_type, name) for name in entity_names]
        nodes = await self._context.tree.get_many(config_paths)
        turn = TimeSlice()
        for name, path, node in zip(entity_names, config_paths, nodes, strict=True):
            config = decode_config(path, node[0]) if node else {}
            self._context.updater.apply_config(entity_type, name, config)
            if turn.is_over:
                await turn.pause()

    async def load(self) -> None:
        """Read every config into the image, but those of topics: they come with their topics
        (`follow`). Call it under the cluster's lock.
        """
        for entity_type in (*paths.CONFIG_TYPES, *paths.UNANNOUNCED_CONFIG_TYPES):
            if entity_type == "topics":
                continue
            names = await self._entities(entity_type)
            old_configs = self._context.updater.image.configs.get(entity_type, {})
            names += [name for name in old_configs if name not in names]  # deleted meanwhile
            await self.refresh(entity_type, names)

    async def _entities(self, entity_type: str) -> list[str]:
        try:
            names = await self._context.tree.children(f"{paths.CONFIG}/{entity_type}")
        except NoNode:
            return []  # a type whose node nobody needed yet
        if entity_type != "users":
            return names
        pairs = []
        for user in names:
            try:
                clients = await self._context.tree.children(f"{paths.CONFIG}/users/{user}/clients")
            except NoNode:
                continue
            pairs += [f"{user}/clients/{client}" for client in clients]
        return names + pairs


def with_changes(config: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the config with the keys of `changes` set; None takes a key away."""
    new_config = dict(config)
    for key, value in changes.items():
        if value is None:
            new_config.pop(key, None)
        else:
            new_config[key] = value
    return new_config
