"""`BrokerConfig`: the broker's settings, each of them right and all of them together.

An instance never changes. A change at run time makes a new one (`dynamic.DynamicConfig`); ask there
for the present value of a key that may change. The rules that span several keys are here: each
complaint names the keys, their values and the way out.

Source: Kafka KafkaConfig.validateValues, OffsetConfig, GroupCoordinatorConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.keys import BROKER_KEYS
from minibroker.broker.config.settings import LISTENER_LIMITS, LISTENER_PREFIX
from minibroker.broker.config.values import BrokerValues
from minibroker.kafka.config_keys import parse_value
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

GENERATED_ID: Final = -1
"""`broker.id` of a broker that gets its id from ZooKeeper."""
SERVED_ASSIGNORS: Final = ("uniform", "range")
"""Assignors of consumer groups; Kafka 3.9 names their classes, such as `….UniformAssignor`."""
SERVED_SELECTORS: Final = ("org.apache.kafka.common.replica.RackAwareReplicaSelector",)
CODEC_MAX: Final = 4
"""Largest codec of `offsets.topic.compression.codec`: zstd."""
_MIB: Final = 1 << 20

_ORDERED: Final = (
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.share.min.session.timeout.ms", "group.share.session.timeout.ms"),
    ("group.share.session.timeout.ms", "group.share.max.session.timeout.ms"),
    ("group.share.min.heartbeat.interval.ms", "group.share.heartbeat.interval.ms"),
    ("group.share.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"),
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
)
"""(smaller, larger): Kafka refuses limits that cross."""


class BrokerConfig(BrokerValues):
    """The broker's settings. Raises ConfigError when one is wrong or two contradict each other."""

    __slots__ = ()

    def __init__(
        self, originals: Mapping[str, str] | None = None, generated_id: int | None = None
    ) -> None:
        """Take `originals`: key → text as the user gave it. An absent key has its default.
        `generated_id`: the broker's id in place of `broker.id=-1`.
        """
        super().__init__(originals, generated_id)
        _check(self)

    def with_overrides(self, overrides: Mapping[str, str]) -> BrokerConfig:
        """Return a config in which `overrides` are stronger than what the user gave at start."""
        return BrokerConfig({**self.originals, **overrides}, self.generated_id)

    def with_generated_id(self, broker_id: int) -> BrokerConfig:
        """Return a config of the broker that got this id, because its own was `broker.id=-1`."""
        return BrokerConfig(self.originals, broker_id)


def _check(config: BrokerValues) -> None:
    """Raise ConfigError for the first rule that does not hold."""
    _check_identity(config)
    _check_listeners(config)
    _check_connections(config)
    _check_log(config)
    for smaller, larger in _ORDERED:
        if smaller in config.originals or larger in config.originals:
            _require_order(config, smaller, larger)
    if "group.coordinator.rebalance.protocols" in config.originals:
        protocols = config.words("group.coordinator.rebalance.protocols")
        if "classic" not in protocols:
            raise ConfigError(
                f"group.coordinator.rebalance.protocols={','.join(protocols)}: "
                "classic cannot be left out"
            )
    for name in config.words("group.consumer.assignors"):
        if name.rpartition(".")[2].lower().removesuffix("assignor") not in SERVED_ASSIGNORS:
            raise ConfigError(
                f"group.consumer.assignors has {name}; served are {', '.join(SERVED_ASSIGNORS)}"
            )
    selector = config.replica_selector_class
    if selector and selector not in SERVED_SELECTORS:
        raise ConfigError(
            f"replica.selector.class={selector}: no Java class is loaded; "
            f"served are {', '.join(SERVED_SELECTORS)}, and no value, so that consumers read from"
            " the leader"
        )
    codec = config.offsets_topic_compression_codec
    if not 0 <= codec <= CODEC_MAX:
        raise ConfigError(
            f"offsets.topic.compression.codec={codec}: expected 0 (none), 1 (gzip), 2 (snappy),"
            " 3 (lz4) or 4 (zstd)"
        )
    acks = config.offsets_commit_required_acks
    if not -1 <= acks <= config.offsets_topic_replication_factor:
        raise ConfigError(
            f"offsets.commit.required.acks={acks}: expected -1 to "
            f"offsets.topic.replication.factor={config.offsets_topic_replication_factor}"
        )


def _require_order(config: BrokerValues, smaller: str, larger: str) -> None:
    low, high = config.integer(smaller), config.integer(larger)
    if low > high:
        raise ConfigError(f"{smaller}={low} must not be greater than {larger}={high}")


def _check_identity(config: BrokerValues) -> None:
    node_id, broker_id = config.integer("node.id"), config.integer("broker.id")
    if node_id != broker_id:
        raise ConfigError(
            f"node.id={node_id} and broker.id={broker_id}: give the same number, or one key"
        )
    highest = config.integer("reserved.broker.max.id")
    is_limited = config.boolean("broker.id.generation.enable") and not config.words("process.roles")
    is_generated = broker_id == GENERATED_ID and is_limited and config.zookeeper_connect is not None
    if not is_generated and (broker_id < 0 or (is_limited and broker_id > highest)):
        limit = f" to reserved.broker.max.id={highest}" if is_limited else ""
        raise ConfigError(
            f"broker.id={broker_id}: expected a number from 0{limit}, or {GENERATED_ID} with "
            "zookeeper.connect and broker.id.generation.enable=true, for an id that is generated"
        )
    for key in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        controllers = config.words(key)
        if len(controllers) > 1:
            raise ConfigError(
                f"{key}={','.join(controllers)}: expected one controller, because minibroker forms "
                "no quorum and each of several would be a cluster of its own; start one minibroker "
                "with one entry, or several brokers without this key: in one process "
                "(--brokers 3), or on one ZooKeeper (zookeeper.connect)"
            )
    roles = config.words("process.roles")
    if roles and "broker" not in roles:
        raise ConfigError(
            f"process.roles={','.join(roles)}: this process is a broker; add broker or drop the key"
        )


def _check_listeners(config: BrokerValues) -> None:
    names = [listener.name for listener in config.listeners]
    advertised = [listener.name for listener in config.advertised_listeners]
    if not names:
        raise ConfigError(
            f"listeners={config.text('listeners')}: no listener is left for clients "
            f"(controller.listener.names={config.text('controller.listener.names')})"
        )
    if not set(advertised) <= set(names) or not advertised:
        raise ConfigError(
            f"advertised.listeners has {', '.join(advertised) or 'no listener'}; "
            f"expected names out of listeners: {', '.join(names)}"
        )
    for listener in config.advertised_listeners:
        if listener.host == "0.0.0.0":
            raise ConfigError(
                f"clients cannot connect to {listener}: set advertised.listeners="
                f"{listener.name}://HOST:{listener.port} with a HOST that they can reach"
            )
    _check_inter_broker(config, advertised)
    _check_control_plane(config, advertised)


def _check_inter_broker(config: BrokerValues, advertised: list[str]) -> None:
    by_name = config.originals.get("inter.broker.listener.name")
    by_protocol = config.originals.get("security.inter.broker.protocol")
    if by_name is not None and by_protocol is not None:
        raise ConfigError(
            f"inter.broker.listener.name={by_name} and security.inter.broker.protocol="
            f"{by_protocol}: give only one of them"
        )
    if config.inter_broker_listener_name in advertised:
        return
    if by_name is None:
        raise ConfigError(
            f"brokers talk to each other through listener {config.inter_broker_listener_name}, "
            f"which is not advertised: set inter.broker.listener.name={advertised[0]}"
        )
    raise ConfigError(
        f"inter.broker.listener.name={by_name} is not advertised: "
        f"expected one of {', '.join(advertised)}"
    )


def _check_control_plane(config: BrokerValues, advertised: list[str]) -> None:
    name = config.control_plane_listener_name
    if name is None:
        return
    if config.words("process.roles"):
        raise ConfigError(
            f"control.plane.listener.name={name} is not supported with process.roles: a controller"
            " on a ZooKeeper uses it; remove one of the two"
        )
    if name == config.inter_broker_listener_name:
        raise ConfigError(
            f"control.plane.listener.name={name} is the listener between brokers, too: "
            "give a listener of its own, or remove the key"
        )
    if name not in advertised:
        raise ConfigError(
            f"control.plane.listener.name={name} is not advertised: "
            f"expected one of {', '.join(advertised)}"
        )


def _check_connections(config: BrokerValues) -> None:
    queued = config.queued_max_request_bytes
    if 0 < queued < config.socket_request_max_bytes:
        raise ConfigError(
            f"queued.max.request.bytes={queued}: expected -1 or at least "
            f"socket.request.max.bytes={config.socket_request_max_bytes}"
        )
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise ConfigError(
            "max.connections.per.ip=0 lets no client in: "
            "name the allowed addresses in max.connections.per.ip.overrides"
        )
    for listener in config.listeners:
        for key in LISTENER_LIMITS:
            name = f"{LISTENER_PREFIX}{listener.name.lower()}.{key}"
            if name in config.originals:
                row = BROKER_KEYS[key]
                row_of_listener = row.renamed(name)
                parse_value(row_of_listener, config.originals[name])
    delay = config.integer("connection.failed.authentication.delay.ms")
    if 0 <= config.connections_max_idle_ms <= delay:
        raise ConfigError(
            f"connection.failed.authentication.delay.ms={delay}: expected less than "
            f"connections.max.idle.ms={config.connections_max_idle_ms}"
        )


def _check_log(config: BrokerValues) -> None:
    if not config.log_dirs:
        raise ConfigError("log.dirs and log.dir are empty: expected at least one directory")
    for name, value, least in (
        ("log.roll.ms", config.log_roll_ms, 1),
        ("log.roll.jitter.ms", config.log_roll_jitter_ms, 0),
    ):
        if value < least:
            raise ConfigError(f"{name}={value}: expected at least {least}")
    if config.log_retention_ms == 0:
        raise ConfigError("log.retention.ms=0: expected -1 (for ever) or at least 1")
    buffer, threads = config.integer("log.cleaner.dedupe.buffer.size"), config.log_cleaner_threads
    if threads and buffer // threads <= _MIB:
        raise ConfigError(
            f"log.cleaner.dedupe.buffer.size={buffer}: expected more than 1 MiB for each of "
            f"log.cleaner.threads={threads}"
        )
