"""Keeps the image true: reads the whole tree at start, then every node that a watch reports.

Where brokers are processes of their own, the controller alone watches the topics and the states of
their partitions. It tells the others (`replication.outboxes`, `requests`), and they watch only the
list of topics, so that none is served that is gone. A broker that becomes the controller reads and
watches everything before it decides.

Watches only say "look again at X". X goes into a set, one task takes things out and reads them
under the cluster's lock. When the tree is out of reach the thing goes back into the set. With a new
session, the cluster's id is compared first: ZooKeeper may have come back empty, or as another
cluster's. Then the nodes that the old session held (the registration of this broker, perhaps the
controller's node) are made again, and everything is read anew.

In the embedded home no other process writes: nothing is watched and the task does not exist.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.announcements import RETRY_DELAY_S, Announcements
from minibroker.broker.cluster.codecs import (
    decode_broker,
    decode_config_change,
    decode_large_topic,
    decode_state,
    encode_log_dir_event,
)
from minibroker.broker.cluster.image import NO_LEADER, TopicImage
from minibroker.broker.cluster.registration import check_cluster_id
from minibroker.broker.cluster.tree import SessionEvent, TreeError
from minibroker.broker.event_loop import cancel_all
from minibroker.broker.slices import TimeSlice, collect
from minibroker.kafka.errors import CoordinationError, ForeignTreeError, KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from minibroker.broker.cluster.admin_nodes import AdminNodes
    from minibroker.broker.cluster.announcements import Announcement
    from minibroker.broker.cluster.codecs import PartitionState, TopicAssignment
    from minibroker.broker.cluster.configs import Configs
    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.controller import Controller
    from minibroker.broker.cluster.deletions import Deletions
    from minibroker.broker.cluster.election import Election
    from minibroker.broker.cluster.features import Features
    from minibroker.broker.cluster.image import BrokerInfo
    from minibroker.broker.cluster.registration import Registration
    from minibroker.broker.cluster.tree import Cancel, Stat

TOPICS_PER_STEP: Final = 50
"""Topics that are read together, under the cluster's lock; then others may have it."""

NODES_PER_STEP: Final = 200
"""Nodes that are watched and read together, in a round trip's time."""

STATES_PER_LOOK: Final = 8
"""States that are decoded, 10 µs each, between two looks at the time."""

_SESSION: Final = "session"
_BROKERS: Final = "brokers"
_CONTROLLER: Final = "controller"
_TOPICS: Final = "topics"
_CONFIG_CHANGES: Final = "config changes"
_DELETIONS: Final = "deletions"
_FEATURES: Final = "features"
_REASSIGNMENT: Final = "the reassignment"
_PREFERRED_ELECTION: Final = "the preferred election"
_LOG_DIR_EVENTS: Final = "log directory events"
_TOPIC_PREFIX: Final = "topic "
_ORDER: Final = (
    _SESSION,
    _BROKERS,
    _CONTROLLER,
    _FEATURES,
    _TOPICS,
    _CONFIG_CHANGES,
    _REASSIGNMENT,
    _DELETIONS,
    _PREFERRED_ELECTION,
    _LOG_DIR_EVENTS,
)
_ASKED_OF_CONTROLLER: Final = frozenset({_REASSIGNMENT, _PREFERRED_ELECTION, _LOG_DIR_EVENTS})


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
        deletions: Deletions,
        admin_nodes: AdminNodes,
        features: Features,
        finish_moves: Callable[[str], Awaitable[None]],
        has_controller_requests: bool = False,
    ) -> None:
        """`finish_moves`: topic → ends the moves of its partitions that are done.
        `has_controller_requests`: whether the controller, another broker, sends the state of
        partitions (`requests`).
        """
        # Constant after construction.
        self._context = context
        self._deletions = deletions
        self._admin_nodes = admin_nodes
        self._has_controller_requests = has_controller_requests
        self._features = features
        self._finish_moves = finish_moves
        self._election = election
        self._controller = controller
        self._configs = configs
        self._registration = registration
        # Changed by watches, at any time on the loop, and by the task.
        self._dirty: set[str] = set()
        self._wake = asyncio.Event()
        self._has_session = True
        """False from the end of a session to the next one, whose tree is looked at first."""
        self._task: asyncio.Task[None] | None = None
        # Changed under the cluster's lock.
        self._watches: dict[str, dict[str, Cancel]] = {}
        """Topic → path of its node, or of a partition's state → end of the watch."""
        self._assignments: dict[str, int] = {}
        """Topic → version of its node when it was last read."""
        self._awaited_topics: set[str] = set()
        """Topics that are read again after a pause. Changed on the loop at any time."""
        self._marked_topics: set[str] = set()
        """Topics that were on their way out when this broker came."""
        self._broker_watches: dict[int, Cancel] = {}
        self._config_changes = Announcements(context.tree, context.clock, paths.CONFIG_CHANGES)
        self._settle_all = False
        self._is_behind = False
        """True for a new controller that has not read every topic yet."""
        self._restarted_brokers: set[int] = set()
        """Brokers that restarted. The controller still has to treat them as gone."""
        self.when_read: Callable[[Iterable[str]], Awaitable[None]] = _apply_nothing
        """Called after topics were read from the tree, under the cluster's lock; set before the
        start."""
        self.on_foreign_tree: Callable[[str], None] = _ignore
        """Told in one sentence that the tree is another cluster's now: this broker has to stop.
        Set before the start."""
        election.listeners.append(self._begin_or_end_term)

    # Life

    async def load(self) -> None:
        """Read everything once. Call it under the cluster's lock."""
        await self._read_brokers()
        if self._context.tree.is_shared:
            await self._config_changes.skip()
        await self._configs.load()
        if self._deletions.is_enabled:
            self._marked_topics = set(await self._context.tree.children(paths.ADMIN_DELETE_TOPICS))
        await self._read_topics()
        self._marked_topics.intersection_update(self._context.updater.image.hidden_topics)

    async def start(self) -> None:
        """Watch, and follow until `close`. After a CoordinationError it may be called again."""
        tree = self._context.tree
        if not tree.is_shared:
            return
        paths_by_part = {
            paths.CONTROLLER: _CONTROLLER,
            paths.FEATURE: _FEATURES,
            paths.REASSIGN_PARTITIONS: _REASSIGNMENT,
            paths.PREFERRED_ELECTION: _PREFERRED_ELECTION,
        }
        await tree.watch_many(
            {path: partial(self._mark, part) for path, part in paths_by_part.items()}
        )
        await tree.watch_children(paths.BROKER_IDS, lambda: self._mark(_BROKERS))
        await tree.watch_children(paths.TOPICS, lambda: self._mark(_TOPICS))
        await tree.watch_children(paths.CONFIG_CHANGES, lambda: self._mark(_CONFIG_CHANGES))
        await tree.watch_children(paths.ADMIN_DELETE_TOPICS, lambda: self._mark(_DELETIONS))
        await tree.watch_children(paths.LOG_DIR_EVENTS, lambda: self._mark(_LOG_DIR_EVENTS))
        tree.on_session(self._on_session)
        is_there = await self._registration.is_there()
        self._election.listeners.append(self._on_election)
        self._dirty.update(_ORDER[1:])  # what changed between `load` and the watches
        if not is_there:  # the session ended during the start
            self._dirty.add(_SESSION)
        self._wake.set()
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop following."""
        await cancel_all(self._task)
        self._task = None

    async def catch_up(self) -> None:
        """Read and watch every topic as a new controller, which other brokers did not tell of all
        that it decides on. Call it under the cluster's lock. Raises CoordinationError.
        """
        if self._is_behind:
            self._is_behind = False
            try:
                await self._read_topics()
            except BaseException:
                self._is_behind = True
                raise

    async def read_topics(self, names: Iterable[str]) -> None:
        """Read these topics now: a controller speaks of them, and the image has less of them. Call
        it under the cluster's lock. Raises CoordinationError.
        """
        await self._read_many(sorted(names))

    def look_at_topic_later(self, name: str, pause_s: float) -> None:
        """Read a topic after a pause: a controller speaks of it, and the tree does not have it."""
        if name not in self._awaited_topics:
            self._awaited_topics.add(name)
            asyncio.get_running_loop().call_later(pause_s, self._look_at_awaited, name)

    def _look_at_awaited(self, name: str) -> None:
        self._awaited_topics.discard(name)
        self._mark(f"{_TOPIC_PREFIX}{name}")

    def look_at_brokers(self) -> None:
        """Read the registrations soon: a controller has other ones than the image."""
        self._mark(_BROKERS)

    def look_at_all_later(self) -> None:
        """Do after a while what a new session does: a change of this broker's was not written."""
        self._mark_later([_SESSION])

    def look_at_deletions_later(self) -> None:
        """Go on with the deletions after a while."""
        self._mark_later([_DELETIONS])

    def _begin_or_end_term(self, is_controller: bool) -> None:
        """Begin or end to watch the topics, if the controller alone does so."""
        if not self._has_controller_requests:
            return
        self._is_behind = is_controller
        if not is_controller:
            for name in list(self._watches):
                self._unwatch(name)

    @property
    def _watches_topics(self) -> bool:
        is_shared = self._context.tree.is_shared
        return is_shared and (not self._has_controller_requests or self._election.is_controller)

    def _mark(self, part: str) -> None:
        self._dirty.add(part)
        self._wake.set()

    def _mark_later(self, parts: Iterable[str]) -> None:
        """Read these things again after a while, and everything else before."""
        for part in parts:
            asyncio.get_running_loop().call_later(RETRY_DELAY_S, self._mark, part)

    def _on_election(self, is_controller: bool) -> None:
        if is_controller:
            self._admin_nodes.begin_term()
            for part in (_REASSIGNMENT, _DELETIONS, _PREFERRED_ELECTION, _LOG_DIR_EVENTS):
                self._mark(part)

    def _on_session(self, event: SessionEvent) -> None:
        self._context.log.warning("the session with the metadata tree is %s", event.value)
        if event is SessionEvent.EXPIRED:
            self._has_session = False
            self._election.lose()
        elif event in (SessionEvent.RENEWED, SessionEvent.RESUMED):
            self._has_session = True
            self._dirty.update(_ORDER)
            self._wake.set()

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._dirty and self._has_session:
                things = self._next_things()
                self._dirty.difference_update(things)
                try:
                    async with self._context.lock:
                        await self._refresh(things)
                except ForeignTreeError as error:
                    self._election.lose()
                    self.on_foreign_tree(str(error))
                    return  # nothing in that tree is about this cluster
                except (CoordinationError, KafkaError, TreeError) as error:
                    self._context.log.info("could not refresh %s: %s", things[0], error)
                    self._dirty.update(things)
                    await self._pause()
                except Exception:  # a bug of ours: the rest of the cluster is still followed
                    part_names = ", ".join(things)
                    self._context.log.exception(
                        "could not refresh %s; trying again in %g s", part_names, RETRY_DELAY_S
                    )
                    self._mark_later(things)

    def _next_things(self) -> list[str]:
        """Return the things to refresh next: the first of _ORDER, or else some topics together."""
        for part in _ORDER:
            if part in self._dirty:
                return [part]
        return list(islice(self._dirty, TOPICS_PER_STEP))

    async def _pause(self) -> None:
        """Wait for news of the session, or a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_DELAY_S):
                await self._wake.wait()
        self._wake.clear()

    async def _refresh(self, things: list[str]) -> None:
        part = things[0]
        if part == _BROKERS:
            if await self._read_brokers():
                self._settle_all = True
                self._dirty.update((_DELETIONS, _FEATURES))  # they depend on who is there
        elif part == _CONTROLLER:
            await self._look_at_controller()
        elif part in _ASKED_OF_CONTROLLER:
            if self._election.is_controller:
                await self._do_as_asked(part)
        elif part in _ORDER:
            readers: dict[str, Callable[[], Awaitable[None]]] = {
                _SESSION: self._renew_session,
                _TOPICS: self._read_topics,
                _CONFIG_CHANGES: partial(self._config_changes.apply, self._read_announced),
                _DELETIONS: self._read_marks,
                _FEATURES: self._features.stay_below_kafka,
            }
            await readers[part]()
        else:
            await self._read_many([part.removeprefix(_TOPIC_PREFIX) for part in things])
        await self.catch_up()
        if self._settle_all:
            await self._settle(list(self._context.updater.image.topics))
        self._settle_all = False

    async def _look_at_controller(self) -> None:
        """Become the controller if there is none. Tell a new one of a failed log directory: it does
        not know what the one before knew.

        The controller before may have restarted: then its successor gives what it led a new leader
        epoch. After a power cut it has less than its followers, in an epoch that they know.
        """
        context = self._context
        image = context.updater.image
        old_epoch = image.controller_epoch
        is_elected = await self._election.run()
        self._restarted_brokers.discard(context.broker_id)  # it goes on, in a new session
        if not self._election.is_controller:
            self._restarted_brokers.clear()
        elif self._restarted_brokers:
            await self.catch_up()
            brokers = image.brokers
            await self._take_restarted_for_gone(brokers)
            await context.updater.apply_brokers(brokers)
        if is_elected:
            self._settle_all = True
        elif image.controller_epoch != old_epoch:
            await self._tell_of_failed_disks()

    async def _tell_of_failed_disks(self) -> None:
        """Have the controller, another broker, ask for the replicas that this one lost, if any."""
        context = self._context
        if context.updater.failed_replicas.has_broker(context.broker_id):
            await context.tree.create(
                paths.LOG_DIR_EVENT, encode_log_dir_event(context.broker_id), sequence=True
            )

    async def _do_as_asked(self, part: str) -> None:
        """Look at a node by which others ask the controller for something."""
        if part == _REASSIGNMENT:
            await self._admin_nodes.reassign()
        elif part == _PREFERRED_ELECTION:
            await self._admin_nodes.elect_preferred()
        else:
            await self._admin_nodes.hear_log_dir_events()

    async def _settle(self, names: Iterable[str]) -> None:
        """Give the partitions of these topics the states they must have, and finish their moves, if
        this broker is the controller.
        """
        if not self._election.is_controller:
            return
        topic_names = list(names)
        await self._controller.settle(topic_names)
        for name in topic_names:
            topic = self._context.updater.image.topics.get(name)
            if topic and any(state.adding or state.removing for state in topic.partitions):
                await self._finish_moves(name)
        if self._admin_nodes.has_moves:
            self._dirty.add(_REASSIGNMENT)  # one of them may be over

    async def _renew_session(self) -> None:
        """Make the nodes of an ended session again, then read everything, if the tree is this
        cluster's still. Raises ForeignTreeError.
        """
        context = self._context
        await check_cluster_id(context.tree, context.updater.image.cluster_id)
        if not await self._registration.is_there():
            await self._registration.register(RETRY_DELAY_S * 10)
        if self._registration.is_unwritten:
            await self._registration.change_endpoints(self._registration.info.endpoints)
        if not self._election.is_controller:
            # The tree may have been away when a disk failed.
            await self._tell_of_failed_disks()
        await self._configs.load()
        names = list(self._context.updater.image.topics)
        await self._configs.refresh("topics", names)
        self._dirty.update(f"{_TOPIC_PREFIX}{name}" for name in names)

    # Brokers and configs

    async def _read_brokers(self) -> bool:
        """Read the registrations into the image; return whether brokers came or went.

        A broker may have gone and come back since the last look: its epoch is another one then
        (KIP-380). The controller treats it as gone first, as Kafka does (processBrokerChange): what
        it led has no leader for a moment, then a new leader epoch.
        """
        tree = self._context.tree
        updater = self._context.updater
        names = [name for name in await tree.children(paths.BROKER_IDS) if name.isdigit()]
        ids = sorted(map(int, names))
        await self._watch_brokers(ids)
        nodes = await tree.get_many([paths.broker(broker_id) for broker_id in ids])
        brokers = {}
        for broker_id, value in zip(ids, nodes, strict=True):
            if value is not None:
                path = paths.broker(broker_id)
                brokers[broker_id] = decode_broker(path, broker_id, value[0], value[1].czxid)
        old_brokers = updater.image.brokers
        self._restarted_brokers |= {
            broker_id
            for broker_id, broker in brokers.items()
            if broker_id in old_brokers and broker.epoch > old_brokers[broker_id].epoch
        }
        started_again = {
            broker_id
            for broker_id, broker in old_brokers.items()
            if broker_id not in brokers or brokers[broker_id].epoch != broker.epoch
        }
        # This broker knows its own disks.
        await updater.forget_failed_replicas(started_again - {self._context.broker_id})
        if self._election.is_controller:
            await self._take_restarted_for_gone(brokers)
        elif updater.image.controller_id in brokers.keys() - self._restarted_brokers:
            self._restarted_brokers.clear()  # that controller sees it, too
        return await updater.apply_brokers(brokers)

    async def _take_restarted_for_gone(self, brokers: dict[int, BrokerInfo]) -> None:
        """Take the brokers that restarted for gone, as the controller; `brokers`: all that are
        registered. Apply them afterwards.
        """
        if not self._restarted_brokers:
            return
        broker_names = ", ".join(map(str, sorted(self._restarted_brokers)))
        self._context.log.info("brokers restarted: %s", broker_names)
        other_brokers = sorted(brokers.keys() - self._restarted_brokers)
        await self._context.updater.apply_brokers(
            {broker_id: brokers[broker_id] for broker_id in other_brokers}
        )
        await self._controller.settle()
        self._restarted_brokers.clear()

    async def _watch_brokers(self, ids: list[int]) -> None:
        """Watch these registrations: a broker may advertise other listeners while it runs."""
        if not self._context.tree.is_shared:
            return
        for old_id in self._broker_watches.keys() - set(ids):
            self._broker_watches.pop(old_id)()
        new = [broker_id for broker_id in ids if broker_id not in self._broker_watches]
        mark = partial(self._mark, _BROKERS)
        callbacks = {paths.broker(broker_id): mark for broker_id in new}
        cancels = await self._context.tree.watch_many(callbacks)
        self._broker_watches.update(zip(new, cancels, strict=True))

    async def _read_announced(self, announcements: list[Announcement]) -> None:
        for path, value in announcements:
            try:
                entity_type, entity_name = decode_config_change(path, value)
            except CoordinationError as error:  # a broken node must not stop this broker
                self._context.log.warning("%s", error)
            else:
                await self._configs.refresh(entity_type, [entity_name])

    # Topics

    async def _read_marks(self) -> None:
        """Go on with the deletions as the controller. A topic whose mark is gone, and which is
        still there, is shown again.
        """
        marked_topics = set(await self._context.tree.children(paths.ADMIN_DELETE_TOPICS))
        for name in self._marked_topics - marked_topics:
            self._marked_topics.discard(name)
            if self._context.updater.show(name):
                self._dirty.add(f"{_TOPIC_PREFIX}{name}")
        if self._election.is_controller:
            await self._deletions.resume()

    async def _read_topics(self) -> None:
        """Find out which topics there are; read the new ones, withdraw those that are gone. A
        broker that the controller tells of new ones only withdraws.

        A topic that is not there is not served. Its logs are kept: they go on evidence only
        (`broker.evidence`), which comes with the mark and with requests of the controller.

        A topic that this broker made itself is in the image and not yet watched: read again too.
        """
        image = self._context.updater.image
        names = set(await self._context.tree.children(paths.TOPICS))
        for name in [topic_name for topic_name in image.topics if topic_name not in names]:
            self._unwatch(name)
            self._context.updater.withdraw_topic(name)
        for name in [topic_name for topic_name in image.hidden_topics if topic_name not in names]:
            self._context.updater.show(name)
        if self._task is not None and not self._watches_topics:
            return  # the controller tells of new ones
        topic_name = self._watches if self._context.tree.is_shared else image.topics
        await self._read_many(sorted(name for name in names if name not in topic_name))

    async def _read_many(self, names: list[str]) -> None:
        """Read these topics; each is tried again by itself when the tree goes away meanwhile."""
        try:
            for start in range(0, len(names), NODES_PER_STEP):
                await self._read_and_settle(names[start : start + NODES_PER_STEP])
        except BaseException:
            # Some are watched by now, and not new to `_read_topics` any more.
            self._dirty.update(f"{_TOPIC_PREFIX}{name}" for name in names)
            raise

    async def _read_and_settle(self, names: list[str]) -> None:
        """Read the topics' nodes, all at once, then their partitions' states, many at once."""
        updater = self._context.updater
        await self._watch([(name, paths.topic(name)) for name in names])
        nodes = await self._context.tree.get_many([paths.topic(name) for name in names])
        topics: dict[str, TopicAssignment] = {}
        stats: dict[str, Stat] = {}
        for name, value in zip(names, nodes, strict=True):
            if value is None:
                self._unwatch(name)
                updater.withdraw_topic(name)
            else:
                topics[name] = await decode_large_topic(paths.topic(name), value[0])
                stats[name] = value[1]
        states, doubtful_names = await self._read_states(topics)
        for name in await self._made_again(doubtful_names, stats):
            del topics[name]
            self._mark(f"{_TOPIC_PREFIX}{name}")
        await self._meet_topics(self._without_hidden(topics))
        for name, assignment in topics.items():
            version = stats[name].version
            partitions = await collect(
                updater.known_partitions(
                    name,
                    assignment,
                    states[name],
                    is_new_assignment=self._assignments.get(name) != version,
                )
            )
            self._assignments[name] = version
            if updater.is_hidden(name, assignment.topic_id):
                continue
            topic = TopicImage(name, assignment.topic_id or ZERO_TOPIC_ID, partitions)
            if self._task is None and name not in updater.image.topics:  # nobody is served yet
                await updater.begin_with_topic(topic)
            else:
                await updater.apply_topic(topic)
        await self.when_read(names)
        await self._settle(topics)

    def _without_hidden(self, topics: Mapping[str, TopicAssignment]) -> dict[str, TopicAssignment]:
        """Return those of these topics that are not hidden; hide those that are on their way out
        when this broker comes.
        """
        updater = self._context.updater
        visible_topics = {}
        for name, assignment in topics.items():
            if name in self._marked_topics and self._task is None:
                updater.hide(name, assignment.topic_id or ZERO_TOPIC_ID)
            if not updater.is_hidden(name, assignment.topic_id):
                visible_topics[name] = assignment
        return visible_topics

    async def _made_again(self, names: Collection[str], stats: Mapping[str, Stat]) -> list[str]:
        """Return those of these topics whose nodes are others than those with these stats by now:
        states that were read since are of another topic of the name.
        """
        if not names:
            return []
        nodes = await self._context.tree.get_many([paths.topic(name) for name in names])
        return [
            name
            for name, node in zip(names, nodes, strict=True)
            if node is None or node[1].czxid != stats[name].czxid
        ]

    async def _read_states(
        self, topics: Mapping[str, TopicAssignment]
    ) -> tuple[dict[str, list[tuple[PartitionState, int] | None]], Collection[str]]:
        """Return the state of each partition of these topics, and the version of its node; None
        where there is none. They are watched from now on. Return also the topics with a leader
        that is none of the replicas: they may have been made again meanwhile.
        """
        states: dict[str, list[tuple[PartitionState, int] | None]] = {name: [] for name in topics}
        doubtful_names: dict[str, None] = {}
        state_by_data: dict[bytes, PartitionState] = {}  # many partitions have equal states
        nodes = _state_nodes(topics)
        turn = TimeSlice()
        while part := list(islice(nodes, NODES_PER_STEP)):
            await self._watch(part)
            values = await self._context.tree.get_many([path for _, path in part])
            for place, ((name, path), value) in enumerate(zip(part, values, strict=True)):
                if value is None:
                    states[name].append(None)
                else:
                    data, stat = value
                    state = state_by_data.get(data)
                    if state is None:
                        state = state_by_data[data] = decode_state(path, data)
                    replicas = topics[name].replicas.get(len(states[name]), ())
                    if state.leader not in replicas and state.leader != NO_LEADER:
                        doubtful_names[name] = None
                    states[name].append((state, stat.version))
                if place % STATES_PER_LOOK == 0 and turn.is_over:
                    await turn.pause()
        return states, doubtful_names

    async def _meet_topics(self, topics: Mapping[str, TopicAssignment]) -> None:
        """Prepare for topics that another process made: read their configs.

        A config is written before its topic and not announced. So it is read after the topic: one
        that is made while this broker starts has its config, too.
        """
        updater = self._context.updater
        new = []
        for name, assignment in topics.items():
            old_topic, topic_id = updater.image.topics.get(name), assignment.topic_id
            if old_topic is not None and topic_id is not None:
                if old_topic.topic_id in (topic_id, ZERO_TOPIC_ID):
                    continue
                updater.withdraw_topic(name)  # another topic has its name now
            new.append(name)
        if new:
            await self._configs.refresh("topics", new)

    async def _watch(self, states: Sequence[tuple[str, str]]) -> None:
        """Watch these nodes (topic, path), those that are not watched yet."""
        tree = self._context.tree
        if not self._watches_topics:
            return
        new = [(name, path) for name, path in states if path not in self._watches.get(name, ())]
        cancels = await tree.watch_many(
            {path: partial(self._mark, f"{_TOPIC_PREFIX}{name}") for name, path in new}
        )
        for (name, path), cancel in zip(new, cancels, strict=True):
            if self._watches_topics:
                self._watches.setdefault(name, {})[path] = cancel
            else:
                cancel()  # deposed meanwhile

    def _unwatch(self, name: str) -> None:
        self._assignments.pop(name, None)
        for cancel in self._watches.pop(name, {}).values():
            cancel()


async def _apply_nothing(_names: Iterable[str]) -> None:
    """Do nothing: no controller sent anything."""


def _ignore(_reason: str) -> None:
    """Do nothing: nobody stops the broker."""


def _state_nodes(topics: Mapping[str, TopicAssignment]) -> Iterator[tuple[str, str]]:
    """Yield topic and path of each partition's state, in order."""
    for name, assignment in topics.items():
        for index in range(max(assignment.replicas, default=-1) + 1):
            yield name, paths.partition_state(name, index)
