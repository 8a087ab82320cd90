"""The versions that each Kafka serves of the APIs that minibroker has handlers for.

The cases of the differential tests are made from this table before any broker runs; a test compares
it with both Kafkas.
"""

from __future__ import annotations

KAFKA_39 = {
    "produce": (0, 11),
    "fetch": (0, 17),
    "list_offsets": (0, 9),
    "metadata": (0, 12),
    "api_versions": (0, 4),
    "create_topics": (0, 7),
    "delete_topics": (0, 6),
    "delete_records": (0, 2),
    "init_producer_id": (0, 5),
    "offset_for_leader_epoch": (0, 4),
    "add_partitions_to_txn": (0, 5),
    "add_offsets_to_txn": (0, 4),
    "end_txn": (0, 4),
    "write_txn_markers": (0, 1),
    "describe_configs": (0, 4),
    "alter_configs": (0, 2),
    "alter_replica_log_dirs": (0, 2),
    "describe_log_dirs": (0, 4),
    "create_partitions": (0, 3),
    "incremental_alter_configs": (0, 1),
    "txn_offset_commit": (0, 4),
    "offset_delete": (0, 0),
    "describe_client_quotas": (0, 1),
    "alter_client_quotas": (0, 1),
    "offset_commit": (0, 9),
    "offset_fetch": (0, 9),
    "find_coordinator": (0, 6),
    "join_group": (0, 9),
    "heartbeat": (0, 4),
    "leave_group": (0, 5),
    "sync_group": (0, 5),
    "describe_groups": (0, 5),
    "list_groups": (0, 5),
    "delete_groups": (0, 2),
    "sasl_handshake": (0, 1),
    "describe_acls": (0, 3),
    "create_acls": (0, 3),
    "delete_acls": (0, 3),
    "sasl_authenticate": (0, 2),
    "create_delegation_token": (0, 3),
    "renew_delegation_token": (0, 2),
    "expire_delegation_token": (0, 2),
    "describe_delegation_token": (0, 3),
    "describe_user_scram_credentials": (0, 0),
    "alter_user_scram_credentials": (0, 0),
    "elect_leaders": (0, 2),
    "alter_partition_reassignments": (0, 0),
    "list_partition_reassignments": (0, 0),
    "update_features": (0, 1),
    "describe_cluster": (0, 1),
    "describe_producers": (0, 0),
    "describe_transactions": (0, 0),
    "list_transactions": (0, 1),
}
KAFKA_44 = {
    "produce": (3, 13),
    "fetch": (4, 18),
    "list_offsets": (1, 11),
    "metadata": (0, 13),
    "api_versions": (0, 5),
    "create_topics": (2, 7),
    "delete_topics": (1, 6),
    "delete_records": (0, 2),
    "init_producer_id": (0, 5),  # 6 is unstable, so not offered
    "offset_for_leader_epoch": (2, 4),
    "add_partitions_to_txn": (0, 5),
    "add_offsets_to_txn": (0, 4),
    "end_txn": (0, 5),
    "write_txn_markers": (1, 2),
    "describe_configs": (1, 4),
    "alter_configs": (0, 2),
    "alter_replica_log_dirs": (1, 2),
    "describe_log_dirs": (1, 5),
    "create_partitions": (0, 3),
    "incremental_alter_configs": (0, 1),
    "txn_offset_commit": (0, 6),
    "offset_delete": (0, 0),
    "describe_client_quotas": (0, 1),
    "alter_client_quotas": (0, 1),
    "offset_commit": (2, 10),
    "offset_fetch": (1, 10),
    "find_coordinator": (0, 6),
    "join_group": (0, 9),
    "heartbeat": (0, 4),
    "leave_group": (0, 5),
    "sync_group": (0, 5),
    "describe_groups": (0, 6),
    "list_groups": (0, 5),
    "delete_groups": (0, 3),
    "sasl_handshake": (0, 1),
    "describe_acls": (1, 3),
    "create_acls": (1, 3),
    "delete_acls": (1, 3),
    "sasl_authenticate": (0, 2),
    "create_delegation_token": (1, 3),
    "renew_delegation_token": (1, 2),
    "expire_delegation_token": (1, 2),
    "describe_delegation_token": (1, 3),
    "describe_user_scram_credentials": (0, 0),
    "alter_user_scram_credentials": (0, 0),
    "describe_quorum": (0, 2),
    "unregister_broker": (0, 0),
    "elect_leaders": (0, 2),
    "alter_partition_reassignments": (0, 1),
    "list_partition_reassignments": (0, 0),
    "update_features": (0, 2),
    "describe_cluster": (0, 2),
    "describe_producers": (0, 0),
    "describe_transactions": (0, 0),
    "list_transactions": (0, 2),
    "consumer_group_heartbeat": (0, 1),
    "consumer_group_describe": (0, 1),
    "list_config_resources": (0, 1),
    "describe_topic_partitions": (0, 0),
}

REFUSED_39 = ("consumer_group_heartbeat", "consumer_group_describe")
"""Versions that 3.9.1 advertises and always refuses: with ZooKeeper it has no coordinator for them.
"""

SERVED = {"3.9.1": KAFKA_39, "4.4.0": KAFKA_44}
"""Kafka's release → API → lowest and highest version."""


def releases_that_serve(api: str, version: int) -> list[str]:
    """Return the Kafkas that can be asked for `version` of `api`, oldest first."""
    releases = []
    for release, table in SERVED.items():
        lowest, highest = table.get(api, (0, -1))
        if lowest <= version <= highest:
            releases.append(release)
    return releases
