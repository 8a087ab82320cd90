# fmt: off
# ruff: noqa: E501
"""The versions of every API that the brokers of each Kafka release serve.

Imported only by a broker that passes for one (`minibroker.advertised.kafka.version`).

Generated from protocol_specs/releases.json by `python -m protocol_specs.codegen`; do not edit.
"""

RELEASES = (
    "0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11", "1.0", "1.1", "2.0", "2.1", "2.2",
    "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6",
    "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4",
)
"""Oldest first."""

_SINCE: dict[int, tuple[tuple[int, int, int], ...]] = {
    0: ((0, 0, 0), (1, 0, 1), (2, 0, 2), (5, 0, 3), (6, 0, 5), (8, 0, 6), (9, 0, 7), (12, 0, 8), (16, 0, 9), (24, 0, 10), (25, 0, 11), (27, 3, 12), (28, 3, 13)),  # Produce
    1: ((0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 0, 3), (5, 0, 5), (6, 0, 6), (7, 0, 7), (8, 0, 8), (9, 0, 10), (11, 0, 11), (15, 0, 12), (18, 0, 13), (22, 0, 15), (24, 0, 16), (26, 0, 17), (27, 4, 17), (28, 4, 18)),  # Fetch
    2: ((0, 0, 0), (3, 0, 1), (5, 0, 2), (8, 0, 3), (9, 0, 4), (10, 0, 5), (16, 0, 6), (17, 0, 7), (22, 0, 8), (26, 0, 9), (27, 1, 10), (29, 1, 11)),  # ListOffsets
    3: ((0, 0, 0), (2, 0, 1), (3, 0, 2), (5, 0, 4), (6, 0, 5), (8, 0, 6), (9, 0, 7), (11, 0, 8), (12, 0, 9), (16, 0, 11), (18, 0, 12), (27, 0, 13)),  # Metadata
    4: ((2, 0, 0), (6, 0, 1), (10, 0, 2), (12, 0, 4), (16, 0, 5), (19, 0, 6), (21, 0, 7), (27, 0, -1)),  # LeaderAndIsr
    5: ((2, 0, 0), (10, 0, 1), (12, 0, 2), (14, 0, 3), (21, 0, 4), (27, 0, -1)),  # StopReplica
    6: ((2, 0, 2), (4, 0, 3), (6, 0, 4), (10, 0, 5), (12, 0, 6), (16, 0, 7), (21, 0, 8), (27, 0, -1)),  # UpdateMetadata
    7: ((2, 1, 1), (6, 0, 1), (10, 0, 2), (12, 0, 3), (27, 0, -1)),  # ControlledShutdown
    8: ((0, 0, 1), (1, 0, 2), (5, 0, 3), (8, 0, 4), (9, 0, 6), (11, 0, 7), (12, 0, 8), (24, 0, 9), (27, 2, 9), (29, 2, 10)),  # OffsetCommit
    9: ((0, 0, 1), (4, 0, 2), (5, 0, 3), (8, 0, 4), (9, 0, 5), (12, 0, 6), (13, 0, 7), (17, 0, 8), (24, 0, 9), (27, 1, 9), (29, 1, 10)),  # OffsetFetch
    10: ((0, 0, 0), (5, 0, 1), (8, 0, 2), (12, 0, 3), (17, 0, 4), (25, 0, 5), (26, 0, 6)),  # FindCoordinator
    11: ((1, 0, 0), (3, 0, 1), (5, 0, 2), (8, 0, 3), (10, 0, 4), (11, 0, 5), (12, 0, 6), (13, 0, 7), (19, 0, 9), (27, 2, 9), (28, 0, 9)),  # JoinGroup
    12: ((1, 0, 0), (5, 0, 1), (8, 0, 2), (11, 0, 3), (12, 0, 4)),  # Heartbeat
    13: ((1, 0, 0), (5, 0, 1), (8, 0, 2), (12, 0, 4), (19, 0, 5)),  # LeaveGroup
    14: ((1, 0, 0), (5, 0, 1), (8, 0, 2), (11, 0, 3), (12, 0, 4), (13, 0, 5)),  # SyncGroup
    15: ((1, 0, 0), (5, 0, 1), (8, 0, 2), (11, 0, 3), (12, 0, 5), (27, 0, 6)),  # DescribeGroups
    16: ((1, 0, 0), (5, 0, 1), (8, 0, 2), (12, 0, 3), (14, 0, 4), (25, 0, 5)),  # ListGroups
    17: ((2, 0, 0), (6, 0, 1)),  # SaslHandshake
    18: ((2, 0, 0), (5, 0, 1), (8, 0, 2), (12, 0, 3), (26, 0, 4), (31, 0, 5)),  # ApiVersions
    19: ((3, 0, 0), (4, 0, 1), (5, 0, 2), (8, 0, 3), (12, 0, 5), (15, 0, 6), (16, 0, 7), (27, 2, 7)),  # CreateTopics
    20: ((3, 0, 0), (5, 0, 1), (8, 0, 2), (9, 0, 3), (12, 0, 4), (15, 0, 5), (16, 0, 6), (27, 1, 6)),  # DeleteTopics
    21: ((5, 0, 0), (8, 0, 1), (14, 0, 2)),  # DeleteRecords
    22: ((5, 0, 0), (8, 0, 1), (12, 0, 2), (13, 0, 3), (15, 0, 4), (25, 0, 5)),  # InitProducerId
    23: ((5, 0, 0), (8, 0, 1), (9, 0, 2), (11, 0, 3), (16, 0, 4), (27, 2, 4)),  # OffsetForLeaderEpoch
    24: ((5, 0, 0), (8, 0, 1), (15, 0, 2), (16, 0, 3), (23, 0, 4), (25, 0, 5)),  # AddPartitionsToTxn
    25: ((5, 0, 0), (8, 0, 1), (15, 0, 2), (16, 0, 3), (25, 0, 4)),  # AddOffsetsToTxn
    26: ((5, 0, 0), (8, 0, 1), (15, 0, 2), (16, 0, 3), (25, 0, 4), (27, 0, 5)),  # EndTxn
    27: ((5, 0, 0), (16, 0, 1), (27, 1, 1), (29, 1, 2)),  # WriteTxnMarkers
    28: ((5, 0, 0), (8, 0, 1), (9, 0, 2), (13, 0, 3), (25, 0, 4), (27, 0, 5), (31, 0, 6)),  # TxnOffsetCommit
    29: ((5, 0, 0), (8, 0, 1), (13, 0, 2), (20, 0, 3), (27, 1, 3)),  # DescribeAcls
    30: ((5, 0, 0), (8, 0, 1), (13, 0, 2), (20, 0, 3), (27, 1, 3)),  # CreateAcls
    31: ((5, 0, 0), (8, 0, 1), (13, 0, 2), (20, 0, 3), (27, 1, 3)),  # DeleteAcls
    32: ((5, 0, 0), (7, 0, 1), (8, 0, 2), (14, 0, 3), (16, 0, 4), (27, 1, 4)),  # DescribeConfigs
    33: ((5, 0, 0), (8, 0, 1), (16, 0, 2)),  # AlterConfigs
    34: ((6, 0, 0), (8, 0, 1), (16, 0, 2), (27, 1, 2)),  # AlterReplicaLogDirs
    35: ((6, 0, 0), (8, 0, 1), (14, 0, 2), (19, 0, 3), (20, 0, 4), (27, 1, 4), (30, 1, 5)),  # DescribeLogDirs
    36: ((6, 0, 0), (10, 0, 1), (13, 0, 2)),  # SaslAuthenticate
    37: ((6, 0, 0), (8, 0, 1), (13, 0, 2), (15, 0, 3)),  # CreatePartitions
    38: ((7, 0, 0), (8, 0, 1), (12, 0, 2), (20, 0, 3), (27, 1, 3)),  # CreateDelegationToken
    39: ((7, 0, 0), (8, 0, 1), (13, 0, 2), (27, 1, 2)),  # RenewDelegationToken
    40: ((7, 0, 0), (8, 0, 1), (13, 0, 2), (27, 1, 2)),  # ExpireDelegationToken
    41: ((7, 0, 0), (8, 0, 1), (13, 0, 2), (20, 0, 3), (27, 1, 3)),  # DescribeDelegationToken
    42: ((7, 0, 0), (8, 0, 1), (12, 0, 2), (31, 0, 3)),  # DeleteGroups
    43: ((10, 0, 0), (12, 0, 2)),  # ElectLeaders
    44: ((11, 0, 0), (12, 0, 1)),  # IncrementalAlterConfigs
    45: ((12, 0, 0), (28, 0, 1)),  # AlterPartitionReassignments
    46: ((12, 0, 0),),  # ListPartitionReassignments
    47: ((12, 0, 0),),  # OffsetDelete
    48: ((14, 0, 0), (16, 0, 1)),  # DescribeClientQuotas
    49: ((14, 0, 0), (16, 0, 1)),  # AlterClientQuotas
    50: ((15, 0, 0),),  # DescribeUserScramCredentials
    51: ((15, 0, 0),),  # AlterUserScramCredentials
    55: ((27, 0, 2),),  # DescribeQuorum
    56: ((15, 0, 0), (19, 0, 1), (20, 0, 2), (22, 0, 3), (27, 0, -1)),  # AlterPartition
    57: ((15, 0, 0), (20, 0, 1), (27, 0, 2)),  # UpdateFeatures
    60: ((16, 0, 0), (24, 0, 1), (27, 0, 2)),  # DescribeCluster
    61: ((16, 0, 0),),  # DescribeProducers
    64: ((27, 0, 0),),  # UnregisterBroker
    65: ((17, 0, 0),),  # DescribeTransactions
    66: ((17, 0, 0), (25, 0, 1), (28, 0, 2)),  # ListTransactions
    67: ((17, 0, 0), (27, 0, -1)),  # AllocateProducerIds
    68: ((24, 0, 0), (27, 0, 1)),  # ConsumerGroupHeartbeat
    69: ((25, 0, 0), (27, 0, 1)),  # ConsumerGroupDescribe
    71: ((27, 0, 0),),  # GetTelemetrySubscriptions
    72: ((27, 0, 0),),  # PushTelemetry
    74: ((27, 0, 0), (28, 0, 1)),  # ListConfigResources
    75: ((27, 0, 0),),  # DescribeTopicPartitions
    76: ((28, 1, 1),),  # ShareGroupHeartbeat
    77: ((28, 1, 1),),  # ShareGroupDescribe
    78: ((28, 1, 1), (29, 1, 2)),  # ShareFetch
    79: ((28, 1, 1), (29, 1, 2)),  # ShareAcknowledge
    80: ((27, 0, 0), (29, 0, 1)),  # AddRaftVoter
    81: ((27, 0, 0),),  # RemoveRaftVoter
    83: ((28, 0, 0),),  # InitializeShareGroupState
    84: ((28, 0, 0),),  # ReadShareGroupState
    85: ((28, 0, 0), (29, 0, 1)),  # WriteShareGroupState
    86: ((28, 0, 0),),  # DeleteShareGroupState
    87: ((28, 0, 0), (29, 0, 1)),  # ReadShareGroupStateSummary
    88: ((29, 0, 0), (31, 0, 1)),  # StreamsGroupHeartbeat
    89: ((29, 0, 0), (31, 0, 1)),  # StreamsGroupDescribe
    90: ((28, 0, 0), (29, 0, 1)),  # DescribeShareGroupOffsets
    91: ((28, 0, 0),),  # AlterShareGroupOffsets
    92: ((28, 0, 0),),  # DeleteShareGroupOffsets
    93: ((31, 0, 0),),  # StreamsGroupTopologyDescriptionUpdate
    94: ((31, 0, 0),),  # UnregisterController
}
"""API key → (index in RELEASES from which it holds, lowest, highest version)."""

_ADVERTISED_FROM: dict[int, tuple[int, int]] = {
    0: (27, 0),
}
"""API key → (index in RELEASES, lowest version that ApiVersions names though it is not served)."""


def served_by(release: str) -> dict[int, tuple[int, int]]:
    """API key → (lowest, highest version) that brokers of `release` serve.

    Raises ValueError for a text that is not in RELEASES.
    """
    index = RELEASES.index(release)
    versions = {}
    for key, rows in _SINCE.items():
        for since, low, high in reversed(rows):
            if since <= index:
                if low <= high:
                    versions[key] = (low, high)
                break
    return versions


def advertised_by(release: str) -> dict[int, tuple[int, int]]:
    """Return the versions that ApiVersions of a release tells; see `served_by`.

    Kafka 4 names Produce from version 0 on, because librdkafka looks for it before it compresses
    (KAFKA-18659), and serves it from version 3 on.
    """
    index = RELEASES.index(release)
    versions = served_by(release)
    for key, (since, low) in _ADVERTISED_FROM.items():
        if since <= index and key in versions:
            versions[key] = (low, versions[key][1])
    return versions
