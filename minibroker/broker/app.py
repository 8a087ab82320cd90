"""The composition root: builds every part, gives it the others it uses, starts and stops it.

    start: lock the log directories → join the cluster (its id is compared with the directories',
           altered settings are read, the listeners are bound, the logs are loaded, then this broker
           registers) → create `--topic`s → accept clients → say so
    stop:  let other brokers lead → accept no client → answer the requests in hand → leave the
           cluster → flush the logs, write the checkpoints and the clean-shutdown markers

The only module that knows all the others. One `Broker` is one Kafka node; several may live in one
process.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.broker_access import BrokerAccess
from minibroker.broker.broker_listeners import BrokerListeners
from minibroker.broker.cluster.cluster import Cluster, ClusterSettings
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.config.listener_changes import ADDRESS_KEYS
from minibroker.broker.config_follower import ConfigFollower
from minibroker.broker.coordinators import Coordinators
from minibroker.broker.handlers.common.context import Services
from minibroker.broker.handlers.registry import advertised_versions, supported_versions
from minibroker.broker.metrics import Metrics
from minibroker.broker.partitions.fetch_session import FetchSessionCache
from minibroker.broker.partitions.housekeeping import Housekeeping
from minibroker.broker.partitions.log_directories import FailedDirectories, LogMoves
from minibroker.broker.partitions.manager import PartitionManager
from minibroker.broker.quotas.manager import QuotaManager
from minibroker.broker.quotas.replication_quota import ReplicationQuotas
from minibroker.broker.replication.replication import Replication
from minibroker.broker.resolver import Resolver
from minibroker.broker.server.server import Server
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_manager import LogManager
from minibroker.broker.timers import Timers
from minibroker.broker.worker import LONG_LANES, Workers
from minibroker.clock import SystemClock
from minibroker.kafka.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.cluster.leader_balance import BalanceRule
    from minibroker.broker.cluster.shared import TreeSession
    from minibroker.broker.cluster.tree import Tree
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.topic_option import TopicToCreate
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.replication.outboxes import Outboxes
    from minibroker.broker.server.connections import Connections
    from minibroker.broker.server.interceptor import Interceptor, LoginInterceptor
    from minibroker.broker.storage.files import Files
    from minibroker.clock import Clock
    from minibroker.kafka.ids import TopicPartition

logger = logging.getLogger(__name__)

TREE_FILE: Final = "minibroker-metadata.db"
"""The embedded metadata tree, in the first log directory."""
CLUSTER_FILE: Final = "minibroker-cluster.db"
"""The tree of several brokers of one process, in the directory that has their directories."""
SESSION_FILE: Final = "zookeeper-session"
"""Name of the file that keeps the ZooKeeper session over a crash, in the first log directory."""
REGISTRATION_GRACE_S: Final = 1.0
"""Waited beyond the session time-out for the registration that a killed predecessor left."""


class Broker:
    """One running node: `start`, then `stop`; both belong to the loop's thread."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        files: Files = REAL_FILES,
        tree: TreeSession | None = None,
    ) -> None:
        """`tree`: the metadata that brokers of one process share; None: as `config` says. Raises
        ConfigError.
        """
        # Constant after construction, except where it says otherwise.
        self.config = config
        self._tree = tree
        self._has_peers = tree is not None or config.zookeeper_connect is not None
        """Other brokers may be in the cluster."""
        self.clock = clock or SystemClock()
        self.timers = Timers(self.clock)
        self.workers = Workers.threads_of(self._storage_failed, long_checks=LONG_LANES)
        self.failure: asyncio.Future[str]
        """Made at the start. Done with the reason when the broker cannot go on; then `stop` is
        due."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.address: tuple[str, int] = ("", 0)
        """Advertised host and port of the first listener, once started."""
        self.dynamic = DynamicConfig(config)
        self.logs = self._make_logs(files)
        self.cluster = self._make_cluster()
        self.access = BrokerAccess(
            config, self.dynamic, self.cluster, self.clock, self.timers, has_peers=self._has_peers
        )
        self.housekeeping = self._make_housekeeping()
        self.partitions = self._make_partitions()
        self.failed_directories = self._make_failed_directories()
        self.coordinators = Coordinators(
            cluster=self.cluster,
            partitions=self.partitions,
            config=config,
            dynamic=self.dynamic,
            clock=self.clock,
            timers=self.timers,
            worker=self.workers.common,
        )
        self.replication_quotas = ReplicationQuotas(config, self.dynamic, self.clock)
        self.replication = self._make_replication()
        self.services = self._make_services()
        self._outboxes: Outboxes | None = None
        """Made at the start, or when it is needed first, where there may be other brokers."""
        self._server: Server
        """Made at the start."""
        self._listeners: BrokerListeners

    @property
    def connections(self) -> Connections:
        """Return the open connections, once started."""
        return self._server.connections

    @property
    def ports(self) -> dict[str, int]:
        """Return listener → the port it has, once started."""
        return self._listeners.ports

    def _make_logs(self, files: Files) -> LogManager:
        """Return the manager of the logs in `log.dirs`; nothing is read yet."""
        logs = LogManager(
            self.config.log_dirs,
            clock=self.clock,
            config_of=self.dynamic.topic,
            disk=Disk(
                files,
                self.workers,
                after=self.timers.after,
                call_later=lambda delay_s, call: asyncio.get_running_loop().call_later(
                    delay_s, call
                ),
            ),
        )
        logs.disk.producer_expiration_ms = self.config.producer_id_expiration_ms
        return logs

    def _make_housekeeping(self) -> Housekeeping:
        """Return what syncs, checkpoints, retains and compacts the logs."""
        housekeeping = Housekeeping(
            logs=self.logs,
            dynamic=self.dynamic,
            clock=self.clock,
            timers=self.timers,
            workers=self.workers.files,
            on_storage_error=self._storage_failed,
        )
        self.logs.on_unsynced = housekeeping.syncs.note
        self.logs.disk.on_producers_loaded = housekeeping.note_producers
        return housekeeping

    def _make_partitions(self) -> PartitionManager:
        """Return the partitions, whose fsyncs and large checks leave the loop."""
        partitions = PartitionManager(
            broker_id=self.config.broker_id,
            image=lambda: self.cluster.image,
            logs=self.logs,
            dynamic=self.dynamic,
            on_change=self.housekeeping.note_change,
            workers=self.workers,
        )
        self.logs.report_high_watermarks(partitions.high_watermark_of)
        return partitions

    def _make_replication(self) -> Replication:
        """Return what fetches from other leaders, and keeps the ISR of what is led here."""
        replication = Replication(
            cluster=self.cluster,
            partitions=self.partitions,
            config=self.config,
            dynamic=self.dynamic,
            timers=self.timers,
            quota=self.replication_quotas.follower,
            has_peers=self._has_peers,
        )
        self.partitions.on_role = replication.on_role
        self.partitions.on_follower_fetch = replication.note_fetch
        return replication

    def _make_failed_directories(self) -> FailedDirectories:
        """Return what takes a log directory offline when its disk refuses."""
        failed_directories = FailedDirectories(
            logs=self.logs,
            partitions=self.partitions,
            on_offline=self._replicas_failed,
            on_fatal=self._fail,
            # The embedded tree lives in the first one.
            essential=(None if self._has_peers else self.logs.directories[0].path),
            has_other_disks=self.config.zookeeper_connect is not None,
        )
        self.partitions.on_storage_error = failed_directories.note
        return failed_directories

    def _balance_rule(self) -> BalanceRule | None:
        """Return the rule by which leaders return to preferred replicas, None without one."""
        config = self.config
        if not (self._has_peers and config.auto_leader_rebalance_enable):
            return None
        from minibroker.broker.cluster.leader_balance import BalanceRule  # noqa: PLC0415  for several

        return BalanceRule(
            config.leader_imbalance_check_interval_ms, config.leader_imbalance_per_broker_percentage
        )

    def _make_cluster(self) -> Cluster:
        """Return the metadata, over ZooKeeper or the embedded tree."""
        config = self.config
        settings = ClusterSettings(
            cluster_id=config.cluster_id,
            rack=config.broker_rack,
            registration_timeout_s=(
                config.zookeeper_session_timeout_ms / 1000 + REGISTRATION_GRACE_S
            ),
            kafka_release=config.advertised_kafka_version,
            feature_levels=config.feature_levels,
            min_insync_replicas=config.min_insync_replicas,
            deletes_topics=config.delete_topic_enable,
            marks_recovery=config.inter_broker_protocol.marks_recovery,
            balance=self._balance_rule(),
            has_controller_requests=config.zookeeper_connect is not None,
        )
        return Cluster(
            broker_id=config.broker_id,
            tree=self._make_tree(),
            clock=self.clock,
            settings=settings,
            delete_logs=self._delete_logs,
            allows_unclean=lambda topic: self.dynamic.topic(topic).unclean_leader_election_enable,
            timers=self.timers,
        )

    def _make_tree(self) -> Tree:
        config = self.config
        if self._tree is not None:
            return self._tree
        if config.zookeeper_connect is None:
            from minibroker.broker.cluster.embedded import EmbeddedTree  # noqa: PLC0415  one home of two

            return EmbeddedTree(f"{config.log_dirs[0]}/{TREE_FILE}", self.clock)
        from pathlib import Path  # noqa: PLC0415  as above

        from minibroker.broker.cluster.zookeeper import ZooKeeperTree  # noqa: PLC0415  as above

        return ZooKeeperTree(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            session_file=Path(config.log_dirs[0], SESSION_FILE),
        )

    def _make_services(self) -> Services:
        """Return the parts that handlers may use."""
        release = self.config.advertised_kafka_version
        kind = {
            "with_zookeeper": self.config.zookeeper_connect is not None,
            "has_peers": self._has_peers,
        }
        return Services(
            clock=self.clock,
            cluster=self.cluster,
            dynamic=self.dynamic,
            features=self.cluster.features,
            fetch_sessions=FetchSessionCache(
                self.config.max_incremental_fetch_session_cache_slots, self.clock
            ),
            log_moves=LogMoves(
                logs=self.logs,
                partitions=self.partitions,
                workers=self.workers.files,
                timers=self.timers,
                bytes_per_s=lambda: max(1, self.dynamic.broker.replica_alter_log_dirs_bytes_per_s),
            ),
            metrics=Metrics(),
            partitions=self.partitions,
            quotas=QuotaManager(self.config, self.clock),
            replication_quotas=self.replication_quotas,
            resolver=Resolver(),
            timers=self.timers,
            coordinators=self.coordinators,
            supported_apis=supported_versions(release, **kind),
            advertised_apis=advertised_versions(release, **kind),
            authorizer=self.access.authorizer,
            tokens=self.access.tokens,
        )

    # Start.

    async def start(self, topics: Sequence[TopicToCreate] = ()) -> None:
        """Serve. Raises MinibrokerError with one sentence for the user; nothing is left running."""
        loop = asyncio.get_running_loop()
        self.failure = loop.create_future()
        self.workers.begin(loop)
        self._server = Server(self.services, loop)
        self._listeners = BrokerListeners(self._server, self.cluster, self.dynamic)
        self.logs.open()
        try:
            services = self.services
            self.cluster.subscribe(
                ConfigFollower(
                    self.cluster,
                    self.dynamic,
                    services.quotas,
                    services.resolver,
                    lambda: services.passwords,
                )
            )
            self.cluster.subscribe(self.partitions)
            self._begin_outboxes()
            self._follow_settings()
            self.cluster.when_tree_is_foreign(self._fail)
            await self.cluster.start(
                self._accept_cluster_id,
                self._tree.wait_until_gathered if self._tree is not None else None,
                self._prepare,
            )
            await self.access.begin()
            await self._follow_listeners()
            await self.access.write_users()
            self.partitions.begin()
            self.housekeeping.begin()
            self.services.log_moves.resume()
            if self.partitions.lost:
                await self.cluster.leadership.replicas_failed(self.partitions.lost)
            if topics:
                from minibroker.broker.topics_at_start import create_topics  # noqa: PLC0415  seldom

                await create_topics(self.cluster, self.config, topics)
        except BaseException:
            await self.replication.close()
            self._listeners.close()
            await self._server.stop()
            self.timers.close()
            self.housekeeping.close()
            await self.access.close()
            await self.cluster.close()
            await self._close_outboxes()
            self.workers.close()
            self.logs.release()
            raise
        self._server.start_accepting()
        loop.call_soon(self.coordinators.start)

    async def _prepare(self) -> None:
        """Prepare the listeners, with what was altered in earlier runs, then load the logs, which
        may take long. Raises ConfigError, StorageError.
        """
        await self.access.load_altered(lambda: self.services.passwords)
        await self._listeners.bind()
        self.access.check_logins()
        await self._server.prepare()
        self.logs.load()

    async def _follow_listeners(self) -> None:
        """Follow alterations of the listeners from now on. Raises CoordinationError."""
        self.dynamic.subscribe(self)
        self.dynamic.checks.append(self._listeners.check)
        await self._listeners.follow()
        first = self._listeners.endpoints()[0]
        self.address = (first.host, first.port)

    def _follow_settings(self) -> None:
        """Have the parts follow settings that are altered."""
        self.dynamic.subscribe(self.partitions)
        self.dynamic.subscribe(self.housekeeping)
        self.dynamic.subscribe(self.replication_quotas)
        self.dynamic.subscribe(self._server.connections)
        self.dynamic.subscribe(self._server)
        self.dynamic.checks.append(self._server.check_config)
        self.dynamic.reloads.append(self._server.load_certificates)
        self.access.follow_peers()

    def _begin_outboxes(self) -> None:
        """Prepare for being the controller of other brokers. Those of Apache Kafka need a
        ZooKeeper. Brokers of one process are only asked for something, so their outboxes are made
        when this happens first.
        """
        if self.config.zookeeper_connect is not None:
            self._make_outboxes()
        elif self._tree is not None:
            self.cluster.have_brokers_delete(
                lambda broker_id, topic: self._make_outboxes().delete(broker_id, topic)
            )
            self.cluster.have_replicas_asked(
                lambda broker_id: self._make_outboxes().ask_replicas(broker_id)
            )

    def _make_outboxes(self) -> Outboxes:
        if self._outboxes is None:
            from minibroker.broker.replication.outboxes import Outboxes  # noqa: PLC0415  seldom needed

            self._outboxes = Outboxes(self.cluster, self.config)
            self._outboxes.begin()
        return self._outboxes

    def _accept_cluster_id(self, cluster_id: str) -> None:
        """Compare the cluster id of the tree with the log directories. Raises StorageError.

        Apache Kafka may share the tree of a ZooKeeper, and migrate it. Otherwise it stays out.
        """
        self.logs.claim(self.config.broker_id, cluster_id)
        if self.config.zookeeper_connect is None:
            self.logs.keep_kafka_out()

    def on_broker_config(self, config: BrokerConfig, keys: frozenset[str]) -> None:
        """Open and close the listeners that are altered, in a task of its own."""
        if keys & ADDRESS_KEYS:
            self._run_beside(self._listeners.follow(), "publish the listeners")

    def on_topic_config(self, topic: str | None) -> None:
        """Have leaders elected where the topic, or every one (None), now allows any replica."""
        values = self.dynamic.topic_default if topic is None else self.dynamic.topic(topic)
        if values.unclean_leader_election_enable and self.cluster.is_controller:
            self._run_beside(
                self.cluster.leadership.allow_unclean(topic), "elect leaders out of sync"
            )

    async def _delete_logs(self, topic: TopicImage, evidence: DeletionEvidence) -> None:
        """Take away the logs of a topic that is deleted. Raises StorageError."""
        await self.partitions.delete_logs(topic, evidence)

    # Disks that fail.

    def _storage_failed(self, error: StorageError) -> None:
        self.failed_directories.note(error)

    def _replicas_failed(self, names: list[TopicPartition]) -> None:
        """Tell the cluster. Until it knows, clients hear KAFKA_STORAGE_ERROR."""
        self._run_beside(
            self.cluster.leadership.replicas_failed(names), "tell the cluster of failed replicas"
        )

    def _run_beside(self, work: Coroutine[Any, Any, None], purpose: str) -> None:
        """Do some work in a task of its own. An error is logged: "could not `purpose`"."""
        task = asyncio.get_running_loop().create_task(work, name=purpose)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("could not %s: %s", task.get_name(), task.exception())

    def _fail(self, reason: str) -> None:
        if not self.failure.done():
            self.failure.set_result(reason)

    def intercept(self, interceptor: Interceptor) -> None:
        """Give requests from the next one on to the interceptor, as `minibroker.testing` does."""
        self._server.dispatcher.interceptor = interceptor

    def intercept_logins(self, interceptor: LoginInterceptor) -> None:
        """Give the logins of clients that connect from now on to the interceptor."""
        self._server.connections.login_interceptor = interceptor

    # Stop.

    async def stop(self, *, hands_over: bool = True) -> None:
        """Stop cleanly; everything acknowledged is on the disk when this returns.

        `hands_over`: whether other brokers lead before this one stops, if the settings say so too.
        """
        may_hand_over = self._has_peers and hands_over and not self.failure.done()
        if may_hand_over and self.config.controlled_shutdown_enable:
            from minibroker.broker.replication.controlled_shutdown import (  # noqa: PLC0415  at a stop only
                ControlledShutdown,
            )

            self.replication.prepare_stop()
            await ControlledShutdown(self.cluster, self.config).run()
        await self.replication.close()
        # No request comes between these and the server's stop. It would wait for followers that may
        # be gone.
        self._listeners.close()
        self.partitions.wake_all()
        self.coordinators.release_waiting()
        await self._server.stop()
        self.timers.close()
        await self.coordinators.close()
        self.housekeeping.close()
        await self.access.close()
        await self.cluster.close()
        await self._close_outboxes()
        self.partitions.deletions.end(are_finished=True)
        self.partitions.commit()
        self.logs.disk.hand_over()
        self.workers.close()
        self.logs.close()

    async def abandon(self) -> None:
        """End as kill -9 ends a process: nothing is answered, checkpointed or marked as clean.

        Acknowledged records are in the files, and the next start recovers. For tests.
        """
        self._listeners.close()
        self._server.abandon()
        await self.replication.close()
        self.timers.close()
        await self.coordinators.close()
        self.housekeeping.close()
        await self.access.close()
        await self.cluster.abandon()
        await self._close_outboxes()
        await self._server.stop()
        self.partitions.deletions.end(are_finished=False)
        self.workers.close()
        self.logs.release()

    async def _close_outboxes(self) -> None:
        if self._outboxes is not None:
            await self._outboxes.close()
