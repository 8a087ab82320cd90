# fmt: off
# ruff: noqa: E501
"""Keys of the Kafka protocol's APIs, and where their messages are.

The table holds what the protocol has; what is served stands in the handlers' registry.

Generated from protocol_specs/apis/ by `python -m protocol_specs.codegen`; do not edit.
"""

from importlib import import_module
from typing import Any

PRODUCE = 0
FETCH = 1
LIST_OFFSETS = 2
METADATA = 3
LEADER_AND_ISR = 4
STOP_REPLICA = 5
UPDATE_METADATA = 6
CONTROLLED_SHUTDOWN = 7
OFFSET_COMMIT = 8
OFFSET_FETCH = 9
FIND_COORDINATOR = 10
JOIN_GROUP = 11
HEARTBEAT = 12
LEAVE_GROUP = 13
SYNC_GROUP = 14
DESCRIBE_GROUPS = 15
LIST_GROUPS = 16
SASL_HANDSHAKE = 17
API_VERSIONS = 18
CREATE_TOPICS = 19
DELETE_TOPICS = 20
DELETE_RECORDS = 21
INIT_PRODUCER_ID = 22
OFFSET_FOR_LEADER_EPOCH = 23
ADD_PARTITIONS_TO_TXN = 24
ADD_OFFSETS_TO_TXN = 25
END_TXN = 26
WRITE_TXN_MARKERS = 27
TXN_OFFSET_COMMIT = 28
DESCRIBE_ACLS = 29
CREATE_ACLS = 30
DELETE_ACLS = 31
DESCRIBE_CONFIGS = 32
ALTER_CONFIGS = 33
ALTER_REPLICA_LOG_DIRS = 34
DESCRIBE_LOG_DIRS = 35
SASL_AUTHENTICATE = 36
CREATE_PARTITIONS = 37
CREATE_DELEGATION_TOKEN = 38
RENEW_DELEGATION_TOKEN = 39
EXPIRE_DELEGATION_TOKEN = 40
DESCRIBE_DELEGATION_TOKEN = 41
DELETE_GROUPS = 42
ELECT_LEADERS = 43
INCREMENTAL_ALTER_CONFIGS = 44
ALTER_PARTITION_REASSIGNMENTS = 45
LIST_PARTITION_REASSIGNMENTS = 46
OFFSET_DELETE = 47
DESCRIBE_CLIENT_QUOTAS = 48
ALTER_CLIENT_QUOTAS = 49
DESCRIBE_USER_SCRAM_CREDENTIALS = 50
ALTER_USER_SCRAM_CREDENTIALS = 51
DESCRIBE_QUORUM = 55
ALTER_PARTITION = 56
UPDATE_FEATURES = 57
DESCRIBE_CLUSTER = 60
DESCRIBE_PRODUCERS = 61
UNREGISTER_BROKER = 64
DESCRIBE_TRANSACTIONS = 65
LIST_TRANSACTIONS = 66
ALLOCATE_PRODUCER_IDS = 67
CONSUMER_GROUP_HEARTBEAT = 68
CONSUMER_GROUP_DESCRIBE = 69
GET_TELEMETRY_SUBSCRIPTIONS = 71
PUSH_TELEMETRY = 72
LIST_CONFIG_RESOURCES = 74
DESCRIBE_TOPIC_PARTITIONS = 75
SHARE_GROUP_HEARTBEAT = 76
SHARE_GROUP_DESCRIBE = 77
SHARE_FETCH = 78
SHARE_ACKNOWLEDGE = 79
ADD_RAFT_VOTER = 80
REMOVE_RAFT_VOTER = 81
UPDATE_RAFT_VOTER = 82
INITIALIZE_SHARE_GROUP_STATE = 83
READ_SHARE_GROUP_STATE = 84
WRITE_SHARE_GROUP_STATE = 85
DELETE_SHARE_GROUP_STATE = 86
READ_SHARE_GROUP_STATE_SUMMARY = 87
STREAMS_GROUP_HEARTBEAT = 88
STREAMS_GROUP_DESCRIBE = 89
DESCRIBE_SHARE_GROUP_OFFSETS = 90
ALTER_SHARE_GROUP_OFFSETS = 91
DELETE_SHARE_GROUP_OFFSETS = 92
STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
UNREGISTER_CONTROLLER = 94


class Api:
    """One API: Kafka's name, our module in `protocol/messages`, first and last version."""

    __slots__ = ("flexible_from", "key", "max_version", "min_version", "module", "name")

    def __init__(  # noqa: PLR0917  the columns of a table
        self,
        key: int,
        name: str,
        module: str,
        min_version: int,
        max_version: int,
        flexible_from: int | None,
    ) -> None:
        self.key = key
        self.name = name
        self.module = module
        self.min_version = min_version
        self.max_version = max_version
        self.flexible_from = flexible_from


APIS: dict[int, Api] = {
    0: Api(0, "Produce", "produce", 0, 13, 9),
    1: Api(1, "Fetch", "fetch", 0, 18, 12),
    2: Api(2, "ListOffsets", "list_offsets", 0, 11, 6),
    3: Api(3, "Metadata", "metadata", 0, 13, 9),
    4: Api(4, "LeaderAndIsr", "leader_and_isr", 0, 7, 4),
    5: Api(5, "StopReplica", "stop_replica", 0, 4, 2),
    6: Api(6, "UpdateMetadata", "update_metadata", 0, 8, 6),
    7: Api(7, "ControlledShutdown", "controlled_shutdown", 0, 3, 3),
    8: Api(8, "OffsetCommit", "offset_commit", 0, 10, 8),
    9: Api(9, "OffsetFetch", "offset_fetch", 0, 10, 6),
    10: Api(10, "FindCoordinator", "find_coordinator", 0, 6, 3),
    11: Api(11, "JoinGroup", "join_group", 0, 9, 6),
    12: Api(12, "Heartbeat", "heartbeat", 0, 4, 4),
    13: Api(13, "LeaveGroup", "leave_group", 0, 5, 4),
    14: Api(14, "SyncGroup", "sync_group", 0, 5, 4),
    15: Api(15, "DescribeGroups", "describe_groups", 0, 6, 5),
    16: Api(16, "ListGroups", "list_groups", 0, 5, 3),
    17: Api(17, "SaslHandshake", "sasl_handshake", 0, 1, None),
    18: Api(18, "ApiVersions", "api_versions", 0, 5, 3),
    19: Api(19, "CreateTopics", "create_topics", 0, 7, 5),
    20: Api(20, "DeleteTopics", "delete_topics", 0, 6, 4),
    21: Api(21, "DeleteRecords", "delete_records", 0, 2, 2),
    22: Api(22, "InitProducerId", "init_producer_id", 0, 6, 2),
    23: Api(23, "OffsetForLeaderEpoch", "offset_for_leader_epoch", 0, 4, 4),
    24: Api(24, "AddPartitionsToTxn", "add_partitions_to_txn", 0, 5, 3),
    25: Api(25, "AddOffsetsToTxn", "add_offsets_to_txn", 0, 4, 3),
    26: Api(26, "EndTxn", "end_txn", 0, 5, 3),
    27: Api(27, "WriteTxnMarkers", "write_txn_markers", 0, 2, 1),
    28: Api(28, "TxnOffsetCommit", "txn_offset_commit", 0, 6, 3),
    29: Api(29, "DescribeAcls", "describe_acls", 0, 3, 2),
    30: Api(30, "CreateAcls", "create_acls", 0, 3, 2),
    31: Api(31, "DeleteAcls", "delete_acls", 0, 3, 2),
    32: Api(32, "DescribeConfigs", "describe_configs", 0, 4, 4),
    33: Api(33, "AlterConfigs", "alter_configs", 0, 2, 2),
    34: Api(34, "AlterReplicaLogDirs", "alter_replica_log_dirs", 0, 2, 2),
    35: Api(35, "DescribeLogDirs", "describe_log_dirs", 0, 5, 2),
    36: Api(36, "SaslAuthenticate", "sasl_authenticate", 0, 2, 2),
    37: Api(37, "CreatePartitions", "create_partitions", 0, 3, 2),
    38: Api(38, "CreateDelegationToken", "create_delegation_token", 0, 3, 2),
    39: Api(39, "RenewDelegationToken", "renew_delegation_token", 0, 2, 2),
    40: Api(40, "ExpireDelegationToken", "expire_delegation_token", 0, 2, 2),
    41: Api(41, "DescribeDelegationToken", "describe_delegation_token", 0, 3, 2),
    42: Api(42, "DeleteGroups", "delete_groups", 0, 3, 2),
    43: Api(43, "ElectLeaders", "elect_leaders", 0, 2, 2),
    44: Api(44, "IncrementalAlterConfigs", "incremental_alter_configs", 0, 1, 1),
    45: Api(45, "AlterPartitionReassignments", "alter_partition_reassignments", 0, 1, 0),
    46: Api(46, "ListPartitionReassignments", "list_partition_reassignments", 0, 0, 0),
    47: Api(47, "OffsetDelete", "offset_delete", 0, 0, None),
    48: Api(48, "DescribeClientQuotas", "describe_client_quotas", 0, 1, 1),
    49: Api(49, "AlterClientQuotas", "alter_client_quotas", 0, 1, 1),
    50: Api(50, "DescribeUserScramCredentials", "describe_user_scram_credentials", 0, 0, 0),
    51: Api(51, "AlterUserScramCredentials", "alter_user_scram_credentials", 0, 0, 0),
    55: Api(55, "DescribeQuorum", "describe_quorum", 0, 2, 0),
    56: Api(56, "AlterPartition", "alter_partition", 0, 3, 0),
    57: Api(57, "UpdateFeatures", "update_features", 0, 2, 0),
    60: Api(60, "DescribeCluster", "describe_cluster", 0, 2, 0),
    61: Api(61, "DescribeProducers", "describe_producers", 0, 0, 0),
    64: Api(64, "UnregisterBroker", "unregister_broker", 0, 0, 0),
    65: Api(65, "DescribeTransactions", "describe_transactions", 0, 0, 0),
    66: Api(66, "ListTransactions", "list_transactions", 0, 2, 0),
    67: Api(67, "AllocateProducerIds", "allocate_producer_ids", 0, 0, 0),
    68: Api(68, "ConsumerGroupHeartbeat", "consumer_group_heartbeat", 0, 1, 0),
    69: Api(69, "ConsumerGroupDescribe", "consumer_group_describe", 0, 1, 0),
    71: Api(71, "GetTelemetrySubscriptions", "get_telemetry_subscriptions", 0, 0, 0),
    72: Api(72, "PushTelemetry", "push_telemetry", 0, 0, 0),
    74: Api(74, "ListConfigResources", "list_config_resources", 0, 1, 0),
    75: Api(75, "DescribeTopicPartitions", "describe_topic_partitions", 0, 0, 0),
    76: Api(76, "ShareGroupHeartbeat", "share_group_heartbeat", 0, 1, 0),
    77: Api(77, "ShareGroupDescribe", "share_group_describe", 0, 1, 0),
    78: Api(78, "ShareFetch", "share_fetch", 0, 2, 0),
    79: Api(79, "ShareAcknowledge", "share_acknowledge", 0, 2, 0),
    80: Api(80, "AddRaftVoter", "add_raft_voter", 0, 1, 0),
    81: Api(81, "RemoveRaftVoter", "remove_raft_voter", 0, 0, 0),
    82: Api(82, "UpdateRaftVoter", "update_raft_voter", 0, 0, 0),
    83: Api(83, "InitializeShareGroupState", "initialize_share_group_state", 0, 0, 0),
    84: Api(84, "ReadShareGroupState", "read_share_group_state", 0, 0, 0),
    85: Api(85, "WriteShareGroupState", "write_share_group_state", 0, 1, 0),
    86: Api(86, "DeleteShareGroupState", "delete_share_group_state", 0, 0, 0),
    87: Api(87, "ReadShareGroupStateSummary", "read_share_group_state_summary", 0, 1, 0),
    88: Api(88, "StreamsGroupHeartbeat", "streams_group_heartbeat", 0, 1, 0),
    89: Api(89, "StreamsGroupDescribe", "streams_group_describe", 0, 1, 0),
    90: Api(90, "DescribeShareGroupOffsets", "describe_share_group_offsets", 0, 1, 0),
    91: Api(91, "AlterShareGroupOffsets", "alter_share_group_offsets", 0, 0, 0),
    92: Api(92, "DeleteShareGroupOffsets", "delete_share_group_offsets", 0, 0, 0),
    93: Api(93, "StreamsGroupTopologyDescriptionUpdate", "streams_group_topology_description_update", 0, 0, 0),
    94: Api(94, "UnregisterController", "unregister_controller", 0, 0, 0),
}


def load_messages(api_key: int) -> tuple[Any, Any]:
    """Imports the messages of one API, at its first use → (request class, response class).

    Raises KeyError for a key that no API has.
    """
    api = APIS[api_key]
    module = import_module(f"minibroker.kafka.protocol.messages.{api.module}")
    return getattr(module, f"{api.name}Request"), getattr(module, f"{api.name}Response")
