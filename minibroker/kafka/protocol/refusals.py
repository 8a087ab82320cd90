"""Errors as answers: a request is refused in the places and the layout of its version.

Most answers have one code at the top. The others have it beside each topic, partition, group or
resource that the request names: `MIRRORS` says which list of the request is which list of the
answer. The broker and the proxy refuse by it. A few handlers of the broker have an
`error_response` of their own, where the answer has items that no list of the request has.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.kafka.protocol import api_keys
from minibroker.kafka.protocol.api_keys import APIS, load_messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.kafka.error_codes import ErrorCode

_ALWAYS: Final = 1 << 15
_FINAL_EPOCH: Final = -1
"""The epoch of a fetch without a session."""


class MirrorLevel(NamedTuple):
    """One list of a request, and the list of the answer that has the same items."""

    requested: str
    answered: str
    kind: str
    """The class of an item of the answer."""
    fields: tuple[str, ...] = ()
    """Fields that the answer repeats; `a=b`: field a of the answer is field b of the request.
    `a=` alone: the item itself, which is a text or a number."""
    own: tuple[tuple[str, Any], ...] = ()
    """Values of the answer's own fields, where the protocol's default says something else."""
    has_detail: bool = True
    """True if an item has the text of the error beside its code."""


class Mirror(NamedTuple):
    """The answer of an API to a request that is refused as a whole."""

    levels: tuple[MirrorLevel, ...] = ()
    """From the outer list to the inner one; the code is in the inner one."""
    top_from: int = _ALWAYS
    """The first version with a code at the top."""
    top_until: int = _ALWAYS
    """The first version after that without one."""
    lists_until: int = _ALWAYS
    """The first version without a code in the lists."""
    lists_from: int = 0
    own: tuple[tuple[str, Any], ...] = ()


class _RefusedWith(NamedTuple):
    """The error of an answer, and the module with the classes of its items."""

    code: ErrorCode
    detail: str | None
    messages: Any


def _by_partition(kind: str, inner_kind: str, *fields: str) -> tuple[MirrorLevel, MirrorLevel]:
    """Return the levels of the usual shape: `topics`, each with `partitions`."""
    names = fields or ("name",)
    return (
        MirrorLevel("topics", "topics", kind, names),
        MirrorLevel("partitions", "partitions", inner_kind, ("partition_index",)),
    )


_RESOURCES: Final = ("resource_type", "resource_name")
MIRRORS: Final[dict[int, Mirror]] = {
    api_keys.PRODUCE: Mirror(
        (
            MirrorLevel("topic_data", "responses", "TopicProduceResponse", ("name", "topic_id")),
            MirrorLevel(
                "partition_data",
                "partition_responses",
                "PartitionProduceResponse",
                ("index",),
                (("base_offset", -1),),
            ),
        )
    ),
    api_keys.FETCH: Mirror(
        (
            MirrorLevel("topics", "responses", "FetchableTopicResponse", ("topic", "topic_id")),
            MirrorLevel(
                "partitions",
                "partitions",
                "PartitionData",
                ("partition_index=partition",),
                (("high_watermark", -1),),
            ),
        ),
        top_from=7,
    ),
    api_keys.LIST_OFFSETS: Mirror(
        _by_partition("ListOffsetsTopicResponse", "ListOffsetsPartitionResponse")
    ),
    api_keys.METADATA: Mirror(
        (MirrorLevel("topics", "topics", "MetadataResponseTopic", ("name", "topic_id")),),
        top_from=13,
    ),
    api_keys.OFFSET_COMMIT: Mirror(
        _by_partition(
            "OffsetCommitResponseTopic",
            "OffsetCommitResponsePartition",
            "name",
            "topic_id",
        )
    ),
    api_keys.FIND_COORDINATOR: Mirror(
        (
            MirrorLevel(
                "coordinator_keys",
                "coordinators",
                "Coordinator",
                ("key=",),
                (("node_id", -1), ("host", ""), ("port", -1)),
            ),
        ),
        top_from=0,
        top_until=4,
        lists_from=4,
        own=(("node_id", -1), ("host", ""), ("port", -1)),
    ),
    api_keys.DESCRIBE_GROUPS: Mirror(
        (MirrorLevel("groups", "groups", "DescribedGroup", ("group_id=",), has_detail=False),)
    ),
    api_keys.CREATE_TOPICS: Mirror(
        (MirrorLevel("topics", "topics", "CreatableTopicResult", ("name",), (("configs", ()),)),)
    ),
    api_keys.DELETE_RECORDS: Mirror(
        (
            MirrorLevel("topics", "topics", "DeleteRecordsTopicResult", ("name",)),
            MirrorLevel(
                "partitions",
                "partitions",
                "DeleteRecordsPartitionResult",
                ("partition_index=",),
                (("low_watermark", -1),),
            ),
        )
    ),
    api_keys.INIT_PRODUCER_ID: Mirror(top_from=0, own=(("producer_epoch", -1),)),
    api_keys.OFFSET_FOR_LEADER_EPOCH: Mirror(
        (
            MirrorLevel("topics", "topics", "OffsetForLeaderTopicResult", ("topic",)),
            MirrorLevel("partitions", "partitions", "EpochEndOffset", ("partition",)),
        )
    ),
    api_keys.TXN_OFFSET_COMMIT: Mirror(
        _by_partition(
            "TxnOffsetCommitResponseTopic",
            "TxnOffsetCommitResponsePartition",
            "name",
            "topic_id",
        )
    ),
    api_keys.CREATE_ACLS: Mirror((MirrorLevel("creations", "results", "AclCreationResult"),)),
    api_keys.DELETE_ACLS: Mirror(
        (MirrorLevel("filters", "filter_results", "DeleteAclsFilterResult"),)
    ),
    api_keys.DESCRIBE_CONFIGS: Mirror(
        (MirrorLevel("resources", "results", "DescribeConfigsResult", _RESOURCES),)
    ),
    api_keys.ALTER_CONFIGS: Mirror(
        (MirrorLevel("resources", "responses", "AlterConfigsResourceResponse", _RESOURCES),)
    ),
    api_keys.CREATE_PARTITIONS: Mirror(
        (MirrorLevel("topics", "results", "CreatePartitionsTopicResult", ("name",)),)
    ),
    api_keys.DELETE_GROUPS: Mirror(
        (
            MirrorLevel(
                "groups_names", "results", "DeletableGroupResult", ("group_id=",), has_detail=False
            ),
        )
    ),
    api_keys.ELECT_LEADERS: Mirror(
        (
            MirrorLevel(
                "topic_partitions", "replica_election_results", "ReplicaElectionResult", ("topic",)
            ),
            MirrorLevel("partitions", "partition_result", "PartitionResult", ("partition_id=",)),
        ),
        top_from=1,
    ),
    api_keys.INCREMENTAL_ALTER_CONFIGS: Mirror(
        (MirrorLevel("resources", "responses", "AlterConfigsResourceResponse", _RESOURCES),)
    ),
    api_keys.ALTER_CLIENT_QUOTAS: Mirror(
        (
            MirrorLevel("entries", "entries", "ResponseEntryData"),
            MirrorLevel("entity", "entity", "EntityData", ("entity_type", "entity_name")),
        )
    ),
    api_keys.DESCRIBE_CLIENT_QUOTAS: Mirror(
        top_from=0, own=(("entries", None), ("error_message", None))
    ),
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: Mirror(
        (MirrorLevel("users", "results", "DescribeUserScramCredentialsResult"),),
        top_from=0,
        own=(("error_message", None),),
    ),
    api_keys.DESCRIBE_PRODUCERS: Mirror(
        (
            MirrorLevel("topics", "topics", "TopicResponse", ("name",)),
            MirrorLevel(
                "partition_indexes", "partitions", "PartitionResponse", ("partition_index=",)
            ),
        )
    ),
    api_keys.DESCRIBE_TRANSACTIONS: Mirror(
        (
            MirrorLevel(
                "transactional_ids",
                "transaction_states",
                "TransactionState",
                ("transactional_id=",),
            ),
        )
    ),
    api_keys.CONSUMER_GROUP_DESCRIBE: Mirror(
        (MirrorLevel("group_ids", "groups", "DescribedGroup", ("group_id=",)),)
    ),
    api_keys.SHARE_GROUP_DESCRIBE: Mirror(
        (MirrorLevel("group_ids", "groups", "DescribedGroup", ("group_id=",)),)
    ),
    api_keys.STREAMS_GROUP_DESCRIBE: Mirror(
        (MirrorLevel("group_ids", "groups", "DescribedGroup", ("group_id=",)),)
    ),
    api_keys.DESCRIBE_TOPIC_PARTITIONS: Mirror(
        (MirrorLevel("topics", "topics", "DescribeTopicPartitionsResponseTopic", ("name",)),)
    ),
    api_keys.ALTER_REPLICA_LOG_DIRS: Mirror(
        (
            MirrorLevel("topics", "results", "AlterReplicaLogDirTopicResult", ("topic_name=name",)),
            MirrorLevel(
                "partitions",
                "partitions",
                "AlterReplicaLogDirPartitionResult",
                ("partition_index=",),
            ),
        )
    ),
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: Mirror(
        (MirrorLevel("names", "results", "AlterUserScramCredentialsResult", ("user=",)),)
    ),
    api_keys.DESCRIBE_SHARE_GROUP_OFFSETS: Mirror(
        (MirrorLevel("groups", "groups", "DescribeShareGroupOffsetsResponseGroup", ("group_id",)),)
    ),
}
_DELETED_BY_NAME: Final = Mirror(
    (MirrorLevel("topic_names", "responses", "DeletableTopicResult", ("name=",), has_detail=False),)
)
_DELETED: Final = Mirror(
    (
        MirrorLevel(
            "topics", "responses", "DeletableTopicResult", ("name", "topic_id"), has_detail=False
        ),
    )
)
_OFFSETS_OF_GROUPS: Final = Mirror(
    (MirrorLevel("groups", "groups", "OffsetFetchResponseGroup", ("group_id",)),)
)
_OFFSETS_BY_PARTITION: Final = Mirror(
    (
        MirrorLevel("topics", "topics", "OffsetFetchResponseTopic", ("name",)),
        MirrorLevel(
            "partition_indexes",
            "partitions",
            "OffsetFetchResponsePartition",
            ("partition_index=",),
            (("committed_offset", -1), ("committed_leader_epoch", -1), ("metadata", "")),
        ),
    ),
    top_from=2,
    lists_until=2,
)
_ADDED_BY_PARTITION: Final = Mirror(
    (
        MirrorLevel(
            "v3_and_below_topics",
            "results_by_topic_v3_and_below",
            "AddPartitionsToTxnTopicResult",
            ("name",),
        ),
        MirrorLevel(
            "partitions",
            "results_by_partition",
            "AddPartitionsToTxnPartitionResult",
            ("partition_index=",),
        ),
    ),
    top_from=4,
    lists_until=4,
)
_ERROR_FIELDS: Final = ("error_code", "partition_error_code")
_TOP_ONLY: Final = Mirror(top_from=0)
_NULL_NAMES_FROM: Final = 12
"""Version of Metadata from which on a name in the answer may be null."""


def refusal(request: Any, version: int, code: ErrorCode, detail: str | None) -> Any:
    """Return the answer that refuses the whole request, None for an API that answers no error."""
    api_key: int = request.API_KEY
    module = import_module(f"minibroker.kafka.protocol.messages.{APIS[api_key].module}")
    _, response_class = load_messages(api_key)
    response: Any = response_class()
    if api_key in _GROUPED:
        request = _GROUPED[api_key](request)
    mirror = _mirror_of(request, version)
    has_top = mirror.top_from <= version < mirror.top_until
    if has_top:
        _set_all(response, mirror.own)
        has_top = _set_error(response, code)
        if detail is not None and "error_message" in response.__slots__:
            response.error_message = detail
    if mirror.levels and mirror.lists_from <= version < mirror.lists_until:
        if api_key == api_keys.FETCH and has_top and request.session_epoch != _FINAL_EPOCH:
            return response
        _fill(response, request, mirror.levels, _RefusedWith(code, detail, module))
        if api_key == api_keys.METADATA and version < _NULL_NAMES_FROM:
            for topic in response.topics:
                topic.name = topic.name or ""
    elif not has_top:
        return None
    return response


def _mirror_of(request: Any, version: int) -> Mirror:
    """Return the row of a request; some depend on its version, or on what is in it."""
    match request.API_KEY:
        case api_keys.DELETE_TOPICS:
            return _DELETED if version >= 6 else _DELETED_BY_NAME
        case api_keys.OFFSET_FETCH:
            return _OFFSETS_OF_GROUPS if version >= 8 else _OFFSETS_BY_PARTITION
        case api_keys.ADD_PARTITIONS_TO_TXN:
            return _ADDED_BY_PARTITION
    return MIRRORS.get(request.API_KEY, _TOP_ONLY)


class _Items:
    """Items of a request in another order: those of the answer's lists."""

    def __init__(self, api_key: int, **lists: Any) -> None:
        self.API_KEY = api_key
        vars(self).update(lists)


def _topics(api_key: int, places: Iterable[tuple[str, int]]) -> _Items:
    """Return places by topic, each once."""
    topics: dict[str, dict[int, None]] = {}
    for topic, index in places:
        topics.setdefault(topic, {})[index] = None
    return _Items(
        api_key,
        topics=[_Items(0, name=name, partitions=list(indexes)) for name, indexes in topics.items()],
    )


def _moved_replicas(request: Any) -> _Items:
    """Return the partitions that are to move, by topic: the request has them by directory."""
    topics = (topic for directory in request.dirs for topic in directory.topics)
    places = ((topic.name, index) for topic in topics for index in topic.partitions)
    return _topics(api_keys.ALTER_REPLICA_LOG_DIRS, places)


def _shortened(request: Any) -> _Items:
    """Return the partitions whose records are to go."""
    return _topics(
        api_keys.DELETE_RECORDS,
        (
            (topic.name, part.partition_index)
            for topic in request.topics
            for part in topic.partitions
        ),
    )


def _users(request: Any) -> _Items:
    """Return each user once, as the answer has them."""
    changes = (*request.upsertions, *request.deletions)
    names = dict.fromkeys(change.name for change in changes)
    return _Items(api_keys.ALTER_USER_SCRAM_CREDENTIALS, names=list(names))


_GROUPED: Final = {
    api_keys.ALTER_REPLICA_LOG_DIRS: _moved_replicas,
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: _users,
    api_keys.DELETE_RECORDS: _shortened,
}
"""Requests whose items the answer has in another order."""


def _fill(answer: Any, request: Any, levels: tuple[MirrorLevel, ...], error: _RefusedWith) -> None:
    """Put an item into the answer for each item of the request, and so on in the levels below."""
    level, *inner = levels
    kind = getattr(error.messages, level.kind)
    items = getattr(answer, level.answered)
    for requested_item in getattr(request, level.requested) or ():
        item = kind()
        for field in level.fields:
            name, equals, source = field.partition("=")
            is_itself = equals and not source
            value = requested_item if is_itself else getattr(requested_item, source or name)
            setattr(item, name, value)
        _set_all(item, level.own)
        if _set_error(item, error.code) and level.has_detail and "error_message" in item.__slots__:
            item.error_message = error.detail
        if inner:
            _fill(item, requested_item, tuple(inner), error)
        items.append(item)


def _set_all(message: Any, values: tuple[tuple[str, Any], ...]) -> None:
    for name, value in values:
        setattr(message, name, [] if value == () else value)


def _set_error(message: Any, code: ErrorCode) -> bool:
    """Put the code into a structure; return whether it has a place for one."""
    for field in _ERROR_FIELDS:
        if field in message.__slots__:
            setattr(message, field, int(code))
            return True
    return False
