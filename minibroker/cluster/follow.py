"""Keeps the image true: reads the whole tree at start, then what watches say has changed.

Watches only say "look again at X". X goes into a set, one task takes things out and reads them
under the cluster's lock. When the tree is out of reach the thing goes back into the set; when the
session is there again everything is read anew, and what the session had held (the registration of
this broker, perhaps the controller's node) is made again first.

In the embedded home nobody else writes: nothing is watched and the task does not exist.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.cluster import paths
from minibroker.cluster.codecs import (
    decode_broker,
    decode_config_change,
    decode_state,
    decode_topic,
)
from minibroker.cluster.tree import BadVersion, NoNode, SessionEvent, TreeError
from minibroker.errors import CoordinationError, KafkaError
from minibroker.ids import ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.cluster.configs import Configs
    from minibroker.cluster.context import ClusterContext
    from minibroker.cluster.controller import Controller
    from minibroker.cluster.election import Election
    from minibroker.cluster.features import Features
    from minibroker.cluster.registration import Registration
    from minibroker.cluster.tree import Cancel
    from minibroker.ids import TopicId

CHANGE_EXPIRATION_MS: Final = 15 * 60 * 1000
"""Age at which a config change notification is removed by whoever sees it (as Kafka does)."""
RETRY_DELAY_S: Final = 0.2
"""Pause after a failed step, unless the session changes before."""

_SESSION: Final = "session"
_BROKERS: Final = "brokers"
_CONTROLLER: Final = "controller"
_TOPICS: Final = "topics"
_CONFIG_CHANGES: Final = "config changes"
_DELETIONS: Final = "deletions"
_FEATURES: Final = "features"
_TOPIC_PREFIX: Final = "topic "
_ORDER: Final = (
    _SESSION,
    _BROKERS,
    _CONTROLLER,
    _TOPICS,
    _CONFIG_CHANGES,
    _DELETIONS,
    _FEATURES,
)


def _rank(thing: str) -> int:
    return _ORDER.index(thing) if thing in _ORDER else len(_ORDER)


class TreeFollower:
    """Reads the tree into the image."""

    def __init__(
        self,
        context: ClusterContext,
        election: Election,
        controller: Controller,
        configs: Configs,
        registration: Registration,
        *,
        features: Features,
    ) -> None:
        self._context = context
        self._features = features
        self._election = election
        self._controller = controller
        self._configs = configs
        self._registration = registration
        self._dirty: set[str] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._watches: dict[str, list[Cancel]] = {}
        self._broker_watches: dict[int, Cancel] = {}
        self._last_change = ""
        self._settle_all = False

    # Life

    async def load(self) -> None:
        """Read everything once. Call it under the cluster's lock."""
        await self._read_brokers()
        if self._context.tree.is_shared:
            changes = await self._context.tree.children(paths.CONFIG_CHANGES)
            self._last_change = changes[-1] if changes else ""
        await self._configs.load()
        await self._read_topics()

    async def start(self) -> None:
        """Watch, and follow until `close`."""
        tree = self._context.tree
        if not tree.is_shared:
            return
        tree.on_session(self._on_session)
        await tree.watch(paths.CONTROLLER, lambda: self._mark(_CONTROLLER))
        await tree.watch(paths.FEATURE, lambda: self._mark(_FEATURES))
        await tree.watch_children(paths.BROKER_IDS, lambda: self._mark(_BROKERS))
        await tree.watch_children(paths.TOPICS, lambda: self._mark(_TOPICS))
        await tree.watch_children(paths.CONFIG_CHANGES, lambda: self._mark(_CONFIG_CHANGES))
        await tree.watch_children(paths.ADMIN_DELETE_TOPICS, lambda: self._mark(_DELETIONS))
        self._dirty.update(_ORDER[1:])  # what changed between `load` and the watches
        self._wake.set()
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _mark(self, thing: str) -> None:
        self._dirty.add(thing)
        self._wake.set()

    def _on_session(self, event: SessionEvent) -> None:
        self._context.log.warning("metadata tree session: %s", event.value)
        if event is SessionEvent.EXPIRED:
            self._election.lose()
        elif event in (SessionEvent.RENEWED, SessionEvent.RESUMED):
            self._dirty.update(_ORDER)
            self._wake.set()

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._dirty:
                thing = min(self._dirty, key=_rank)
                self._dirty.discard(thing)
                try:
                    async with self._context.lock:
                        await self._refresh(thing)
                except (CoordinationError, KafkaError, TreeError) as error:
                    self._context.log.info("could not refresh %s: %s", thing, error)
                    self._dirty.add(thing)
                    await self._pause()
                except Exception:  # a listener's fault: the rest of the cluster is still followed
                    self._context.log.exception("could not apply %s", thing)

    async def _pause(self) -> None:
        """Wait for news of the session, or a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_DELAY_S):
                await self._wake.wait()
        self._wake.clear()

    async def _refresh(self, thing: str) -> None:
        if thing == _SESSION:
            await self._renew_session()
        elif thing == _BROKERS:
            if await self._read_brokers():
                self._settle_all = True
                self._dirty.add(_CONTROLLER)  # who may stand depends on who is there
        elif thing == _CONTROLLER:
            if await self._election.run():
                self._settle_all = True
                self._dirty.add(_DELETIONS)
        elif thing == _TOPICS:
            await self._read_topics()
        elif thing == _CONFIG_CHANGES:
            await self._read_config_changes()
        elif thing == _FEATURES:
            await self._features.load()
        elif thing == _DELETIONS:
            if self._election.is_controller:
                await self._controller.finish_deletions()
        else:
            await self._read_topic(thing.removeprefix(_TOPIC_PREFIX))
        if self._settle_all:
            await self._settle(list(self._context.updater.image.topics))
        self._settle_all = False

    async def _settle(self, names: Iterable[str]) -> None:
        """The controller's part: give the partitions of these topics the states they must have."""
        if not self._election.is_controller:
            return
        for name in names:
            try:
                await self._controller.settle([name])
            except BadVersion:  # somebody wrote a state between our read and our write
                self._dirty.add(f"{_TOPIC_PREFIX}{name}")

    async def _renew_session(self) -> None:
        """Make again what an ended session held, then read everything."""
        stat = await self._context.tree.exists(paths.broker(self._context.broker_id))
        if stat is None or stat.ephemeral_owner != self._context.tree.session_id:
            await self._registration.register(RETRY_DELAY_S * 10)
        await self._configs.load()
        names = self._context.updater.image.topics
        self._dirty.update(f"{_TOPIC_PREFIX}{name}" for name in names)

    # Brokers and configs

    async def _read_brokers(self) -> bool:
        tree = self._context.tree
        names = [name for name in await tree.children(paths.BROKER_IDS) if name.isdigit()]
        ids = sorted(map(int, names))
        await self._watch_brokers(ids)
        found = await tree.get_many([paths.broker(one) for one in ids])
        brokers = {}
        for broker_id, value in zip(ids, found, strict=True):
            if value is not None:
                path = paths.broker(broker_id)
                brokers[broker_id] = decode_broker(path, broker_id, value[0], value[1].czxid)
        return self._context.updater.apply_brokers(brokers)

    async def _watch_brokers(self, ids: list[int]) -> None:
        """Watch these registrations: a broker may advertise other listeners while it runs."""
        if not self._context.tree.is_shared:
            return
        for gone in self._broker_watches.keys() - set(ids):
            self._broker_watches.pop(gone)()
        for broker_id in ids:
            if broker_id not in self._broker_watches:
                path = paths.broker(broker_id)
                cancel = await self._context.tree.watch(path, partial(self._mark, _BROKERS))
                self._broker_watches[broker_id] = cancel

    async def _read_config_changes(self) -> None:
        tree = self._context.tree
        names = await tree.children(paths.CONFIG_CHANGES)
        change_paths = [f"{paths.CONFIG_CHANGES}/{name}" for name in names]
        found = await tree.get_many(change_paths)
        now_ms = self._context.clock.now_ms()
        for name, path, value in zip(names, change_paths, found, strict=True):
            if value is None:
                continue
            if name > self._last_change:
                try:
                    change = decode_config_change(path, value[0])
                except CoordinationError as error:  # somebody's broken node must not stop us
                    self._context.log.warning("%s", error)
                else:
                    await self._configs.refresh(change.entity_type, change.entity_name)
                self._last_change = name
            elif now_ms - value[1].ctime_ms > CHANGE_EXPIRATION_MS:
                try:
                    await tree.delete(path)
                except NoNode:
                    continue

    # Topics

    async def _read_topics(self) -> None:
        """Which topics there are; the new ones are read, those that are gone are dropped.

        A topic that this broker made itself is in the image and not yet watched: read again too.
        """
        image = self._context.updater.image
        names = set(await self._context.tree.children(paths.TOPICS))
        for name in [one for one in image.topics if one not in names]:
            self._unwatch(name)
            self._context.updater.remove_topic(name)
        known = self._watches if self._context.tree.is_shared else image.topics
        await self._read_many(sorted(name for name in names if name not in known))

    async def _read_topic(self, name: str) -> None:
        await self._read_many([name])

    async def _read_many(self, names: list[str]) -> None:
        """Read these topics; each is tried again by itself when the tree goes away meanwhile."""
        try:
            await self._read_and_settle(names)
        except BaseException:
            # Some are watched by now, and not new to `_read_topics` any more.
            self._dirty.update(f"{_TOPIC_PREFIX}{name}" for name in names)
            raise

    async def _read_and_settle(self, names: list[str]) -> None:
        """One round trip for the topics' nodes, one for their partitions' states."""
        tree = self._context.tree
        updater = self._context.updater
        for name in names:
            await self._watch_topic(name)
        found = await tree.get_many([paths.topic(name) for name in names])
        topics = {}
        for name, value in zip(names, found, strict=True):
            if value is None:
                self._unwatch(name)
                updater.remove_topic(name)
            else:
                topics[name] = decode_topic(paths.topic(name), value[0])
        state_paths = []
        for name, assignment in topics.items():
            count = max(assignment.replicas, default=-1) + 1
            state_paths += [paths.partition_state(name, index) for index in range(count)]
        await self._watch_states(state_paths)
        states = iter(await tree.get_many(state_paths))
        next_path = iter(state_paths)
        for name, assignment in topics.items():
            decoded = []
            for _ in range(max(assignment.replicas, default=-1) + 1):
                path, value = next(next_path), next(states)
                decoded.append((decode_state(path, value[0]), value[1].version) if value else None)
            await self._meet_topic(name, assignment.topic_id)
            updater.apply_topic(updater.build_topic(name, assignment, decoded))
        await self._settle(topics)

    async def _meet_topic(self, name: str, topic_id: TopicId | None) -> None:
        """Before a topic that another process made: its config was written first, unannounced."""
        known = self._context.updater.image.topics.get(name)
        if known is not None and topic_id is not None:
            if known.topic_id in (topic_id, ZERO_TOPIC_ID):
                return
            self._context.updater.remove_topic(name)  # deleted and made again in between
        if self._task is not None:
            await self._configs.refresh("topics", name)

    async def _watch_topic(self, name: str) -> None:
        if not self._context.tree.is_shared or name in self._watches:
            return
        mark = partial(self._mark, f"{_TOPIC_PREFIX}{name}")
        cancel = await self._context.tree.watch(paths.topic(name), mark)
        self._watches[name] = [cancel]

    async def _watch_states(self, state_paths: list[str]) -> None:
        if not self._context.tree.is_shared:
            return
        for path in state_paths:
            if path not in self._watches:
                name = path.split("/")[3]
                mark = partial(self._mark, f"{_TOPIC_PREFIX}{name}")
                cancel = await self._context.tree.watch(path, mark)
                self._watches[path] = []
                self._watches[name].append(cancel)

    def _unwatch(self, name: str) -> None:
        for cancel in self._watches.pop(name, []):
            cancel()
        prefix = f"{paths.topic(name)}/"
        for path in [one for one in self._watches if one.startswith(prefix)]:
            del self._watches[path]
