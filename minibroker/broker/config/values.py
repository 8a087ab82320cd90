"""`BrokerValues`: the user's settings as typed attributes, each value checked by itself.

An instance never changes. What is altered at run time makes a new one (`dynamic.DynamicConfig`);
ask there for the present value of a key that may change. Attributes bear the unit their key
bears; `get` answers any other key. A key that stands for the same thing in several units
(`log.retention.ms`, `.minutes`, `.hours`) is one attribute in the smallest.

Source: Kafka KafkaConfig (attributes and fall-backs). `checks` has the rules that span keys, and
`broker` puts both together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.authorizers import AUTHORIZER_KEYS, parse_authorizer
from minibroker.broker.config.inter_broker import InterBrokerProtocol
from minibroker.broker.config.keys import BROKER_KEYS, FEATURE_KEYS, parse_value
from minibroker.broker.config.listeners import SecurityProtocol, parse_listeners, parse_protocol_map
from minibroker.broker.config.settings import LISTENER_PREFIX, ConfigValues
from minibroker.broker.config.strays import strays
from minibroker.broker.config.unserved import check_served, without_effect
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.listeners import Listener

# Of keys that plug-ins of Kafka read by themselves, so that KafkaConfig does not list them.
_PLUGIN_PREFIXES: Final = (LISTENER_PREFIX, "rsm.config.", "rlmm.config.", "config.providers.")


class BrokerValues(ConfigValues):
    """The broker's settings, constant after construction. Raises ConfigError for a wrong one."""

    __slots__ = (
        "advertised_kafka_version",
        "advertised_listeners",
        "authorizer",
        "auto_create_topics_enable",
        "auto_leader_rebalance_enable",
        "background_threads",
        "broker_id",
        "broker_rack",
        "cluster_id",
        "connections_max_idle_ms",
        "control_plane_listener_name",
        "controlled_shutdown_enable",
        "controlled_shutdown_max_retries",
        "controlled_shutdown_retry_backoff_ms",
        "controller_listener_name",
        "controller_socket_timeout_ms",
        "default_replication_factor",
        "delete_topic_enable",
        "feature_levels",
        "fetch_max_bytes",
        "generated_id",
        "group_initial_rebalance_delay_ms",
        "group_max_session_timeout_ms",
        "group_max_size",
        "group_min_session_timeout_ms",
        "inter_broker_listener_name",
        "inter_broker_protocol",
        "leader_imbalance_check_interval_ms",
        "leader_imbalance_per_broker_percentage",
        "listeners",
        "log_cleaner_backoff_ms",
        "log_cleaner_enable",
        "log_cleaner_idle_ms",
        "log_cleaner_threads",
        "log_dirs",
        "log_flush_interval_ms",
        "log_flush_offset_checkpoint_interval_ms",
        "log_flush_scheduler_interval_ms",
        "log_flush_start_offset_checkpoint_interval_ms",
        "log_retention_check_interval_ms",
        "log_retention_ms",
        "log_roll_jitter_ms",
        "log_roll_ms",
        "log_sync_interval_ms",
        "max_connection_creation_rate",
        "max_connections",
        "max_connections_per_ip",
        "max_connections_per_ip_overrides",
        "max_incremental_fetch_session_cache_slots",
        "max_request_partition_size_limit",
        "message_max_bytes",
        "metrics_num_samples",
        "metrics_sample_window_ms",
        "min_insync_replicas",
        "num_partitions",
        "num_recovery_threads_per_data_dir",
        "offset_metadata_max_bytes",
        "offsets_commit_required_acks",
        "offsets_commit_timeout_ms",
        "offsets_retention_check_interval_ms",
        "offsets_retention_minutes",
        "offsets_topic_compression_codec",
        "offsets_topic_num_partitions",
        "offsets_topic_replication_factor",
        "offsets_topic_segment_bytes",
        "producer_id_expiration_check_interval_ms",
        "producer_id_expiration_ms",
        "queued_max_request_bytes",
        "queued_max_requests",
        "quota_window_num",
        "quota_window_size_seconds",
        "replica_alter_log_dirs_bytes_per_s",
        "replica_fetch_backoff_ms",
        "replica_fetch_max_bytes",
        "replica_fetch_min_bytes",
        "replica_fetch_response_max_bytes",
        "replica_fetch_wait_max_ms",
        "replica_high_watermark_checkpoint_interval_ms",
        "replica_lag_time_max_ms",
        "replica_selector_class",
        "replica_socket_timeout_ms",
        "request_timeout_ms",
        "socket_listen_backlog_size",
        "socket_receive_buffer_bytes",
        "socket_request_max_bytes",
        "socket_send_buffer_bytes",
        "telemetry_max_bytes",
        "transaction_abort_timed_out_transaction_cleanup_interval_ms",
        "transaction_max_timeout_ms",
        "transaction_partition_verification_enable",
        "transaction_remove_expired_transaction_cleanup_interval_ms",
        "transaction_state_log_min_isr",
        "transaction_state_log_num_partitions",
        "transaction_state_log_replication_factor",
        "transaction_state_log_segment_bytes",
        "transactional_id_expiration_ms",
        "unclean_leader_election_enable",
        "unknown_keys",
        "without_effect",
        "zookeeper_connect",
        "zookeeper_connection_timeout_ms",
        "zookeeper_max_in_flight_requests",
        "zookeeper_session_timeout_ms",
    )

    def __init__(
        self, originals: Mapping[str, str] | None = None, generated_id: int | None = None
    ) -> None:
        """Take `originals`: key → text as the user gave it. An absent key has its default.
        `generated_id`: the broker's id in place of `broker.id=-1`.
        """
        settings = dict(originals or {})
        _join_node_id(settings)
        super().__init__(settings)
        unknown = []
        for name, text in settings.items():
            key = BROKER_KEYS.get(name)
            if key is not None:
                parse_value(key, text)
            elif name not in AUTHORIZER_KEYS and not name.startswith(_PLUGIN_PREFIXES):
                unknown.append(name)
        self.unknown_keys: tuple[str, ...] = tuple(sorted(unknown))
        self.generated_id = generated_id
        self._set_identity()
        self.authorizer = parse_authorizer(self.text("authorizer.class.name") or "", settings)
        self._set_network()
        self._check_served(settings)
        self._set_log()
        self._set_replication()
        self._set_groups()
        self._set_transactions()
        self._set_operations()

    def _check_served(self, settings: dict[str, str]) -> None:
        """Take `without_effect`. Raises ConfigError for a setting that is not served."""
        names = [listener.name for listener in self.listeners]
        names += (self.text("controller.listener.names") or "").replace(" ", "").split(",")
        unread = strays(settings, names)
        read = {name: text for name, text in settings.items() if name not in unread}
        check_served(read)
        self.without_effect = (
            *without_effect(read),
            *(f"{name} ({unread[name]})" for name in sorted(unread)),
        )
        """Each setting that changes nothing here, the last ones with the reason."""

    @property
    def is_secured(self) -> bool:
        """Return whether the broker asks some clients who they are, or what they may do."""
        return self.authorizer is not None or any(
            listener.security_protocol is not SecurityProtocol.PLAINTEXT
            for listener in self.listeners
        )

    def _set_identity(self) -> None:
        given_id = self.integer("broker.id")
        self.broker_id = given_id if self.generated_id is None else self.generated_id
        self.broker_rack = self.text("broker.rack")
        self.cluster_id = self.text("minibroker.cluster.id") or None
        self.zookeeper_connect = self.text("zookeeper.connect") or None
        self.zookeeper_session_timeout_ms = self.integer("zookeeper.session.timeout.ms")
        self.zookeeper_connection_timeout_ms = self.first_given(
            ("zookeeper.connection.timeout.ms", 1), ("zookeeper.session.timeout.ms", 1)
        )
        self.zookeeper_max_in_flight_requests = self.integer("zookeeper.max.in.flight.requests")
        self.advertised_kafka_version = self.text("minibroker.advertised.kafka.version")
        self.feature_levels = {
            key: self.integer(key) for key in FEATURE_KEYS if self.get(key) is not None
        }

    def _set_network(self) -> None:
        protocols = parse_protocol_map(self.text("listener.security.protocol.map") or "")
        controllers = {
            name.strip().upper()
            for name in (self.text("controller.listener.names") or "").split(",")
        }
        self.listeners = parse_listeners(
            "listeners",
            self.text("listeners") or "",
            protocols,
            controller_names=controllers,
            distinct_ports=True,
        )
        advertised = self.text("advertised.listeners")
        self.advertised_listeners = _with_host_names(
            self.listeners
            if advertised is None
            else parse_listeners(
                "advertised.listeners",
                advertised,
                protocols,
                controller_names=controllers,
                distinct_ports=False,
            )
        )
        self.inter_broker_listener_name = (
            self.text("inter.broker.listener.name")
            or self.text("security.inter.broker.protocol")
            or ""
        ).upper()
        control_plane = (self.text("control.plane.listener.name") or "").upper()
        self.control_plane_listener_name = control_plane or None
        self.controller_listener_name = control_plane or self.inter_broker_listener_name
        """The listener between the controller and a broker, in both directions."""
        self.socket_send_buffer_bytes = self.integer("socket.send.buffer.bytes")
        self.socket_receive_buffer_bytes = self.integer("socket.receive.buffer.bytes")
        self.socket_request_max_bytes = self.integer("socket.request.max.bytes")
        self.socket_listen_backlog_size = self.integer("socket.listen.backlog.size")
        self.max_connections = self.integer("max.connections")
        self.max_connections_per_ip = self.integer("max.connections.per.ip")
        self.max_connections_per_ip_overrides = _connection_overrides(
            self.text("max.connections.per.ip.overrides") or ""
        )
        self.max_connection_creation_rate = self.integer("max.connection.creation.rate")
        self.connections_max_idle_ms = self.integer("connections.max.idle.ms")
        self.queued_max_requests = self.integer("queued.max.requests")
        self.queued_max_request_bytes = self.integer("queued.max.request.bytes")
        self.request_timeout_ms = self.integer("request.timeout.ms")
        self.fetch_max_bytes = self.integer("fetch.max.bytes")
        self.max_incremental_fetch_session_cache_slots = self.integer(
            "max.incremental.fetch.session.cache.slots"
        )
        self.max_request_partition_size_limit = self.integer("max.request.partition.size.limit")

    def _set_log(self) -> None:
        directories = self.text("log.dirs") or self.text("log.dir") or ""
        self.log_dirs = tuple(filter(None, (part.strip() for part in directories.split(","))))
        self.num_partitions = self.integer("num.partitions")
        self.auto_create_topics_enable = self.boolean("auto.create.topics.enable")
        self.delete_topic_enable = self.boolean("delete.topic.enable")
        self.min_insync_replicas = self.integer("min.insync.replicas")
        self.message_max_bytes = self.integer("message.max.bytes")
        self.log_roll_ms = self.first_given(("log.roll.ms", 1), ("log.roll.hours", 3_600_000))
        self.log_roll_jitter_ms = self.first_given(
            ("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)
        )
        self.log_retention_ms = max(
            -1,
            self.first_given(
                ("log.retention.ms", 1),
                ("log.retention.minutes", 60_000),
                ("log.retention.hours", 3_600_000),
            ),
        )
        self.log_retention_check_interval_ms = self.integer("log.retention.check.interval.ms")
        self.log_flush_scheduler_interval_ms = self.integer("log.flush.scheduler.interval.ms")
        self.log_flush_interval_ms = self.first_given(
            ("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)
        )
        self.log_flush_offset_checkpoint_interval_ms = self.integer(
            "log.flush.offset.checkpoint.interval.ms"
        )
        self.log_flush_start_offset_checkpoint_interval_ms = self.integer(
            "log.flush.start.offset.checkpoint.interval.ms"
        )
        self.log_cleaner_enable = self.boolean("log.cleaner.enable")
        self.log_cleaner_threads = self.integer("log.cleaner.threads")
        self.log_cleaner_backoff_ms = self.integer("log.cleaner.backoff.ms")
        self.log_cleaner_idle_ms = self.integer("minibroker.log.cleaner.idle.ms")
        self.log_sync_interval_ms = self.integer("minibroker.log.sync.interval.ms")
        self.num_recovery_threads_per_data_dir = self.integer("num.recovery.threads.per.data.dir")

    def _set_replication(self) -> None:
        self.default_replication_factor = self.integer("default.replication.factor")
        self.unclean_leader_election_enable = self.boolean("unclean.leader.election.enable")
        self.auto_leader_rebalance_enable = self.boolean("auto.leader.rebalance.enable")
        self.leader_imbalance_check_interval_ms = 1000 * self.integer(
            "leader.imbalance.check.interval.seconds"
        )
        self.leader_imbalance_per_broker_percentage = self.integer(
            "leader.imbalance.per.broker.percentage"
        )
        self.controlled_shutdown_enable = self.boolean("controlled.shutdown.enable")
        self.controlled_shutdown_max_retries = self.integer("controlled.shutdown.max.retries")
        self.controlled_shutdown_retry_backoff_ms = self.integer(
            "controlled.shutdown.retry.backoff.ms"
        )
        self.controller_socket_timeout_ms = self.integer("controller.socket.timeout.ms")
        self.inter_broker_protocol = InterBrokerProtocol.parse(
            str(self.text("inter.broker.protocol.version"))
        )
        self.replica_lag_time_max_ms = self.integer("replica.lag.time.max.ms")
        self.replica_selector_class = self.text("replica.selector.class")
        self.replica_socket_timeout_ms = self.integer("replica.socket.timeout.ms")
        self.replica_fetch_max_bytes = self.integer("replica.fetch.max.bytes")
        self.replica_fetch_min_bytes = self.integer("replica.fetch.min.bytes")
        self.replica_fetch_wait_max_ms = self.integer("replica.fetch.wait.max.ms")
        self.replica_fetch_backoff_ms = self.integer("replica.fetch.backoff.ms")
        self.replica_fetch_response_max_bytes = self.integer("replica.fetch.response.max.bytes")
        self.replica_high_watermark_checkpoint_interval_ms = self.integer(
            "replica.high.watermark.checkpoint.interval.ms"
        )

    def _set_groups(self) -> None:
        self.group_initial_rebalance_delay_ms = self.integer("group.initial.rebalance.delay.ms")
        self.group_min_session_timeout_ms = self.integer("group.min.session.timeout.ms")
        self.group_max_session_timeout_ms = self.integer("group.max.session.timeout.ms")
        self.group_max_size = self.integer("group.max.size")
        self.offset_metadata_max_bytes = self.integer("offset.metadata.max.bytes")
        self.offsets_topic_num_partitions = self.integer("offsets.topic.num.partitions")
        self.offsets_topic_replication_factor = self.integer("offsets.topic.replication.factor")
        self.offsets_topic_segment_bytes = self.integer("offsets.topic.segment.bytes")
        self.offsets_topic_compression_codec = self.integer("offsets.topic.compression.codec")
        self.offsets_retention_minutes = self.integer("offsets.retention.minutes")
        self.offsets_retention_check_interval_ms = self.integer(
            "offsets.retention.check.interval.ms"
        )
        self.offsets_commit_timeout_ms = self.integer("offsets.commit.timeout.ms")
        self.offsets_commit_required_acks = self.integer("offsets.commit.required.acks")

    def _set_transactions(self) -> None:
        self.producer_id_expiration_ms = self.integer("producer.id.expiration.ms")
        self.replica_alter_log_dirs_bytes_per_s = self.integer(
            "replica.alter.log.dirs.io.max.bytes.per.second"
        )
        self.producer_id_expiration_check_interval_ms = self.integer(
            "producer.id.expiration.check.interval.ms"
        )
        self.transaction_max_timeout_ms = self.integer("transaction.max.timeout.ms")
        self.transactional_id_expiration_ms = self.integer("transactional.id.expiration.ms")
        self.transaction_state_log_num_partitions = self.integer(
            "transaction.state.log.num.partitions"
        )
        self.transaction_state_log_replication_factor = self.integer(
            "transaction.state.log.replication.factor"
        )
        self.transaction_state_log_min_isr = self.integer("transaction.state.log.min.isr")
        self.transaction_state_log_segment_bytes = self.integer(
            "transaction.state.log.segment.bytes"
        )
        self.transaction_partition_verification_enable = self.boolean(
            "transaction.partition.verification.enable"
        )
        self.transaction_abort_timed_out_transaction_cleanup_interval_ms = self.integer(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        )
        self.transaction_remove_expired_transaction_cleanup_interval_ms = self.integer(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        )

    def _set_operations(self) -> None:
        self.telemetry_max_bytes = self.integer("telemetry.max.bytes")
        self.quota_window_num = self.integer("quota.window.num")
        self.quota_window_size_seconds = self.integer("quota.window.size.seconds")
        self.metrics_num_samples = self.integer("metrics.num.samples")
        self.metrics_sample_window_ms = self.integer("metrics.sample.window.ms")
        self.background_threads = self.integer("background.threads")


def _join_node_id(settings: dict[str, str]) -> None:
    """Give the value of one of `broker.id` and `node.id` to the other: they name the same thing."""
    if "node.id" in settings:
        settings.setdefault("broker.id", settings["node.id"])
    elif "broker.id" in settings:
        settings["node.id"] = settings["broker.id"]


def _with_host_names(listeners: tuple[Listener, ...]) -> tuple[Listener, ...]:
    """Return the listeners with a host each: this machine's name where none is given."""
    if all(listener.host for listener in listeners):
        return listeners
    from socket import gethostname  # noqa: PLC0415  rarely needed

    return tuple(
        listener if listener.host else listener._replace(host=gethostname())
        for listener in listeners
    )


def _connection_overrides(text: str) -> dict[str, int]:
    """Return host → count for `host:count,…` of `max.connections.per.ip.overrides`. Raises
    ConfigError.
    """
    overrides: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, colon, count = item.rpartition(":")
        is_host = host and all(char.isalnum() or char in "-_.:%[]" for char in host)
        if not (colon and is_host and count.strip().isdecimal()):
            raise ConfigError(
                f"Invalid value {text} for configuration max.connections.per.ip.overrides: "
                f"{item!r} is not HOST:COUNT"
            )
        overrides[host.strip()] = int(count)
    return overrides
