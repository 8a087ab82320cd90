"""`dump-log --cluster-metadata-decoder`: the records of a KRaft controller's metadata log.

The content of its control records is here too; it is shown without any decoder.

Source: Kafka MetadataRecordSerde, ControlRecordUtils; the definitions of the records, 4.4.
"""

import re
from typing import Final

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.primitives import Reader
from minibroker.tools.decoders import Decoded
from minibroker.tools.log_records import ControlRecord, LogRecord
from minibroker.tools.record_schemas import Schema, line_of, read_framed
from minibroker.tools.stored_json import Json

_ENDPOINTS: Final = "endPoints:[]{name:string host:string port:uint16 securityProtocol:int16}"
_FEATURES: Final = "features:[]{name:string minSupportedVersion:int16 maxSupportedVersion:int16}"

SCHEMAS: Final = {
    0: Schema(
        "RegisterBrokerRecord",
        "brokerId:int32 isMigratingZkBroker:bool@2 incarnationId:uuid "
        f"brokerEpoch:int64 {_ENDPOINTS} {_FEATURES} rack:string? fenced:bool "
        "inControlledShutdown:bool@1 logDirs:[]uuid@3#0 "
        "cordonedLogDirs:[]uuid?@4#1",
        4,
    ),
    1: Schema("UnregisterBrokerRecord", "brokerId:int32 brokerEpoch:int64"),
    2: Schema("TopicRecord", "name:string topicId:uuid"),
    3: Schema(
        "PartitionRecord",
        "partitionId:int32 topicId:uuid replicas:[]int32 isr:[]int32 "
        "removingReplicas:[]int32 addingReplicas:[]int32 leader:int32 "
        "leaderRecoveryState:int8#0 leaderEpoch:int32 partitionEpoch:int32 "
        "directories:[]uuid@1 eligibleLeaderReplicas:[]int32?@2#1 "
        "lastKnownElr:[]int32?@2#2",
        2,
    ),
    4: Schema("ConfigRecord", "resourceType:int8 resourceName:string name:string value:string?"),
    5: Schema(
        "PartitionChangeRecord",
        "partitionId:int32 topicId:uuid isr:[]int32?#0 leader:int32#1=-2 "
        "replicas:[]int32?#2 removingReplicas:[]int32?#3 "
        "addingReplicas:[]int32?#4 leaderRecoveryState:int8#5=-1 "
        "directories:[]uuid?@1#8 eligibleLeaderReplicas:[]int32?@2#6 "
        "lastKnownElr:[]int32?@2#7",
        2,
    ),
    7: Schema("FenceBrokerRecord", "id:int32 epoch:int64"),
    8: Schema("UnfenceBrokerRecord", "id:int32 epoch:int64"),
    9: Schema("RemoveTopicRecord", "topicId:uuid"),
    10: Schema(
        "DelegationTokenRecord",
        "owner:string requester:string renewers:[]string issueTimestamp:int64 "
        "maxTimestamp:int64 expirationTimestamp:int64 tokenId:string",
    ),
    11: Schema(
        "UserScramCredentialRecord",
        "name:string mechanism:int8 salt:bytes storedKey:bytes serverKey:bytes iterations:int32",
    ),
    12: Schema("FeatureLevelRecord", "name:string featureLevel:int16"),
    14: Schema(
        "ClientQuotaRecord",
        "entity:[]{entityType:string entityName:string?} key:string value:float64 remove:bool",
    ),
    15: Schema("ProducerIdsRecord", "brokerId:int32 brokerEpoch:int64 nextProducerId:int64"),
    17: Schema(
        "BrokerRegistrationChangeRecord",
        "brokerId:int32 brokerEpoch:int64 fenced:int8#0 "
        "inControlledShutdown:int8@1#1 logDirs:[]uuid@2#2 "
        "cordonedLogDirs:[]uuid?@3#3",
        3,
    ),
    18: Schema(
        "AccessControlEntryRecord",
        "id:uuid resourceType:int8 resourceName:string patternType:int8 "
        "principal:string host:string operation:int8 permissionType:int8",
    ),
    19: Schema("RemoveAccessControlEntryRecord", "id:uuid"),
    20: Schema("NoOpRecord", ""),
    21: Schema("ZkMigrationStateRecord", "zkMigrationState:int8"),
    22: Schema("RemoveUserScramCredentialRecord", "name:string mechanism:int8"),
    23: Schema("BeginTransactionRecord", "name:string?#0"),
    24: Schema("EndTransactionRecord", ""),
    25: Schema("AbortTransactionRecord", "reason:string?#0"),
    26: Schema("RemoveDelegationTokenRecord", "tokenId:string"),
    27: Schema(
        "RegisterControllerRecord",
        f"controllerId:int32 incarnationId:uuid zkMigrationReady:bool {_ENDPOINTS} {_FEATURES}",
    ),
    28: Schema("ClearElrRecord", "topicName:string"),
    29: Schema("UnregisterControllerRecord", "controllerId:int32"),
}

RAFT: Final = {
    3: Schema("SnapshotHeader", "version:int16 lastContainedLogTimestamp:int64"),
    4: Schema("SnapshotFooter", "version:int16"),
    5: Schema("KRaftVersion", "version:int16 kRaftVersion:int16"),
    6: Schema(
        "KRaftVoters",
        "version:int16 voters:[]{voterId:int32 voterDirectoryId:uuid "
        "endpoints:[]{name:string host:string port:uint16} "
        "kRaftVersionFeature:{minSupportedVersion:int16 maxSupportedVersion:int16}}",
    ),
}
"""Type of a control record → the name in Kafka's tool, and its fields."""


def raft_content(control: ControlRecord) -> tuple[str, dict[str, Json]] | None:
    """Return the content of a control record of a metadata log or snapshot.

    Return None if Kafka's tool shows only the type. Raises ProtocolError.
    """
    schema = RAFT.get(control.type_id)
    if schema is None or control.value is None:
        return None
    return schema.name, schema.read(Reader(control.value), 0)


def decode_metadata_record(record: LogRecord) -> Decoded:
    """Return the value as JSON (there are no keys), or a sentence if it cannot be read."""
    try:
        kind, version, content = read_framed(record.value, SCHEMAS)
    except ProtocolError as error:
        return Decoded(None, f"Error at {record.offset}, skipping. {error}")
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", SCHEMAS[kind].name).upper()
    return Decoded(None, line_of({"type": name, "version": version, "data": content}))
