"""The table of served APIs: key → module of this package, and the range of versions.

Only these APIs are advertised. A module is imported when the first request for it arrives, so a
start loads none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.protocol.api_keys import APIS, load_messages

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.handler import Handler
    from minibroker.broker.metrics import Metrics

# Sorted by key, as `protocol_specs/apis/` is. A module is named as its API, except `refusals`, the
# table of the APIs that every client is refused.
HANDLERS: Final[dict[int, str]] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    4: "leader_and_isr",
    5: "stop_replica",
    6: "update_metadata",
    7: "controlled_shutdown",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "refusals",  # sasl_handshake
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    34: "alter_replica_log_dirs",
    35: "describe_log_dirs",
    36: "refusals",  # sasl_authenticate
    37: "create_partitions",
    38: "create_delegation_token",
    39: "renew_delegation_token",
    40: "expire_delegation_token",
    41: "describe_delegation_token",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    55: "describe_quorum",
    56: "alter_partition",
    57: "update_features",
    60: "describe_cluster",
    61: "describe_producers",
    64: "unregister_broker",
    65: "describe_transactions",
    66: "list_transactions",
    67: "allocate_producer_ids",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    74: "list_config_resources",
    75: "describe_topic_partitions",
}

VERSION_MAX: Final = 0x7FFF

UNSTABLE_FROM: Final[dict[int, int]] = {22: 6}
"""API key → first version that Kafka calls unstable; neither Kafka nor minibroker offers it."""


NOT_WITH_ZOOKEEPER: Final = frozenset({55})
"""Keys of APIs that exist only where the broker itself keeps the metadata."""
ONLY_WITH_ZOOKEEPER: Final = frozenset({4, 5, 6})
"""Keys of APIs between the controller of a ZooKeeper cluster and its brokers (`zkBroker`); brokers
of one process that share a tree serve them, too."""
BETWEEN_BROKERS: Final = frozenset({7, 56, 67})
"""Keys of requests to a controller, for brokers that share a tree."""


def supported_versions(
    release: str | None = None, *, with_zookeeper: bool = False, has_peers: bool = False
) -> dict[int, tuple[int, int]]:
    """Return API key → (lowest, highest version) that this broker serves.
    `release` ("2.4") narrows this to the versions that brokers of that Kafka release serve. Raises
    ConfigError for an unknown release. `has_peers`: whether the tree is shared with other brokers.
    """
    ours = {
        key: (
            APIS[key].min_version,
            min(APIS[key].max_version, UNSTABLE_FROM.get(key, VERSION_MAX) - 1),
        )
        for key in HANDLERS
        if (with_zookeeper or has_peers or key not in ONLY_WITH_ZOOKEEPER)
        and not (with_zookeeper and key in NOT_WITH_ZOOKEEPER)
        and (has_peers or with_zookeeper or key not in BETWEEN_BROKERS)
    }
    return ours if release is None else _narrowed(ours, "served_by", release)


def advertised_versions(
    release: str | None = None, *, with_zookeeper: bool = False, has_peers: bool = False
) -> dict[int, tuple[int, int]]:
    """Return API key → (lowest, highest version) that ApiVersions lists.
    They are those of `supported_versions`, but Kafka 4 also lists versions of Produce that it does
    not serve (KAFKA-18659).
    """
    served = supported_versions(with_zookeeper=with_zookeeper, has_peers=has_peers)
    if release is None:
        return served
    ours = {key: (0, high) for key, (_, high) in served.items()}
    return _narrowed(ours, "advertised_by", release)


def _narrowed(
    ours: dict[int, tuple[int, int]], rule: str, release: str
) -> dict[int, tuple[int, int]]:
    releases = import_module("minibroker.kafka.protocol.releases")
    if release not in releases.RELEASES:
        raise ConfigError(
            f"minibroker.advertised.kafka.version={release}: expected one of "
            + ", ".join(releases.RELEASES)
        )
    theirs: dict[int, tuple[int, int]] = getattr(releases, rule)(release)
    common = {
        key: (max(low, theirs[key][0]), min(high, theirs[key][1]))
        for key, (low, high) in ours.items()
        if key in theirs
    }
    return {key: (low, high) for key, (low, high) in common.items() if low <= high}


def load_handler(api_key: int, versions: tuple[int, int], metrics: Metrics) -> Handler:
    """Import messages and handler of an API; `versions` is the served range. Raises KeyError."""
    from minibroker.broker.handlers.common.handler import Handler  # noqa: PLC0415  no start needs it

    api = APIS[api_key]
    module = import_module(f"minibroker.broker.handlers.{HANDLERS[api_key]}")
    return Handler(api, versions, module, load_messages(api_key), metrics.of_api(api.name))
