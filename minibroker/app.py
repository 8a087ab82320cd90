"""The composition root: builds every part, hands each what it needs, starts and stops them.

    start: lock the log directories → bind the listeners → join the cluster (its id is compared with
           the directories', the logs are loaded, then this broker registers) → create `--topic`s →
           accept clients → say so
    stop:  accept nobody → answer what is in hand → leave the cluster → flush the logs, write the
           checkpoints and the clean-shutdown markers

The only module that knows all the others. One `Broker` is one Kafka node; several may live in one
process.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minibroker.clock import SystemClock
from minibroker.cluster.cluster import Cluster
from minibroker.cluster.image import Endpoint
from minibroker.cluster.paths import DEFAULT_ENTITY
from minibroker.config.dynamic import DynamicConfig
from minibroker.error_codes import ErrorCode
from minibroker.errors import ConfigError, KafkaError, MinibrokerError, StorageError
from minibroker.handlers.context import Services
from minibroker.handlers.registry import advertised_versions, supported_versions
from minibroker.metrics import Metrics
from minibroker.partitions.fetch_session import FetchSessionCache
from minibroker.partitions.housekeeping import Housekeeping
from minibroker.partitions.manager import PartitionManager
from minibroker.quotas.manager import QuotaManager
from minibroker.server.server import Server
from minibroker.storage.disk import Disk
from minibroker.storage.log_manager import LogManager

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.clock import Clock
    from minibroker.cluster.image import TopicImage
    from minibroker.cluster.tree import Tree
    from minibroker.config.broker import BrokerConfig, Listener
    from minibroker.config.options import ServeOptions, TopicToCreate

logger = logging.getLogger(__name__)

TREE_FILE: Final = "minibroker-metadata.db"
"""The embedded metadata tree, in the first log directory."""
SESSION_FILE: Final = "zookeeper-session"
"""Where the ZooKeeper session outlives a crash, in the first log directory."""
REGISTRATION_GRACE_S: Final = 1.0
"""Waited beyond the session time-out for the registration that a killed predecessor left."""


class ConfigFollower:
    """Carries configurations from the cluster's image into `DynamicConfig` and the quotas."""

    def __init__(self, cluster: Cluster, dynamic: DynamicConfig, quotas: QuotaManager) -> None:
        self._cluster = cluster
        self._dynamic = dynamic
        self._quotas = quotas

    def on_topic_created(self, topic: TopicImage) -> None:
        self._dynamic.set_topic(topic.name, self._cluster.config_of("topics", topic.name))

    def on_topic_deleted(self, topic: TopicImage) -> None:
        self._dynamic.set_topic(topic.name, {})

    def on_partitions_added(self, topic: TopicImage, old_count: int) -> None:
        """More partitions go by the same configuration."""

    def on_leadership(self, topic: TopicImage, partition: int) -> None:
        """Leaders do not matter to configurations."""

    def on_config_changed(self, entity_type: str, entity_name: str) -> None:
        config = self._cluster.config_of(entity_type, entity_name)
        if entity_type == "topics":
            self._dynamic.set_topic(entity_name, config)
        elif entity_type == "brokers" and entity_name == DEFAULT_ENTITY:
            self._dynamic.set_cluster_default(config)
        elif entity_type == "brokers" and entity_name == str(self._cluster.broker_id):
            self._dynamic.set_broker(config)
        else:
            self._quotas.on_config_changed(entity_type, entity_name, config)


class Broker:
    """One running node: `start`, then `stop`; both belong to the loop's thread."""

    def __init__(self, config: BrokerConfig, *, clock: Clock | None = None) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        # One worker: what blocks is done in order, and idle it costs nothing.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="minibroker-worker")
        self._loop: asyncio.AbstractEventLoop
        self.address: tuple[str, int] = ("", 0)
        """Advertised host and port of the first listener, once started."""
        self.dynamic = DynamicConfig(config)
        self.logs = LogManager(
            config.log_dirs,
            clock=self.clock,
            config_of=self.dynamic.topic,
            disk=Disk(run_later=self._run_later),
        )
        self.logs.disk.producer_expiration_ms = config.producer_id_expiration_ms
        self.cluster = Cluster(
            broker_id=config.broker_id,
            tree=self._make_tree(),
            clock=self.clock,
            rack=config.broker_rack,
            registration_timeout_s=(
                config.zookeeper_session_timeout_ms / 1000 + REGISTRATION_GRACE_S
            ),
        )
        self.housekeeping = Housekeeping(
            logs=self.logs, dynamic=self.dynamic, clock=self.clock, run_later=self._run_later
        )
        self.partitions = PartitionManager(
            broker_id=config.broker_id,
            image=lambda: self.cluster.image,
            logs=self.logs,
            dynamic=self.dynamic,
            on_change=self.housekeeping.note_change,
            run_later=self._run_after,
        )
        self.services = Services(
            clock=self.clock,
            cluster=self.cluster,
            dynamic=self.dynamic,
            fetch_sessions=FetchSessionCache(
                config.max_incremental_fetch_session_cache_slots, self.clock
            ),
            metrics=Metrics(),
            partitions=self.partitions,
            quotas=QuotaManager(config, self.clock),
            supported_apis=supported_versions(config.advertised_kafka_version),
            advertised_apis=advertised_versions(config.advertised_kafka_version),
        )
        self._server: Server

    def _make_tree(self) -> Tree:
        config = self.config
        if config.zookeeper_connect is None:
            from minibroker.cluster.embedded import EmbeddedTree  # noqa: PLC0415  one home of two

            return EmbeddedTree(Path(config.log_dirs[0], TREE_FILE), self.clock)
        from minibroker.cluster.zookeeper import ZooKeeperTree  # noqa: PLC0415  as above

        return ZooKeeperTree(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            session_file=Path(config.log_dirs[0], SESSION_FILE),
        )

    # Start.

    async def start(self, topics: Sequence[TopicToCreate] = ()) -> None:
        """Serve. Raises MinibrokerError with one sentence for the user; nothing is left running."""
        self._loop = asyncio.get_running_loop()
        self._server = Server(self.services, self._loop)
        self.logs.open()
        try:
            endpoints = [await self._listen(listener) for listener in self.config.listeners]
            self.cluster.set_endpoints(endpoints)
            self.address = (endpoints[0].host, endpoints[0].port)
            self.cluster.subscribe(ConfigFollower(self.cluster, self.dynamic, self.services.quotas))
            self.cluster.subscribe(self.partitions)
            self.dynamic.subscribe(self.partitions)
            self.dynamic.subscribe(self._server)
            await self.cluster.start(self._accept_cluster_id)
            for topic in topics:
                await self._create(topic)
        except BaseException:
            await self._server.stop()
            await self.cluster.close()
            self.logs.release()
            self._worker.shutdown()
            raise
        self._server.start_accepting()

    def _accept_cluster_id(self, cluster_id: str) -> None:
        """The tree named the cluster: compare with the log directories, then load the logs."""
        self.logs.claim(self.config.broker_id, cluster_id)
        self.logs.load()

    async def _listen(self, listener: Listener) -> Endpoint:
        """Bind one listener; returns the address that clients are told."""
        try:
            _, port = await self._server.listen(listener)
        except OSError as error:
            raise StorageError(
                f"cannot listen on {listener.host}:{listener.port}: {error.strerror or error}"
            ) from error
        advertised = next(
            (one for one in self.config.advertised_listeners if one.name == listener.name), listener
        )
        return Endpoint(
            listener.name,
            advertised.host,
            advertised.port or port,
            listener.security_protocol,
        )

    async def _create(self, topic: TopicToCreate) -> None:
        """A topic of the command line, if it is not there yet. Raises ConfigError, KafkaError."""
        from minibroker.config.topic import validate_topic_config  # noqa: PLC0415  seldom asked for

        validate_topic_config(topic.configs, self.config)
        count = self.config.num_partitions if topic.partitions < 0 else topic.partitions
        try:
            await self.cluster.create_topic(
                topic.name,
                count,
                self.config.default_replication_factor,
                configs=topic.configs,
            )
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise ConfigError(f"--topic {topic.name}: {error.detail}") from error

    # Stop.

    async def stop(self) -> None:
        """Stop cleanly; everything acknowledged is on the disk when this returns."""
        self.partitions.wake_all()
        await self._server.stop()
        self.housekeeping.close()
        await self.cluster.close()
        self.partitions.commit()
        self._worker.shutdown()
        self.logs.close()

    # Work outside the loop.

    def _run_later(self, task: Callable[[], None]) -> None:
        """Run what may block on the worker; after the stop began, at once."""
        try:
            self._worker.submit(_run_logged, task)
        except RuntimeError:
            task()

    def _run_after(self, delay_ms: int, task: Callable[[], None]) -> None:
        self._loop.call_later(delay_ms / 1000, self._run_later, task)


def _run_logged(task: Callable[[], None]) -> None:
    """Run a task of the worker; what it cannot do is said, nobody waits for it."""
    try:
        task()
    except (MinibrokerError, OSError) as error:
        logger.error("background work failed: %s", error)


def run(config: BrokerConfig, options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit code of the process."""
    directory = None
    if options.in_memory:
        import tempfile  # noqa: PLC0415  the usual start does without

        directory = tempfile.mkdtemp(prefix="minibroker-")
        config = config.with_overrides({"log.dirs": directory})
    try:
        with asyncio.Runner(loop_factory=_loop_factory(options.loop)) as runner:
            return runner.run(_serve(config, options))
    finally:
        if directory is not None:
            import shutil  # noqa: PLC0415  as above

            shutil.rmtree(directory, ignore_errors=True)


def _loop_factory(name: str) -> Callable[[], Any]:
    if name == "asyncio":
        return asyncio.new_event_loop
    import uvloop  # noqa: PLC0415  the other loop must not pay for it

    factory: Callable[[], Any] = uvloop.new_event_loop
    return factory


def _write_ready_file(path: str, line: str) -> None:
    Path(path).write_text(line, encoding="utf-8")


async def _serve(config: BrokerConfig, options: ServeOptions) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    try:
        broker = Broker(config)
        await broker.start(options.topics)
    except MinibrokerError as error:
        sys.stderr.write(f"minibroker: {error}\n")
        return 1
    # What start-up made stays for ever: the collector need not look at it again.
    gc.freeze()
    host, port = broker.address
    line = f"minibroker listening on {host}:{port}\n"
    sys.stdout.write(line)
    sys.stdout.flush()
    code = 0
    if options.ready_file is not None:
        try:
            _write_ready_file(options.ready_file, line)
        except OSError as error:
            sys.stderr.write(f"minibroker: cannot write {options.ready_file}: {error.strerror}\n")
            code = 1
    if not code:
        await stopping.wait()
    try:
        await broker.stop()
    except MinibrokerError as error:
        sys.stderr.write(f"minibroker: stopped, but not cleanly: {error}\n")
        return 1
    return code
