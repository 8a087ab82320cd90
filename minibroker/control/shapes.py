"""The shapes of the control API: each field of a query, a body and an answer stands here, once.

    shapes ─┬─► bodies: checks of queries and bodies, and the JSON of answers
            └─► description: `openapi.json`, and from it the reference page and typed clients

A fault's fields are the arguments of `rig.faults.Fault`, with their types and sentences.
"""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, defstruct

from minibroker.rig import faults, names
from minibroker.rig.faults import DELAY_MS_MAX, LEAST, Fault
from minibroker.rig.request_log import SeenRequest

INT64_MAX: Final = (1 << 63) - 1
Count = Annotated[int, Meta(ge=0, le=INT64_MAX)]
CENTURY_DAYS: Final = 36_500
"""The most that a clock moves at once: timestamps stay far below their largest value."""


BrokerId = Annotated[int, Meta(description="The id of the broker that it is of.")]


class QueryShape(Struct, forbid_unknown_fields=True, kw_only=True):
    """The fields of a query, or of a body; a field that is null counts as missing."""


class AnswerShape(Struct, kw_only=True):
    """An answer."""


class Nothing(QueryShape):
    """No field."""


class Error(AnswerShape):
    """The answer of each 4xx and 5xx."""

    error: Annotated[str, Meta(description="A sentence that says what to do.")]


# Health and views.


class Overview(AnswerShape):
    """The paths that there are."""

    version: Annotated[str, Meta(description="The version of minibroker.")]
    paths: list[PathView]


class PathView(AnswerShape):
    """A path and one of its methods."""

    method: str
    path: str
    summary: str


class MemberBroker(AnswerShape):
    """A broker of this process."""

    id: int
    address: Annotated[str, Meta(description="Null while it is killed.")] | None
    state: Annotated[str, Meta(description="`running`, `paused` or `killed`.")]
    is_controller: bool


class ConsoleView(AnswerShape):
    """The console of a broker, or of a proxy."""

    kind: Annotated[str, Meta(description="`broker` or `proxy`.")]
    version: str
    cluster_id: str | None
    broker: Annotated[int, Meta(description="The id of the broker that serves this.")] | None
    views: list[str]
    may_write: Annotated[bool, Meta(description="False: the caller may only read.")]
    why_not: Annotated[str, Meta(description="A sentence; null: it may.")] | None
    may_read_records: bool
    brokers: list[MemberBroker]


class Live(AnswerShape):
    """The process answers."""

    live: bool


class Ready(AnswerShape):
    """The health: whether a client would succeed now."""

    ready: bool
    reasons: Annotated[list[str], Meta(description="A sentence for each reason why not.")]


class PartitionView(AnswerShape):
    """A partition; offsets are -1 where a broker of another process leads it."""

    partition: int
    leader: Annotated[int, Meta(description="The id of the leader, -1 where there is none.")]
    replicas: list[int]
    in_sync: list[int]
    log_start_offset: int
    high_watermark: int
    size_bytes: int


class TopicView(AnswerShape):
    """A topic with its partitions."""

    name: str
    internal: bool
    partitions: list[PartitionView]


class CommittedView(AnswerShape):
    """A committed offset."""

    topic: str
    partition: int
    offset: int


class GroupView(AnswerShape):
    """A group that a broker of this process coordinates, with its committed offsets."""

    group: str
    kind: Annotated[str, Meta(description="`classic` or `consumer`.")]
    broker_id: BrokerId
    state: Annotated[str, Meta(description="Kafka's name of the state: `Stable`, `Empty`, …")]
    members: Annotated[int, Meta(description="The number of members.")]
    lag: Annotated[
        int | None,
        Meta(
            description="Records between the committed offsets and the ends of their partitions;"
            " null where a broker of another process leads one of these."
        ),
    ]
    committed: list[CommittedView]


ApiName = Annotated[str, Meta(description="Kafka's name of the request.")]
Address = Annotated[str, Meta(description="HOST:PORT, so those of one connection.")]
Failed = Annotated[bool, Meta(description="Only those with an error in the answer.")]
SlowMs = Annotated[float, Meta(ge=0, description="Only those that took as long.")]


class RequestsQuery(QueryShape):
    """A choice of the last requests."""

    limit: Annotated[Count, Meta(description="The most that are shown.")] = 100
    api: ApiName | None = None
    client_id: str | None = None
    client_address: Address | None = None
    failed: Failed = False
    slow_ms: SlowMs | None = None
    broker_id: (
        Annotated[Count, Meta(description="Of this broker; missing: see `all_brokers`.")] | None
    ) = None
    all_brokers: Annotated[
        bool, Meta(description="Of all brokers of this process, not only of this one.")
    ] = False


class FeedQuery(QueryShape):
    """A choice of the requests that come from now on, of all brokers of this process."""

    last: Annotated[int, Meta(ge=0, le=500, description="So many earlier ones come first.")] = 100
    rate: Annotated[
        int, Meta(ge=1, le=500, description="The most requests a second; the rest is counted.")
    ] = 200
    api: ApiName | None = None
    client_id: str | None = None
    client_address: Address | None = None
    failed: Failed = False
    slow_ms: SlowMs | None = None
    broker_id: Annotated[Count, Meta(description="Of this broker; missing: of all.")] | None = None


RequestView: Any = defstruct(
    "RequestView",
    [("broker_id", BrokerId | None), *get_type_hints(SeenRequest).items()],
    bases=(AnswerShape,),
    namespace={"__doc__": "A request that was handled."},
    kw_only=True,
)


class FeedEvent(AnswerShape):
    """The requests that came, as an event of a stream."""

    skipped: Annotated[int, Meta(description="Requests that were left out since the event before.")]
    requests: list[RequestView]
    open: Annotated[
        list[RequestView],
        Meta(description="All requests without an answer, the oldest ones; `duration_ms`: so far."),
    ]


# Faults.


def _sentences(documented: Any) -> dict[str, str]:
    """Return argument → its sentence in the docstring."""
    text = (inspect.getdoc(documented) or "").partition("Args:\n")[2]
    sections = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", text, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", sentence) for name, sentence in sections}


def _fields_of_a_fault() -> list[tuple[str, Any, Any]]:
    """Return name, type and default of each argument of a fault that HTTP takes."""
    scope = vars(faults) | vars(names)
    hints = get_type_hints(Fault.__init__, scope) | {"api": str | None, "error": str | None}
    sentences = _sentences(Fault)
    fields = []
    for name, parameter in inspect.signature(Fault).parameters.items():
        if name == "may_miss":
            continue
        limits: dict[str, Any] = {"description": sentences[name]}
        if name in LEAST:
            limits |= {"ge": LEAST[name], "le": DELAY_MS_MAX if name == "delay_ms" else INT64_MAX}
        kind = hints[name]
        if limits.keys() & {"ge"} and type(None) in getattr(kind, "__args__", ()):
            kind = Annotated[int, Meta(**limits)] | None
        else:
            kind = Annotated[kind, Meta(**limits)]
        fields.append((name, kind, parameter.default))
    return fields


_FAULT_FIELDS: Final = _fields_of_a_fault()
FaultRule: Any = defstruct(
    "FaultRule",
    _FAULT_FIELDS,
    bases=(QueryShape,),
    namespace={"__doc__": "A rule: which requests it meets, how often, and what it does."},
    forbid_unknown_fields=True,
    kw_only=True,
)
FaultView: Any = defstruct(
    "FaultView",
    [
        ("id", int),
        ("hits", Annotated[int, Meta(description="The number of requests that it met.")]),
        ("broker_id", BrokerId | None, None),
        *_FAULT_FIELDS,
    ],
    bases=(AnswerShape,),
    namespace={"__doc__": "A rule that is in force; fields that say nothing are left out."},
    omit_defaults=True,
    kw_only=True,
)


class FaultField(AnswerShape):
    """A field of a fault."""

    name: str
    type: Annotated[str, Meta(description="`string`, `integer`, `number` or `boolean`.")]
    description: str
    choices: Annotated[list[str], Meta(description="The texts that it may be; empty: any.")]


def fault_fields() -> list[FaultField]:
    """Return the fields of a fault, with the names that they may be."""
    hints = get_type_hints(Fault.__init__, vars(faults) | vars(names))
    choices = {"error": get_args(names.ErrorName)}
    sentences = _sentences(Fault)
    return [
        FaultField(
            name=name,
            type=_type_of(hints[name]),
            description=sentences[name],
            choices=[*choices.get(name, _texts_of(hints[name]))],
        )
        for name, _, _ in _FAULT_FIELDS
    ]


def _type_of(kind: Any) -> str:
    """Return JSON's word for a type."""
    words = {bool: "boolean", int: "integer", float: "number"}
    kinds = (kind, *get_args(kind))
    return next((word for part, word in words.items() if part in kinds), "string")


def _texts_of(kind: Any) -> list[str]:
    """Return the texts of the literals in a type."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [text for part in get_args(kind) for text in _texts_of(part)]


# The clock, and the cluster.


class ClockView(AnswerShape):
    """The broker's clock."""

    now_ms: Annotated[int, Meta(description="Milliseconds since the epoch.")]
    ahead_ms: Annotated[int, Meta(description="Milliseconds ahead of the machine's clock.")]


class TimersQuery(QueryShape):
    """A choice of calls of the clock."""

    limit: Annotated[int, Meta(ge=1, le=200, description="The most that are shown.")] = 20


class TimerView(AnswerShape):
    """A call that a broker's clock makes: what happens when the clock is moved so far."""

    broker_id: BrokerId
    in_ms: Annotated[int, Meta(description="Milliseconds until it.")]
    at_ms: Annotated[int, Meta(description="Its time, in milliseconds since the epoch.")]
    text: str
    count: Annotated[int, Meta(description="So many of the same kind within a second.")]


class Advance(QueryShape):
    """How far to move the clock: the sum of the fields."""

    days: Annotated[float, Meta(ge=0, le=CENTURY_DAYS)] = 0
    hours: Annotated[float, Meta(ge=0, le=CENTURY_DAYS * 24)] = 0
    minutes: Annotated[float, Meta(ge=0, le=CENTURY_DAYS * 1440)] = 0
    seconds: Annotated[float, Meta(ge=0, le=CENTURY_DAYS * 86_400)] = 0
    milliseconds: Annotated[float, Meta(ge=0, le=CENTURY_DAYS * 86_400_000)] = 0


class BrokerView(AnswerShape):
    """A broker of the cluster."""

    id: int
    address: str


class NotInSync(AnswerShape):
    """A partition that lacks a replica."""

    topic: str
    partition: int
    in_sync: list[int]


class ClusterView(AnswerShape):
    """The cluster as this broker knows it."""

    broker: Annotated[int, Meta(description="The id of this broker.")]
    controller: int
    controller_epoch: int
    metadata_age_ms: Annotated[
        int | None, Meta(description="Null where no other broker tells this one.")
    ]
    brokers: list[BrokerView]
    not_in_sync: list[NotInSync]


class LeaderChoice(QueryShape):
    """A partition, and who is to lead it."""

    topic: str
    partition: Count = 0
    broker: Annotated[Count, Meta(description="An id; missing: this broker.")] | None = None


# Records. The fields of a record are those of a seed's record line (`seeds.items`).


KeyText = Annotated[str, Meta(description="Only records with exactly this key.")]
KeyBytes = Annotated[str, Meta(description="The same, for any bytes, in base64.")]
BytesMax = Annotated[
    int,
    Meta(
        ge=1,
        le=INT64_MAX,
        description="Keys, values and headers are cut behind so many bytes, and have their sizes"
        " beside them.",
    ),
]


class RecordsQuery(QueryShape):
    """A choice of records: from a place on, at most so many."""

    partition: Annotated[Count, Meta(description="Missing: all of them, in order.")] | None = None
    offset: (
        Annotated[
            Count, Meta(description="The first offset; needs `partition`, if there are more.")
        ]
        | None
    ) = None
    since: (
        Annotated[
            str,
            Meta(
                description="Records from this time on: milliseconds since the epoch, a text such"
                " as 2026-11-24T17:30Z, or one relative to the broker's clock, such as -1h."
            ),
        ]
        | None
    ) = None
    tail: Annotated[Count, Meta(description="The last offsets of each partition.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000, description="The most records.")] = 100
    max_bytes: Annotated[
        int,
        Meta(ge=1, le=4 << 20, description="Keys and values end behind so many bytes."),
    ] = 1 << 20
    format: Annotated[
        Literal["text", "json", "base64", "registry"],
        Meta(
            description="How a value is shown. text: in `value`. json: decoded, in `value`. base64:"
            " in `value_base64`; so are, with text and json, bytes that are neither. registry: as"
            " json, and values of Confluent's serializers by their schemas (Avro, JSON Schema)."
        ),
    ] = "text"
    isolation: Annotated[
        Literal["read_committed", "read_uncommitted"],
        Meta(description="Whether records of open and aborted transactions are left out."),
    ] = "read_committed"
    wait_ms: Annotated[
        int, Meta(ge=0, le=30_000, description="The longest wait for `at_least` records.")
    ] = 0
    at_least: Annotated[int, Meta(ge=1, le=1000, description="See `wait_ms`.")] = 1
    # New fields come last: some generators make arguments of them, in this order.
    key: KeyText | None = None
    key_base64: KeyBytes | None = None
    value_bytes_max: BytesMax | None = None
    until: (
        Annotated[str, Meta(description="Only records before this time, given as for `since`.")]
        | None
    ) = None


class RecordView(AnswerShape):
    """A record, in the form of a seed's line."""

    topic: str
    partition: int
    offset: int
    timestamp: Annotated[
        int, Meta(description="Milliseconds since the epoch, -1 for a record without one.")
    ]
    key: str | UnsetType | None = UNSET
    key_base64: str | UnsetType = UNSET
    value: Annotated[Any, Meta(description="Null: a tombstone.")] | UnsetType = UNSET
    value_base64: str | UnsetType = UNSET
    headers: (
        Annotated[
            list[list[Any]],
            Meta(description='Pairs of a name and a text, null, or {"base64": …}, in their order.'),
        ]
        | UnsetType
    ) = UNSET
    key_size: (
        Annotated[int, Meta(description="Bytes; null: no key. With `value_bytes_max`.")]
        | UnsetType
        | None
    ) = UNSET
    value_size: (
        Annotated[int, Meta(description="Bytes; null: a tombstone. With `value_bytes_max`.")]
        | UnsetType
        | None
    ) = UNSET
    cut: Annotated[bool, Meta(description="True where a part was cut.")] | UnsetType = UNSET
    schema_id: (
        Annotated[int, Meta(description="The schema of the value, with the format registry.")]
        | UnsetType
    ) = UNSET


class PositionView(AnswerShape):
    """The end of the records that were read of a partition."""

    partition: int
    next_offset: Annotated[int, Meta(description="The offset to go on with.")]
    end_offset: Annotated[int, Meta(description="The end of the partition for this reader.")]


class RecordsView(AnswerShape):
    """Records, and where to go on; as `application/x-ndjson` only a line for each record."""

    records: list[RecordView]
    positions: list[PositionView]


class TailQuery(QueryShape, kw_only=True):
    """A choice of the records that come from now on.

    Its texts have patterns in place of choices: generators of clients name a choice only once.
    """

    format: Annotated[
        str,
        Meta(
            pattern="^(text|json|base64|registry)$",
            description="As of `/topics/{topic}/records`.",
        ),
    ] = "text"
    isolation: Annotated[
        str,
        Meta(
            pattern="^(read_committed|read_uncommitted)$",
            description="As of `/topics/{topic}/records`.",
        ),
    ] = "read_committed"
    topic: str
    partition: Annotated[Count, Meta(description="Missing: all of them.")] | None = None
    tail: Annotated[
        int, Meta(ge=0, le=1000, description="The last records of each partition come first.")
    ] = 10
    rate: Annotated[
        int, Meta(ge=1, le=1000, description="The most records a second; the rest is counted.")
    ] = 50
    key: KeyText | None = None
    key_base64: KeyBytes | None = None
    value_bytes_max: BytesMax | None = None


class TailEvent(AnswerShape):
    """The records that came, as an event of a stream."""

    skipped: Annotated[
        int, Meta(description="Offsets that were left out since the event before: too many came.")
    ]
    records: list[RecordView]


class PartQuery(QueryShape):
    """A part of one record."""

    partition: Count
    offset: Count
    part: Literal["value", "key"] = "value"


class NewRecord(QueryShape):
    """A record to write, as one that was read; without a value it is a tombstone."""

    topic: Annotated[str, Meta(description="It says nothing here.")] | None = None
    offset: Annotated[Count, Meta(description="It says nothing here.")] | None = None

    partition: (
        Annotated[Count, Meta(description="Missing: as Java's producer chooses it by the key.")]
        | None
    ) = None
    timestamp: (
        Annotated[
            int | str,
            Meta(description="Milliseconds, a text as of `since`; missing: the broker's time."),
        ]
        | None
    ) = None
    key: Annotated[Any, Meta(description="A text, other JSON, or null.")] = None
    key_base64: str | None = None
    value: Annotated[Any, Meta(description="A text, other JSON, or null.")] = None
    value_base64: str | None = None
    headers: (
        Annotated[
            list[list[Any]],
            Meta(description='Pairs of a name and a text, null, or {"base64": …}.'),
        ]
        | None
    ) = None


class NewRecords(QueryShape):
    """Records to write, in their order."""

    records: Annotated[list[NewRecord], Meta(min_length=1)]


class RawRecords(QueryShape):
    """The same, with records that are not decoded yet."""

    records: Annotated[list[Raw], Meta(min_length=1)]


class WrittenView(AnswerShape):
    """The place of a record that was written."""

    partition: int
    offset: int


class WrittenRecords(AnswerShape):
    """The places of the records, in the order of the request."""

    records: list[WrittenView]


# Waits.


class WaitQuery(QueryShape):
    """A wait."""

    timeout_ms: Annotated[int, Meta(ge=0, le=60_000, description="The longest wait.")] = 10_000


class ReadyQuery(WaitQuery):
    """A wait for a group that is ready."""

    members: (
        Annotated[int, Meta(ge=1, le=INT64_MAX, description="Exactly so many; missing: any.")]
        | None
    ) = None


class ReadQuery(WaitQuery):
    """A wait for a group that has read everything."""

    fetched: Annotated[
        bool, Meta(description="A record that a member fetched counts as read, committed or not.")
    ] = False


class ConsumerQuery(WaitQuery):
    """A wait for a consumer, also for one without a group."""

    partition: Annotated[Count, Meta(description="Missing: all.")] | None = None
    client_id: str | None = None


class PlaceView(AnswerShape):
    """A partition of a topic."""

    topic: str
    partition: int


class MemberView(AnswerShape):
    """A member of a group, with the partitions that it has."""

    member_id: str
    client_id: str
    instance_id: str | None
    partitions: list[PlaceView]


# Seeds.


class LoadedView(AnswerShape):
    """The result of a seed."""

    topics: Annotated[list[str], Meta(description="The topics that were made.")]
    records: Annotated[dict[str, int], Meta(description="Topic and records that were written.")]
    groups: Annotated[list[str], Meta(description="The groups with an offset.")]
