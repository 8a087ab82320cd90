"""The cluster as the rest of the broker sees it: an image to read, a few changes to ask for.

Wires the parts of this package around one tree; `app.py` builds one `Cluster` and starts it. The
start has the listeners bound when the tree is open; their ports go into the registration.

    tree ─► follow ─► updates ─► image ─► handlers (Metadata, DescribeConfigs …)
      ▲                   └────► listeners (partitions, dynamic configs, quotas)
      └── topics · configs · leadership · reassignments · producer_ids ◄── handlers

Handlers ask the part that does it: `cluster.leadership.elect(…)`. Here are the life of the
membership, and what takes several parts.
"""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.admin_nodes import AdminNodes
from minibroker.broker.cluster.auto_creation import AutoCreation
from minibroker.broker.cluster.configs import Configs, with_changes
from minibroker.broker.cluster.context import ClusterContext
from minibroker.broker.cluster.controller import Controller
from minibroker.broker.cluster.deletions import Deletions
from minibroker.broker.cluster.election import Election
from minibroker.broker.cluster.features import ELIGIBLE_LEADER_REPLICAS, Features
from minibroker.broker.cluster.follow import TreeFollower
from minibroker.broker.cluster.image import BrokerInfo, Endpoint, MetadataImage
from minibroker.broker.cluster.leadership import Leadership
from minibroker.broker.cluster.partition_states import PartitionStates
from minibroker.broker.cluster.producer_ids import ProducerIds
from minibroker.broker.cluster.registration import Registration, create_parents, get_cluster_id
from minibroker.broker.cluster.topics import Topics
from minibroker.broker.cluster.tree import TreeError
from minibroker.broker.cluster.updates import ImageUpdater
from minibroker.kafka.errors import AwayError, CoordinationError
from minibroker.kafka.ids import ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from ssl import SSLContext
    from typing import Protocol

    from minibroker.broker.cluster.configs import Edit
    from minibroker.broker.cluster.controller import AllowsUnclean
    from minibroker.broker.cluster.deletions import AskBroker, DeleteLogs
    from minibroker.broker.cluster.feature_update import FeatureUpdate
    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.cluster.leader_balance import BalanceRule, LeaderBalancer
    from minibroker.broker.cluster.reassignment import Reassignments
    from minibroker.broker.cluster.requests import ControllerRequests
    from minibroker.broker.cluster.tree import Tree
    from minibroker.broker.cluster.updates import ClusterListener
    from minibroker.broker.timers import Timers
    from minibroker.clock import Clock

    Send = Callable[[], Coroutine[Any, Any, Any]]
    """Sends the request, and returns its answer."""

    class PeerInterceptor(Protocol):
        """Called with each request to another broker, on the loop."""

        async def call(self, broker_id: int, request: Any, send: Send) -> Any:
            """Return the answer of `send`, now or later. Raises OSError in place of an answer.

            `request`: the request or its class; it says which API it is.
            """


MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
AWAY_S: Final = 0.1
"""Pause between two tries of a start while the tree does not answer."""


class ClusterSettings:
    """The settings of one broker's membership. Constant."""

    __slots__ = (
        "balance",
        "cluster_id",
        "deletes_topics",
        "feature_levels",
        "has_controller_requests",
        "kafka_release",
        "marks_recovery",
        "min_insync_replicas",
        "rack",
        "registration_timeout_s",
    )

    def __init__(
        self,
        *,
        rack: str | None = None,
        cluster_id: str | None = None,
        registration_timeout_s: float = 25.0,
        kafka_release: str | None = None,
        feature_levels: Mapping[str, int] | None = None,
        min_insync_replicas: int = 1,
        deletes_topics: bool = True,
        marks_recovery: bool = True,
        balance: BalanceRule | None = None,
        has_controller_requests: bool = False,
    ) -> None:
        """Take the settings.

        Args:
            rack: `broker.rack`.
            cluster_id: proposed when the tree has none (from meta.properties); None: a new one.
            registration_timeout_s: time to wait for a registration that a killed process left: a
                little more than `zookeeper.session.timeout.ms`.
            kafka_release: the release that this broker passes for, None for the newest.
            feature_levels: levels of features that nobody changed yet; None: the release's own.
            min_insync_replicas: the static `min.insync.replicas`, for the whole cluster once
                eligible leader replicas are in force.
            deletes_topics: `delete.topic.enable`.
            marks_recovery: see `Controller`.
            balance: the rule by which leaders return to preferred replicas; None: only when asked.
            has_controller_requests: a controller that is another broker sends this one the state of
                partitions: brokers are processes of their own. Else every broker follows the tree.
        """
        self.rack = rack
        self.cluster_id = cluster_id
        self.registration_timeout_s = registration_timeout_s
        self.kafka_release = kafka_release
        self.feature_levels = feature_levels
        self.min_insync_replicas = min_insync_replicas
        self.deletes_topics = deletes_topics
        self.marks_recovery = marks_recovery
        self.balance = balance
        self.has_controller_requests = has_controller_requests


DEFAULT_SETTINGS: Final = ClusterSettings()


class Cluster:
    """One broker's membership in a cluster (of one, in the embedded home).

    Args:
        broker_id: `broker.id`.
        tree: the home, not opened yet; `start` opens it and `close` closes it.
        clock: wall clock for timestamps in the tree.
        settings: the other settings.
        endpoints: advertised listeners, in order; may be set with `set_endpoints` before `start`.
        delete_logs: see `Deletions`.
        allows_unclean: see `Controller`.
        timers: for the looks at the balance of leaders; None: there are none.
        log: where the cluster's changes are reported.

    All methods belong to the loop's thread. Those that ask the tree raise CoordinationError when it
    is out of reach now; the handler answers a retriable error.
    """

    peer_interceptor: PeerInterceptor | None = None
    """Looks in on requests to other brokers; set for tests, before the start."""
    peer_contexts: Callable[[str], SSLContext] | None = None
    """Returns the TLS of the next connection to a listener of other brokers; set before the start
    where a listener has TLS."""
    peer_logins: Callable[[str], Any] | None = None
    """Returns this broker's login at a listener of other brokers (`client.sasl.SaslLogin`), None
    where it asks for none; set before the start where a listener has SASL."""

    def __init__(
        self,
        *,
        broker_id: int,
        tree: Tree,
        clock: Clock,
        settings: ClusterSettings = DEFAULT_SETTINGS,
        endpoints: Sequence[Endpoint] = (),
        delete_logs: DeleteLogs | None = None,
        allows_unclean: AllowsUnclean | None = None,
        timers: Timers | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        # All are constant after construction, but for the last; each part says who changes it.
        self.image = MetadataImage()
        self.broker_id = broker_id
        self.tree = tree
        self._settings = settings
        self._updater = ImageUpdater(self.image)
        context = self._context = ClusterContext(
            broker_id=broker_id,
            tree=tree,
            updater=self._updater,
            clock=clock,
            log=log or logging.getLogger(__name__),
        )
        self._registration = Registration(context, tuple(endpoints), settings.rack)
        self._election = Election(context)
        self._states = PartitionStates(context, self._election)
        self._controller = self._make_controller(allows_unclean)
        self._deletions = Deletions(
            context,
            self._election,
            self._states,
            delete_logs=delete_logs,
            deletes_topics=settings.deletes_topics,
        )
        self._balancer = self._make_balancer(timers)
        self._configs = Configs(context)
        self.topics = Topics(
            context, self._election, self._controller, self._deletions, self._states
        )
        self.auto_creation = AutoCreation(context, self.topics)
        self.leadership = Leadership(
            context, self._election, self._controller, self._states, self._deletions
        )
        self.producer_ids = ProducerIds(tree, broker_id)
        self.features = Features(
            context, release=settings.kafka_release, initial=settings.feature_levels
        )
        self._admin_nodes = self._make_admin_nodes()
        self._follower = self._make_follower()
        self._is_open = False

    def _make_controller(self, allows_unclean: AllowsUnclean | None) -> Controller:
        return Controller(
            self._context,
            self._election,
            self._states,
            allows_unclean=allows_unclean,
            marks_recovery=self._settings.marks_recovery,
        )

    def _make_balancer(self, timers: Timers | None) -> LeaderBalancer | None:
        rule = self._settings.balance
        if rule is None or timers is None:
            return None
        # A broker alone does without.
        from minibroker.broker.cluster.leader_balance import LeaderBalancer  # noqa: PLC0415

        return LeaderBalancer(
            self._context, self._election, self._controller, timers=timers, rule=rule
        )

    def _make_admin_nodes(self) -> AdminNodes:
        return AdminNodes(
            self._context,
            self._controller,
            self._states,
            reassignments=lambda: self.reassignments,
            deletions=self._deletions,
        )

    def _make_follower(self) -> TreeFollower:
        return TreeFollower(
            self._context,
            self._election,
            self._controller,
            self._configs,
            self._registration,
            deletions=self._deletions,
            admin_nodes=self._admin_nodes,
            features=self.features,
            finish_moves=self._finish_moves,
            has_controller_requests=self._settings.has_controller_requests,
        )

    async def _finish_moves(self, topic: str) -> None:
        """End the moves of a topic's partitions that are done."""
        await self.reassignments.finish(topic)

    # Life

    def set_endpoints(self, endpoints: Sequence[Endpoint]) -> None:
        """Name the advertised listeners; before `start`, once their ports are known."""
        self._registration.info = self._registration.info._replace(endpoints=tuple(endpoints))

    def subscribe(self, listener: ClusterListener) -> None:
        """Tell this listener of every change from now on; subscribe before `start` to miss none."""
        self._updater.listeners.append(listener)

    def when_brokers_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` from now on when brokers came or went."""
        self._updater.broker_listeners.append(listener)

    def when_controller_changes(self, listener: Callable[[], None]) -> None:
        """Call `listener` from now on when there is another controller, or it is elected anew."""
        self._updater.controller_listeners.append(listener)

    def when_elected(self, listener: Callable[[bool], None]) -> None:
        """Tell `listener` from now on whether this broker is the controller, when that changes."""
        self._election.listeners.append(listener)

    def when_tree_is_foreign(self, stop: Callable[[str], None]) -> None:
        """Call `stop` with a sentence once the tree is another cluster's, or has no id any more:
        this broker must not go on. Before the start.
        """
        self._follower.on_foreign_tree = stop

    async def start(
        self,
        accept_cluster_id: Callable[[str], None] | None = None,
        when_registered: Callable[[], Awaitable[None]] | None = None,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Join the cluster; the image is complete and the listeners know it when this returns.

        `accept_cluster_id` is called with the cluster's id before this broker registers; what it
        raises ends the start, so that data of another cluster never come under this one's name.
        `prepare` is awaited then, so that it may read the tree; what it raises ends the start, too.
        `when_registered` is awaited before this broker looks at the others: those that start with
        it are registered when it returns.

        Raises CoordinationError: the tree cannot be reached, or the broker id is taken.
        """
        await self.tree.open()
        self._is_open = True
        try:
            await self._create_parents(accept_cluster_id)
            if prepare is not None:
                await prepare()
            await self._while_away(lambda: self._join(when_registered))
            await self._deletions.wait_for_own_part()
            self._deletions.when_late = self._follower.look_at_deletions_later
            self.leadership.when_late = self._follower.look_at_all_later
            await self._while_away(self._follower.start)
            await self._while_away(self._fix_min_insync_replicas)
        except BaseException:
            await self.close()
            raise

    async def _create_parents(self, accept_cluster_id: Callable[[str], None] | None) -> None:
        async def find_cluster() -> None:
            await create_parents(self.tree)
            self.image.cluster_id = await get_cluster_id(self.tree, self._settings.cluster_id)

        await self._while_away(find_cluster)
        if accept_cluster_id is not None:
            accept_cluster_id(self.image.cluster_id)

    async def _join(self, when_registered: Callable[[], Awaitable[None]] | None) -> None:
        """Register, read everything, take part in the election. It may be called again."""
        async with self._context.lock:
            await self._register(is_alone=when_registered is not None)
            if when_registered is not None:
                await when_registered()
            await self._follower.load()
            await self._election.run()
            await self.features.stay_below_kafka()
            if self._election.is_controller:
                await self._deletions.resume()
                await self._controller.settle()

    async def _while_away(self, step: Callable[[], Awaitable[None]]) -> None:
        """Call `step`, again while the tree does not answer at the moment: its home is busy.

        Raises CoordinationError: it does not answer for as long as a registration is waited for.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._settings.registration_timeout_s
        while True:
            try:
                return await step()
            except AwayError:
                if loop.time() > end:
                    raise
            await asyncio.sleep(AWAY_S)

    async def _register(self, *, is_alone: bool) -> None:
        """Register; `is_alone`: no broker that runs remembers an earlier run of this one.

        Raises CoordinationError.
        """
        if is_alone or not self.tree.is_shared:
            await self._registration.register(self._settings.registration_timeout_s)
            return
        from minibroker.broker.cluster.restart import (  # noqa: PLC0415  for several brokers
            leave_last_run,
            let_others_lead,
        )

        await leave_last_run(self._context)
        await self._registration.register(
            self._settings.registration_timeout_s, when_free=lambda: let_others_lead(self._context)
        )

    async def close(self) -> None:
        """Leave the cluster: resign, unregister, end the session. Never raises for a lost tree."""
        if not self._is_open:
            return
        self._is_open = False
        await self._close_parts()
        try:
            await self._election.resign()
            await self._registration.unregister()
        except (CoordinationError, TreeError) as error:
            self._context.log.warning("could not unregister this broker: %s", error)
        await self.tree.close()

    async def abandon(self) -> None:
        """End without unregistering: other brokers see this one until its session runs out."""
        if self._is_open:
            self._is_open = False
            await self._close_parts()
            await self.tree.abandon()

    async def _close_parts(self) -> None:
        """End the tasks that read and write the tree."""
        if self._balancer is not None:
            await self._balancer.close()
        await self._follower.close()
        await self._deletions.close()
        await self.auto_creation.close()
        await self.producer_ids.close()

    @property
    def clock(self) -> Clock:
        """Return the broker's clock."""
        return self._context.clock

    @property
    def is_controller(self) -> bool:
        """Return whether this broker may create and delete topics itself; others answer
        NOT_CONTROLLER.
        """
        return self._election.is_controller

    @property
    def stopping_brokers(self) -> set[int]:
        """Return the brokers that shut down, as the controller knows them."""
        return self._controller.stopping_brokers

    def have_brokers_delete(self, ask_broker: AskBroker) -> None:
        """Let the controller ask other brokers to delete their replicas; before the start."""
        self._deletions.ask_broker = ask_broker

    def have_replicas_asked(self, ask_replicas: Callable[[int], None]) -> None:
        """Let the controller ask a broker which of its replicas are in failed log directories;
        before the start.
        """
        self._admin_nodes.ask_replicas = ask_replicas

    @property
    def this_broker(self) -> BrokerInfo:
        """Return this broker's own registration."""
        return self._registration.info

    async def advertise(self, endpoints: Sequence[Endpoint]) -> None:
        """Tell clients and other brokers of these advertised listeners from now on.

        Raises CoordinationError, and tries again later.
        """
        context = self._context
        async with context.lock:
            try:
                info = await self._registration.change_endpoints(tuple(endpoints))
            except CoordinationError:
                self._follower.look_at_all_later()
                raise
            await context.updater.apply_brokers({**self.image.brokers, info.id: info})

    # Topics

    async def create_topic(
        self,
        name: str,
        partition_count: int = 1,
        replication_factor: int = 1,
        *,
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
        timeout_s: float | None = 30.0,
    ) -> TopicImage:
        """Create a topic; return its image once all partitions have a leader.

        `assignment` is partition index → broker ids; the two counts are then ignored. The caller
        has checked `configs`. `timeout_s` bounds the wait for leaders; None: no wait.

        Raises KafkaError: the errors of `Topics.plan`, and REQUEST_TIMED_OUT.
        """
        replicas = self.topics.plan(name, partition_count, replication_factor, assignment)
        return await self.topics.create(name, replicas, configs or {}, timeout_s)

    async def wait_for_leader(self, name: str, index: int, leader: int, timeout_s: float) -> None:
        """Wait until a broker leads a partition. Raises TimeoutError."""

        def leads(topic: TopicImage | None) -> bool:
            return topic is not None and topic.partitions[index].leader == leader

        await self._updater.wait_for_topic(name, leads, timeout_s)

    async def delete_topic(
        self, name: str, *, topic_id: bytes = ZERO_TOPIC_ID, timeout_s: float = 30.0
    ) -> None:
        """Delete a topic, but no other one of its name than that of `topic_id` (zero: any).

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, REQUEST_TIMED_OUT.

        Raises StorageError where a disk does not let go of a log. The topic stays marked then, and
        the next attempt or the next start goes on.
        """
        await self.topics.delete(name, timeout_s, topic_id)

    async def become_controller(self) -> None:
        """Take the controller's place from the broker that has it. For tests.

        Raises KafkaError(NOT_CONTROLLER) if another broker was faster.
        """
        async with self._context.lock:
            if await self._election.take_over():
                await self._follower.catch_up()
                await self._deletions.resume()
                await self._controller.settle()

    @cached_property
    def requests(self) -> ControllerRequests:
        """Return what takes the requests of another broker that is the controller."""
        # A broker alone gets none.
        from minibroker.broker.cluster.requests import ControllerRequests  # noqa: PLC0415

        return ControllerRequests(self._context, self._follower, self._registration)

    @property
    def reassignments(self) -> Reassignments:
        """Return what moves partitions to other brokers; for the controller."""
        from minibroker.broker.cluster.reassignment import (  # noqa: PLC0415  seldom asked for
            Reassignments,
        )

        return Reassignments(
            self._context,
            self._states,
            self._deletions,
            self._controller,
        )

    # Features

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool
    ) -> None:
        """Change levels, all or none. Raises KafkaError INVALID_UPDATE_VERSION.

        Source: Kafka ConfigurationControlManager.updateFeatures.
        """
        await self.features.update(updates, validate_only=validate_only)
        await self._fix_min_insync_replicas()

    async def _fix_min_insync_replicas(self) -> None:
        """Keep `min.insync.replicas` for the whole cluster if eligible leader replicas are in
        force.

        The brokers' own values go. Does nothing where this is so already.
        """
        if not self.features.level(ELIGIBLE_LEADER_REPLICAS):
            return
        if MIN_INSYNC_REPLICAS not in self.config_of("brokers", paths.DEFAULT_ENTITY):
            value = str(self._settings.min_insync_replicas)
            await self.alter_config("brokers", paths.DEFAULT_ENTITY, {MIN_INSYNC_REPLICAS: value})
        for name, values in list(self.image.configs.get("brokers", {}).items()):
            if name != paths.DEFAULT_ENTITY and MIN_INSYNC_REPLICAS in values:
                await self.alter_config("brokers", name, {MIN_INSYNC_REPLICAS: None})

    # Configs

    def config_of(self, entity_type: str, entity_name: str) -> dict[str, str]:
        """Return the stored config of one entity, empty if there is none. Do not change the dict.

        Args:
            entity_type: topics, brokers, clients, users or ips.
            entity_name: as in the tree: see `paths.sanitize` and `paths.DEFAULT_ENTITY`; a
                (user, client) pair is `users`, `<user>/clients/<client>`.
        """
        return self.image.configs.get(entity_type, {}).get(entity_name, {})

    async def stored_config(self, entity_type: str, entity_name: str) -> dict[str, str]:
        """Return the config of one entity as the tree has it, also before the image is there.

        Raises CoordinationError.
        """
        config: dict[str, str] = {}

        async def read() -> None:
            config.update(await self._configs.stored_config(entity_type, entity_name))

        await self._while_away(read)
        return config

    async def alter_config(
        self, entity_type: str, entity_name: str, changes: Mapping[str, str | None]
    ) -> dict[str, str]:
        """Set the keys of `changes` (None removes one); return the entity's whole config.

        Values are checked by the caller.
        """
        return await self.edit_config(
            entity_type, entity_name, lambda config: with_changes(config, changes)
        )

    async def edit_config(
        self, entity_type: str, entity_name: str, edit: Edit, *, validate_only: bool = False
    ) -> dict[str, str]:
        """Give an entity the config that `edit` makes of what the tree has; return it.

        Use this where the new values depend on the present ones: no change of another process is
        lost. `edit` checks the values, and what it raises ends the edit. With `validate_only`
        nothing is written.
        """
        return await self._configs.edit(entity_type, entity_name, edit, validate_only=validate_only)
