# fmt: off
# ruff: noqa: E501
"""Error codes of the Kafka protocol: the numbers that answers carry.

Names and numbers are Kafka's. `retriable`: Kafka's own clients try again by themselves;
`meaning`: one sentence for a log line or a person.

Generated from protocol_specs/errors.json by `python -m protocol_specs.codegen`; do not edit.
"""

from __future__ import annotations

import logging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

logger = logging.getLogger(__name__)


class ErrorCode(int):
    """One number per outcome; 0 is success, -1 the error nobody foresaw."""

    UNKNOWN_SERVER_ERROR: ClassVar[ErrorCode]
    NONE: ClassVar[ErrorCode]
    OFFSET_OUT_OF_RANGE: ClassVar[ErrorCode]
    CORRUPT_MESSAGE: ClassVar[ErrorCode]
    UNKNOWN_TOPIC_OR_PARTITION: ClassVar[ErrorCode]
    INVALID_FETCH_SIZE: ClassVar[ErrorCode]
    LEADER_NOT_AVAILABLE: ClassVar[ErrorCode]
    NOT_LEADER_OR_FOLLOWER: ClassVar[ErrorCode]
    REQUEST_TIMED_OUT: ClassVar[ErrorCode]
    BROKER_NOT_AVAILABLE: ClassVar[ErrorCode]
    REPLICA_NOT_AVAILABLE: ClassVar[ErrorCode]
    MESSAGE_TOO_LARGE: ClassVar[ErrorCode]
    STALE_CONTROLLER_EPOCH: ClassVar[ErrorCode]
    OFFSET_METADATA_TOO_LARGE: ClassVar[ErrorCode]
    NETWORK_EXCEPTION: ClassVar[ErrorCode]
    COORDINATOR_LOAD_IN_PROGRESS: ClassVar[ErrorCode]
    COORDINATOR_NOT_AVAILABLE: ClassVar[ErrorCode]
    NOT_COORDINATOR: ClassVar[ErrorCode]
    INVALID_TOPIC_EXCEPTION: ClassVar[ErrorCode]
    RECORD_LIST_TOO_LARGE: ClassVar[ErrorCode]
    NOT_ENOUGH_REPLICAS: ClassVar[ErrorCode]
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: ClassVar[ErrorCode]
    INVALID_REQUIRED_ACKS: ClassVar[ErrorCode]
    ILLEGAL_GENERATION: ClassVar[ErrorCode]
    INCONSISTENT_GROUP_PROTOCOL: ClassVar[ErrorCode]
    INVALID_GROUP_ID: ClassVar[ErrorCode]
    UNKNOWN_MEMBER_ID: ClassVar[ErrorCode]
    INVALID_SESSION_TIMEOUT: ClassVar[ErrorCode]
    REBALANCE_IN_PROGRESS: ClassVar[ErrorCode]
    INVALID_COMMIT_OFFSET_SIZE: ClassVar[ErrorCode]
    TOPIC_AUTHORIZATION_FAILED: ClassVar[ErrorCode]
    GROUP_AUTHORIZATION_FAILED: ClassVar[ErrorCode]
    CLUSTER_AUTHORIZATION_FAILED: ClassVar[ErrorCode]
    INVALID_TIMESTAMP: ClassVar[ErrorCode]
    UNSUPPORTED_SASL_MECHANISM: ClassVar[ErrorCode]
    ILLEGAL_SASL_STATE: ClassVar[ErrorCode]
    UNSUPPORTED_VERSION: ClassVar[ErrorCode]
    TOPIC_ALREADY_EXISTS: ClassVar[ErrorCode]
    INVALID_PARTITIONS: ClassVar[ErrorCode]
    INVALID_REPLICATION_FACTOR: ClassVar[ErrorCode]
    INVALID_REPLICA_ASSIGNMENT: ClassVar[ErrorCode]
    INVALID_CONFIG: ClassVar[ErrorCode]
    NOT_CONTROLLER: ClassVar[ErrorCode]
    INVALID_REQUEST: ClassVar[ErrorCode]
    UNSUPPORTED_FOR_MESSAGE_FORMAT: ClassVar[ErrorCode]
    POLICY_VIOLATION: ClassVar[ErrorCode]
    OUT_OF_ORDER_SEQUENCE_NUMBER: ClassVar[ErrorCode]
    DUPLICATE_SEQUENCE_NUMBER: ClassVar[ErrorCode]
    INVALID_PRODUCER_EPOCH: ClassVar[ErrorCode]
    INVALID_TXN_STATE: ClassVar[ErrorCode]
    INVALID_PRODUCER_ID_MAPPING: ClassVar[ErrorCode]
    INVALID_TRANSACTION_TIMEOUT: ClassVar[ErrorCode]
    CONCURRENT_TRANSACTIONS: ClassVar[ErrorCode]
    TRANSACTION_COORDINATOR_FENCED: ClassVar[ErrorCode]
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ClassVar[ErrorCode]
    SECURITY_DISABLED: ClassVar[ErrorCode]
    OPERATION_NOT_ATTEMPTED: ClassVar[ErrorCode]
    KAFKA_STORAGE_ERROR: ClassVar[ErrorCode]
    LOG_DIR_NOT_FOUND: ClassVar[ErrorCode]
    SASL_AUTHENTICATION_FAILED: ClassVar[ErrorCode]
    UNKNOWN_PRODUCER_ID: ClassVar[ErrorCode]
    REASSIGNMENT_IN_PROGRESS: ClassVar[ErrorCode]
    DELEGATION_TOKEN_AUTH_DISABLED: ClassVar[ErrorCode]
    DELEGATION_TOKEN_NOT_FOUND: ClassVar[ErrorCode]
    DELEGATION_TOKEN_OWNER_MISMATCH: ClassVar[ErrorCode]
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: ClassVar[ErrorCode]
    DELEGATION_TOKEN_AUTHORIZATION_FAILED: ClassVar[ErrorCode]
    DELEGATION_TOKEN_EXPIRED: ClassVar[ErrorCode]
    INVALID_PRINCIPAL_TYPE: ClassVar[ErrorCode]
    NON_EMPTY_GROUP: ClassVar[ErrorCode]
    GROUP_ID_NOT_FOUND: ClassVar[ErrorCode]
    FETCH_SESSION_ID_NOT_FOUND: ClassVar[ErrorCode]
    INVALID_FETCH_SESSION_EPOCH: ClassVar[ErrorCode]
    LISTENER_NOT_FOUND: ClassVar[ErrorCode]
    TOPIC_DELETION_DISABLED: ClassVar[ErrorCode]
    FENCED_LEADER_EPOCH: ClassVar[ErrorCode]
    UNKNOWN_LEADER_EPOCH: ClassVar[ErrorCode]
    UNSUPPORTED_COMPRESSION_TYPE: ClassVar[ErrorCode]
    STALE_BROKER_EPOCH: ClassVar[ErrorCode]
    OFFSET_NOT_AVAILABLE: ClassVar[ErrorCode]
    MEMBER_ID_REQUIRED: ClassVar[ErrorCode]
    PREFERRED_LEADER_NOT_AVAILABLE: ClassVar[ErrorCode]
    GROUP_MAX_SIZE_REACHED: ClassVar[ErrorCode]
    FENCED_INSTANCE_ID: ClassVar[ErrorCode]
    ELIGIBLE_LEADERS_NOT_AVAILABLE: ClassVar[ErrorCode]
    ELECTION_NOT_NEEDED: ClassVar[ErrorCode]
    NO_REASSIGNMENT_IN_PROGRESS: ClassVar[ErrorCode]
    GROUP_SUBSCRIBED_TO_TOPIC: ClassVar[ErrorCode]
    INVALID_RECORD: ClassVar[ErrorCode]
    UNSTABLE_OFFSET_COMMIT: ClassVar[ErrorCode]
    THROTTLING_QUOTA_EXCEEDED: ClassVar[ErrorCode]
    PRODUCER_FENCED: ClassVar[ErrorCode]
    RESOURCE_NOT_FOUND: ClassVar[ErrorCode]
    DUPLICATE_RESOURCE: ClassVar[ErrorCode]
    UNACCEPTABLE_CREDENTIAL: ClassVar[ErrorCode]
    INCONSISTENT_VOTER_SET: ClassVar[ErrorCode]
    INVALID_UPDATE_VERSION: ClassVar[ErrorCode]
    FEATURE_UPDATE_FAILED: ClassVar[ErrorCode]
    PRINCIPAL_DESERIALIZATION_FAILURE: ClassVar[ErrorCode]
    SNAPSHOT_NOT_FOUND: ClassVar[ErrorCode]
    POSITION_OUT_OF_RANGE: ClassVar[ErrorCode]
    UNKNOWN_TOPIC_ID: ClassVar[ErrorCode]
    DUPLICATE_BROKER_REGISTRATION: ClassVar[ErrorCode]
    BROKER_ID_NOT_REGISTERED: ClassVar[ErrorCode]
    INCONSISTENT_TOPIC_ID: ClassVar[ErrorCode]
    INCONSISTENT_CLUSTER_ID: ClassVar[ErrorCode]
    TRANSACTIONAL_ID_NOT_FOUND: ClassVar[ErrorCode]
    FETCH_SESSION_TOPIC_ID_ERROR: ClassVar[ErrorCode]
    INELIGIBLE_REPLICA: ClassVar[ErrorCode]
    NEW_LEADER_ELECTED: ClassVar[ErrorCode]
    OFFSET_MOVED_TO_TIERED_STORAGE: ClassVar[ErrorCode]
    FENCED_MEMBER_EPOCH: ClassVar[ErrorCode]
    UNRELEASED_INSTANCE_ID: ClassVar[ErrorCode]
    UNSUPPORTED_ASSIGNOR: ClassVar[ErrorCode]
    STALE_MEMBER_EPOCH: ClassVar[ErrorCode]
    MISMATCHED_ENDPOINT_TYPE: ClassVar[ErrorCode]
    UNSUPPORTED_ENDPOINT_TYPE: ClassVar[ErrorCode]
    UNKNOWN_CONTROLLER_ID: ClassVar[ErrorCode]
    UNKNOWN_SUBSCRIPTION_ID: ClassVar[ErrorCode]
    TELEMETRY_TOO_LARGE: ClassVar[ErrorCode]
    INVALID_REGISTRATION: ClassVar[ErrorCode]
    TRANSACTION_ABORTABLE: ClassVar[ErrorCode]
    INVALID_RECORD_STATE: ClassVar[ErrorCode]
    SHARE_SESSION_NOT_FOUND: ClassVar[ErrorCode]
    INVALID_SHARE_SESSION_EPOCH: ClassVar[ErrorCode]
    FENCED_STATE_EPOCH: ClassVar[ErrorCode]
    INVALID_VOTER_KEY: ClassVar[ErrorCode]
    DUPLICATE_VOTER: ClassVar[ErrorCode]
    VOTER_NOT_FOUND: ClassVar[ErrorCode]
    INVALID_REGULAR_EXPRESSION: ClassVar[ErrorCode]
    REBOOTSTRAP_REQUIRED: ClassVar[ErrorCode]
    STREAMS_INVALID_TOPOLOGY: ClassVar[ErrorCode]
    STREAMS_INVALID_TOPOLOGY_EPOCH: ClassVar[ErrorCode]
    STREAMS_TOPOLOGY_FENCED: ClassVar[ErrorCode]
    SHARE_SESSION_LIMIT_REACHED: ClassVar[ErrorCode]
    GROUP_DELETION_FAILED: ClassVar[ErrorCode]
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED: ClassVar[ErrorCode]
    CONTROLLER_ID_NOT_REGISTERED: ClassVar[ErrorCode]

    name: str
    """Kafka's name of it."""

    def __new__(cls, number: int) -> ErrorCode:
        """Return the code of a number, UNKNOWN_SERVER_ERROR for that of a newer Kafka.

        Raises ValueError for anything but a number. Source: Kafka's Errors.forCode.
        """
        code = _BY_NUMBER.get(number)
        if code is None:
            if not isinstance(number, int):
                raise ValueError(f"{number!r} is not an error code")
            logger.warning("error code %d is not known, it counts as UNKNOWN_SERVER_ERROR", number)
            return cls.UNKNOWN_SERVER_ERROR
        return code

    def __reduce__(self) -> tuple[type[ErrorCode], tuple[int]]:
        """Return what copies and pickles make of it: the same object."""
        return ErrorCode, (int(self),)

    def __repr__(self) -> str:
        return f"<ErrorCode.{self.name}: {int(self)}>"

    def __str__(self) -> str:
        return str(int(self))

    @property
    def retriable(self) -> bool:
        """Kafka's clients repeat the request by themselves after this code."""
        return self in _RETRIABLE

    @property
    def meaning(self) -> str:
        """Return one sentence about the cause."""
        return _MEANINGS[self]



_RETRIABLE = frozenset(
    {
        2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84,
        88, 89, 100, 103, 106, 122, 123, 133
    }
)

_MEANINGS = {
    -1: "Something failed that no other code describes; the broker's log has the cause.",
    0: 'Success.',
    1: "The offset asked for lies before the log's start or past its end.",
    2: 'The records do not match their checksum or break the batch format, or a compacted topic got a record without a key.',
    3: 'This broker knows no such topic, or the topic has no such partition here.',
    4: 'The number of bytes asked for makes no sense.',
    5: 'The partition has no leader for the moment.',
    6: 'This broker does not lead the partition, or (for requests any replica may serve) holds no replica of it.',
    7: 'What was asked for did not happen within the time allowed.',
    8: 'The broker is not there.',
    9: 'The replica needed is not available on this broker.',
    10: 'A record batch is larger than the topic allows (`max.message.bytes`).',
    11: 'The sender acted on behalf of a controller that has been replaced.',
    12: 'The text stored with a committed offset is longer than `offset.metadata.max.bytes`.',
    13: 'The connection broke before the answer came. Made by clients; no broker sends it.',
    14: 'The coordinator is still reading its state from its log.',
    15: 'There is no coordinator yet for this group or transactional id.',
    16: 'Another broker coordinates this group or transactional id.',
    17: 'The topic name is illegal, or the operation is forbidden on this topic.',
    18: 'The batches of one partition together exceed a segment (`segment.bytes`).',
    19: 'Refused: fewer replicas are in sync than `min.insync.replicas` demands.',
    20: 'Stored, but by fewer in-sync replicas than `min.insync.replicas` demands.',
    21: '`acks` must be -1, 0 or 1.',
    22: "The generation given is not the group's current one.",
    23: "The member's protocols have nothing in common with the group's, or the first member offered none.",
    24: 'The group id is empty or otherwise not allowed.',
    25: 'The group has no member with this id.',
    26: 'The session timeout lies outside what the broker allows (`group.min.session.timeout.ms` to `group.max.session.timeout.ms`).',
    27: 'The group is forming a new generation; the member has to join again.',
    28: 'The offset commit does not fit into one batch of the offsets topic.',
    29: 'Topic authorization failed.',
    30: 'Group authorization failed.',
    31: 'Cluster authorization failed.',
    32: "A record's timestamp is missing or too far from the broker's clock.",
    33: 'The broker offers no such SASL mechanism.',
    34: 'The request does not belong to this step of the SASL exchange.',
    35: 'The broker does not speak this version of the API.',
    36: 'A topic of this name exists.',
    37: 'The number of partitions is not possible.',
    38: 'The replication factor is below 1 or above the number of brokers.',
    39: 'The list of replicas names unknown brokers, repeats one, or has gaps.',
    40: 'A configuration key or value was refused.',
    41: 'This broker is not the controller.',
    42: 'The request contradicts itself or breaks a rule of the protocol.',
    43: "The log's record format is too old for what was asked.",
    44: 'A policy configured on the broker forbids these parameters.',
    45: "A batch's first sequence number does not follow the last one stored for its producer.",
    46: 'The batch is an old one that was already stored.',
    47: 'A newer instance of this producer has written; this one is out of date.',
    48: 'The transaction is not in a state that allows this.',
    49: 'The producer id is not the one its transactional id currently has.',
    50: 'The transaction timeout exceeds `transaction.max.timeout.ms`.',
    51: 'The previous step of the same transaction is still being carried out.',
    52: 'The coordinator that sent these transaction markers has been replaced.',
    53: 'Transactional Id authorization failed.',
    54: 'The broker runs without an authorizer or without the security feature needed.',
    55: 'Skipped, because an earlier part of the same request failed.',
    56: 'The disk that holds the log failed.',
    57: 'The broker has no log directory of that path.',
    58: 'The SASL credentials were wrong.',
    59: 'The broker remembers nothing of this producer id, usually because its records expired.',
    60: 'The partition is being moved to other brokers.',
    61: 'Delegation tokens are switched off.',
    62: 'There is no such delegation token.',
    63: 'The principal neither owns the delegation token nor may renew it.',
    64: 'A delegation token cannot be asked for over a connection that is unauthenticated or itself authenticated by a token.',
    65: 'Delegation Token authorization failed.',
    66: "The delegation token's time is over.",
    67: 'No such type of principal is supported here.',
    68: 'The group still has members.',
    69: 'There is no such group.',
    70: 'The fetch session is unknown; it was evicted, or the broker restarted.',
    71: "The fetch session's epoch is not the next one expected.",
    72: 'The leader has no listener with the name the client is connected to.',
    73: 'Topics cannot be deleted on this broker (`delete.topic.enable`).',
    74: 'The leader epoch given is out of date.',
    75: 'The leader epoch given is newer than any this broker has heard of.',
    76: "The batch's codec is newer than what this version of the API may carry.",
    77: "The broker epoch given is not the current registration's.",
    78: "A new leader's high watermark is still behind, so its offsets could go backwards.",
    79: 'The member has to join again with the id that this answer assigns.',
    80: 'The preferred leader is not alive or not in sync.',
    81: 'The group holds as many members as `group.max.size` allows.',
    82: 'Another member has taken over this `group.instance.id`.',
    83: 'None of the replicas that may lead is alive.',
    84: 'The partition already has the leader that was asked for.',
    85: 'The partition is not being moved.',
    86: 'The group is subscribed to this topic at the moment, so its offsets stay.',
    87: 'The broker checked the record and refused it; details are in the record errors.',
    88: 'Offsets of an open transaction are pending; ask again once it is decided.',
    89: 'A quota was used up; wait for the throttle time and retry.',
    90: 'A newer producer with the same transactional id has fenced this one off.',
    91: 'The thing named does not exist.',
    92: 'The same thing is named twice in one request.',
    93: 'The credential is weaker or otherwise other than the broker accepts.',
    94: "Sender or receiver does not belong to the quorum's voters.",
    95: 'A version to update to, or from, is not possible.',
    96: 'The feature level could not be changed.',
    97: 'The controller could not read the principal in a forwarded request.',
    98: 'There is no such metadata snapshot.',
    99: 'The position lies outside the snapshot.',
    100: 'This broker knows no topic of this id.',
    101: 'Another live broker is registered under this id.',
    102: 'No broker is registered under this id.',
    103: 'The log holds another topic id than the request names.',
    104: 'The request is meant for another cluster.',
    105: 'There is no such transactional id.',
    106: 'A fetch session mixes topic names and topic ids, or a topic id changed within it.',
    107: 'One of the replicas proposed for the in-sync set cannot be in it.',
    108: "The partition's state was written, and by it the partition got another leader.",
    109: "The offset's records are held in remote storage only.",
    110: 'The coordinator fenced this member epoch; the member has to give up its partitions and join anew.',
    111: 'Another member still owns this instance id and must leave first.',
    112: 'No server-side assignor of that name (or version) exists.',
    113: "The member epoch is an old one; the next heartbeat's answer has the current one.",
    114: 'The request reached a controller where it wanted a broker, or the reverse.',
    115: 'This kind of endpoint is not supported.',
    116: 'No controller has this id.',
    117: 'The telemetry subscription is unknown or out of date; ask for a new one.',
    118: 'The telemetry payload exceeds `telemetry.max.bytes`.',
    119: 'The controller refused the registration.',
    120: 'The transaction cannot be committed; after an abort the producer may go on.',
    121: "The share group's record is not in a state that allows this acknowledgement.",
    122: 'There is no such share session.',
    123: "The share session's epoch is not the next one expected.",
    124: "The state epoch given does not match the coordinator's.",
    125: "The voter's key does not belong to the replica that got the request.",
    126: 'The replica is a voter already.',
    127: 'The replica is not a voter.',
    128: 'The regular expression cannot be compiled.',
    129: "The client's picture of the cluster is too old; it should begin again from its bootstrap addresses.",
    130: 'The streams topology cannot be used.',
    131: "The streams topology's epoch cannot be used.",
    132: 'The group already has a newer epoch of the streams topology.',
    133: 'The broker holds as many share sessions as it may.',
    134: 'The group could not be deleted; the message beside the group tells why.',
    135: "The topology's description was not taken; the message beside it tells why.",
    136: 'No controller is registered under this id.',
}

_NUMBERS = {
    "UNKNOWN_SERVER_ERROR": -1,
    "NONE": 0,
    "OFFSET_OUT_OF_RANGE": 1,
    "CORRUPT_MESSAGE": 2,
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "INVALID_FETCH_SIZE": 4,
    "LEADER_NOT_AVAILABLE": 5,
    "NOT_LEADER_OR_FOLLOWER": 6,
    "REQUEST_TIMED_OUT": 7,
    "BROKER_NOT_AVAILABLE": 8,
    "REPLICA_NOT_AVAILABLE": 9,
    "MESSAGE_TOO_LARGE": 10,
    "STALE_CONTROLLER_EPOCH": 11,
    "OFFSET_METADATA_TOO_LARGE": 12,
    "NETWORK_EXCEPTION": 13,
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "COORDINATOR_NOT_AVAILABLE": 15,
    "NOT_COORDINATOR": 16,
    "INVALID_TOPIC_EXCEPTION": 17,
    "RECORD_LIST_TOO_LARGE": 18,
    "NOT_ENOUGH_REPLICAS": 19,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": 20,
    "INVALID_REQUIRED_ACKS": 21,
    "ILLEGAL_GENERATION": 22,
    "INCONSISTENT_GROUP_PROTOCOL": 23,
    "INVALID_GROUP_ID": 24,
    "UNKNOWN_MEMBER_ID": 25,
    "INVALID_SESSION_TIMEOUT": 26,
    "REBALANCE_IN_PROGRESS": 27,
    "INVALID_COMMIT_OFFSET_SIZE": 28,
    "TOPIC_AUTHORIZATION_FAILED": 29,
    "GROUP_AUTHORIZATION_FAILED": 30,
    "CLUSTER_AUTHORIZATION_FAILED": 31,
    "INVALID_TIMESTAMP": 32,
    "UNSUPPORTED_SASL_MECHANISM": 33,
    "ILLEGAL_SASL_STATE": 34,
    "UNSUPPORTED_VERSION": 35,
    "TOPIC_ALREADY_EXISTS": 36,
    "INVALID_PARTITIONS": 37,
    "INVALID_REPLICATION_FACTOR": 38,
    "INVALID_REPLICA_ASSIGNMENT": 39,
    "INVALID_CONFIG": 40,
    "NOT_CONTROLLER": 41,
    "INVALID_REQUEST": 42,
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": 43,
    "POLICY_VIOLATION": 44,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": 45,
    "DUPLICATE_SEQUENCE_NUMBER": 46,
    "INVALID_PRODUCER_EPOCH": 47,
    "INVALID_TXN_STATE": 48,
    "INVALID_PRODUCER_ID_MAPPING": 49,
    "INVALID_TRANSACTION_TIMEOUT": 50,
    "CONCURRENT_TRANSACTIONS": 51,
    "TRANSACTION_COORDINATOR_FENCED": 52,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": 53,
    "SECURITY_DISABLED": 54,
    "OPERATION_NOT_ATTEMPTED": 55,
    "KAFKA_STORAGE_ERROR": 56,
    "LOG_DIR_NOT_FOUND": 57,
    "SASL_AUTHENTICATION_FAILED": 58,
    "UNKNOWN_PRODUCER_ID": 59,
    "REASSIGNMENT_IN_PROGRESS": 60,
    "DELEGATION_TOKEN_AUTH_DISABLED": 61,
    "DELEGATION_TOKEN_NOT_FOUND": 62,
    "DELEGATION_TOKEN_OWNER_MISMATCH": 63,
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": 64,
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": 65,
    "DELEGATION_TOKEN_EXPIRED": 66,
    "INVALID_PRINCIPAL_TYPE": 67,
    "NON_EMPTY_GROUP": 68,
    "GROUP_ID_NOT_FOUND": 69,
    "FETCH_SESSION_ID_NOT_FOUND": 70,
    "INVALID_FETCH_SESSION_EPOCH": 71,
    "LISTENER_NOT_FOUND": 72,
    "TOPIC_DELETION_DISABLED": 73,
    "FENCED_LEADER_EPOCH": 74,
    "UNKNOWN_LEADER_EPOCH": 75,
    "UNSUPPORTED_COMPRESSION_TYPE": 76,
    "STALE_BROKER_EPOCH": 77,
    "OFFSET_NOT_AVAILABLE": 78,
    "MEMBER_ID_REQUIRED": 79,
    "PREFERRED_LEADER_NOT_AVAILABLE": 80,
    "GROUP_MAX_SIZE_REACHED": 81,
    "FENCED_INSTANCE_ID": 82,
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": 83,
    "ELECTION_NOT_NEEDED": 84,
    "NO_REASSIGNMENT_IN_PROGRESS": 85,
    "GROUP_SUBSCRIBED_TO_TOPIC": 86,
    "INVALID_RECORD": 87,
    "UNSTABLE_OFFSET_COMMIT": 88,
    "THROTTLING_QUOTA_EXCEEDED": 89,
    "PRODUCER_FENCED": 90,
    "RESOURCE_NOT_FOUND": 91,
    "DUPLICATE_RESOURCE": 92,
    "UNACCEPTABLE_CREDENTIAL": 93,
    "INCONSISTENT_VOTER_SET": 94,
    "INVALID_UPDATE_VERSION": 95,
    "FEATURE_UPDATE_FAILED": 96,
    "PRINCIPAL_DESERIALIZATION_FAILURE": 97,
    "SNAPSHOT_NOT_FOUND": 98,
    "POSITION_OUT_OF_RANGE": 99,
    "UNKNOWN_TOPIC_ID": 100,
    "DUPLICATE_BROKER_REGISTRATION": 101,
    "BROKER_ID_NOT_REGISTERED": 102,
    "INCONSISTENT_TOPIC_ID": 103,
    "INCONSISTENT_CLUSTER_ID": 104,
    "TRANSACTIONAL_ID_NOT_FOUND": 105,
    "FETCH_SESSION_TOPIC_ID_ERROR": 106,
    "INELIGIBLE_REPLICA": 107,
    "NEW_LEADER_ELECTED": 108,
    "OFFSET_MOVED_TO_TIERED_STORAGE": 109,
    "FENCED_MEMBER_EPOCH": 110,
    "UNRELEASED_INSTANCE_ID": 111,
    "UNSUPPORTED_ASSIGNOR": 112,
    "STALE_MEMBER_EPOCH": 113,
    "MISMATCHED_ENDPOINT_TYPE": 114,
    "UNSUPPORTED_ENDPOINT_TYPE": 115,
    "UNKNOWN_CONTROLLER_ID": 116,
    "UNKNOWN_SUBSCRIPTION_ID": 117,
    "TELEMETRY_TOO_LARGE": 118,
    "INVALID_REGISTRATION": 119,
    "TRANSACTION_ABORTABLE": 120,
    "INVALID_RECORD_STATE": 121,
    "SHARE_SESSION_NOT_FOUND": 122,
    "INVALID_SHARE_SESSION_EPOCH": 123,
    "FENCED_STATE_EPOCH": 124,
    "INVALID_VOTER_KEY": 125,
    "DUPLICATE_VOTER": 126,
    "VOTER_NOT_FOUND": 127,
    "INVALID_REGULAR_EXPRESSION": 128,
    "REBOOTSTRAP_REQUIRED": 129,
    "STREAMS_INVALID_TOPOLOGY": 130,
    "STREAMS_INVALID_TOPOLOGY_EPOCH": 131,
    "STREAMS_TOPOLOGY_FENCED": 132,
    "SHARE_SESSION_LIMIT_REACHED": 133,
    "GROUP_DELETION_FAILED": 134,
    "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED": 135,
    "CONTROLLER_ID_NOT_REGISTERED": 136,
}
_BY_NUMBER: dict[int, ErrorCode] = {}


def _add(name: str, number: int) -> ErrorCode:
    code = int.__new__(ErrorCode, number)
    code.name = name
    _BY_NUMBER[number] = code
    setattr(ErrorCode, name, code)
    return code


ERROR_CODES: dict[str, ErrorCode] = {name: _add(name, number) for name, number in _NUMBERS.items()}
"""Name → code. IntEnum would make them of the class itself, in 11 M instructions of each start."""
