"""`BrokerValues`: the user's settings as typed attributes, each value checked by itself.

An instance never changes. A change at run time makes a new one (`dynamic.DynamicConfig`); ask there
for the present value of a key that may change. Attributes bear the unit their key bears; `get`
answers any other key. A key that stands for the same thing in several units (`log.retention.ms`,
`.minutes`, `.hours`) is one attribute in the smallest.

Source: Kafka KafkaConfig (attributes and fall-backs). `broker` has the rules that span keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.authorizers import AUTHORIZER_KEYS, parse_authorizer
from minibroker.broker.config.inter_broker import InterBrokerProtocol
from minibroker.broker.config.keys import BROKER_KEYS, FEATURE_KEYS
from minibroker.broker.config.listeners import SecurityProtocol, parse_listeners, parse_protocol_map
from minibroker.broker.config.settings import LISTENER_PREFIX, ConfigValues
from minibroker.broker.config.unserved import check_served, strays, without_effect
from minibroker.kafka.config_keys import default_value, parse_value
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.listeners import Listener
    from minibroker.kafka.config_keys import ConfigKey, Value

RELEASE_KEY: Final = "minibroker.advertised.kafka.version"

# Of keys that plug-ins of Kafka read by themselves, so that KafkaConfig does not list them.
_PLUGIN_PREFIXES: Final = (LISTENER_PREFIX, "rsm.config.", "rlmm.config.", "config.providers.")


class BrokerValues(ConfigValues):
    """The broker's settings, constant after construction. Raises ConfigError for a wrong one.

    The attributes of the first list have the values of the keys with the same name and a dot for
    each `_`. Methods set the others.
    """

    auto_create_topics_enable: bool
    auto_leader_rebalance_enable: bool
    broker_rack: str | None
    connections_max_idle_ms: int
    controlled_shutdown_enable: bool
    controlled_shutdown_max_retries: int
    controlled_shutdown_retry_backoff_ms: int
    controller_socket_timeout_ms: int
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    leader_imbalance_per_broker_percentage: int
    log_cleaner_backoff_ms: int
    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_retention_check_interval_ms: int
    max_connection_creation_rate: int
    max_connections: int
    max_connections_per_ip: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    min_insync_replicas: int
    num_partitions: int
    offset_metadata_max_bytes: int
    offsets_commit_required_acks: int
    offsets_commit_timeout_ms: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_compression_codec: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    producer_id_expiration_check_interval_ms: int
    producer_id_expiration_ms: int
    queued_max_request_bytes: int
    queued_max_requests: int
    quota_window_num: int
    quota_window_size_seconds: int
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    replica_socket_timeout_ms: int
    request_timeout_ms: int
    socket_listen_backlog_size: int
    socket_request_max_bytes: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_max_timeout_ms: int
    transaction_partition_verification_enable: bool
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int
    transactional_id_expiration_ms: int
    zookeeper_session_timeout_ms: int

    def __init__(
        self, originals: Mapping[str, str] | None = None, generated_id: int | None = None
    ) -> None:
        """Take `originals`: key → text as the user gave it. An absent key has its default.
        `generated_id`: the broker's id in place of `broker.id=-1`.
        """
        settings = dict(originals or {})
        _join_node_id(settings)
        super().__init__(settings)
        self.keys: Mapping[str, ConfigKey] = BROKER_KEYS
        """The keys, with the defaults of the release that the broker passes for."""
        release = settings.get(RELEASE_KEY)
        if release is not None:
            from minibroker.broker.config.release_defaults import (  # noqa: PLC0415  for tests
                keys_of_release,
            )

            self.keys = keys_of_release(BROKER_KEYS, release)
        unknown = []
        for name, text in settings.items():
            key = BROKER_KEYS.get(name)
            if key is not None:
                parse_value(key, text)
            elif name not in AUTHORIZER_KEYS and not name.startswith(_PLUGIN_PREFIXES):
                unknown.append(name)
        self.unknown_keys: tuple[str, ...] = tuple(sorted(unknown))
        self.generated_id = generated_id
        for attribute, key_name in _ATTRIBUTES:
            setattr(self, attribute, self.get(key_name))
        self._set_identity()
        self.authorizer = parse_authorizer(self.text("authorizer.class.name") or "", settings)
        self._set_network()
        self._check_served(settings)
        self._set_log()
        self._set_replication()

    def get(self, name: str) -> Value:
        key, text = self.keys.get(name), self.originals.get(name)
        return super().get(name) if key is None or text is not None else default_value(key)

    def _check_served(self, settings: dict[str, str]) -> None:
        """Take `without_effect`. Raises ConfigError for a setting that is not served."""
        names = [listener.name for listener in self.listeners]
        names += (self.text("controller.listener.names") or "").replace(" ", "").split(",")
        unread = strays(settings, names)
        settings_in_use = {name: text for name, text in settings.items() if name not in unread}
        check_served(settings_in_use)
        self.without_effect = (
            *without_effect(settings_in_use),
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
        self.cluster_id = self.text("minibroker.cluster.id") or None
        self.zookeeper_connect = self.text("zookeeper.connect") or None
        self.zookeeper_connection_timeout_ms = self.first_given(
            ("zookeeper.connection.timeout.ms", 1), ("zookeeper.session.timeout.ms", 1)
        )
        self.advertised_kafka_version = self.text(RELEASE_KEY)
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
        self.max_connections_per_ip_overrides = _connection_overrides(
            self.text("max.connections.per.ip.overrides") or ""
        )

    def _set_log(self) -> None:
        directories = self.text("log.dirs") or self.text("log.dir") or ""
        self.log_dirs = tuple(filter(None, (part.strip() for part in directories.split(","))))
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
        self.log_cleaner_idle_ms = self.integer("minibroker.log.cleaner.idle.ms")
        self.log_sync_interval_ms = self.integer("minibroker.log.sync.interval.ms")

    def _set_replication(self) -> None:
        self.leader_imbalance_check_interval_ms = 1000 * self.integer(
            "leader.imbalance.check.interval.seconds"
        )
        self.inter_broker_protocol = InterBrokerProtocol.parse(
            str(self.text("inter.broker.protocol.version"))
        )

        self.replica_alter_log_dirs_bytes_per_s = self.integer(
            "replica.alter.log.dirs.io.max.bytes.per.second"
        )


_ATTRIBUTES: Final = tuple(
    (attribute, attribute.replace("_", ".")) for attribute in BrokerValues.__annotations__
)
"""(attribute, key) of each attribute that has its key's name and value."""


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
