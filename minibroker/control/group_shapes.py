"""The shapes of groups in full, and of their offsets."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from minibroker.control.shapes import AnswerShape, BrokerId, Count, PlaceView, QueryShape

INT64 = 1 << 63


class MemberDetail(AnswerShape):
    """A member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: Annotated[str, Meta(description="As Kafka writes it: `/127.0.0.1`.")]
    epoch: Annotated[
        int | None, Meta(description="The member's epoch; null in a group of the classic protocol.")
    ]
    subscription: Annotated[
        list[str], Meta(description="Topics, and a pattern as /pattern/; at most 100.")
    ]
    partitions: list[PlaceView]


class OffsetDetail(AnswerShape):
    """A committed offset, and the partition that it is of."""

    topic: str
    partition: int
    offset: int
    metadata: str
    committed_ms: int
    log_start_offset: Annotated[
        int, Meta(description="-1 where a broker of another process leads the partition.")
    ]
    end_offset: int
    lag: int | None
    member_id: Annotated[str, Meta(description="Null: no member has the partition.")] | None


class GroupDetail(AnswerShape):
    """A group in full."""

    group: str
    kind: Annotated[str, Meta(description="`classic` or `consumer`.")]
    broker_id: BrokerId
    state: str
    protocol_type: str | None
    assignor: Annotated[str, Meta(description="Null: there is none yet.")] | None
    generation: Annotated[int, Meta(description="Of the group; its epoch in the kind consumer.")]
    lag: int | None
    members: list[MemberDetail]
    offsets: list[OffsetDetail]


class GroupName(AnswerShape):
    """A group that was deleted."""

    group: str


class OffsetReset(QueryShape):
    """The place from which a group without members is to read."""

    to: Annotated[
        Literal["earliest", "latest", "offset", "time", "shift"],
        Meta(
            description="earliest, latest: the ends of the partitions. offset: `offset`. time:"
            " the first record from `time` on. shift: `shift` records from the offset of now."
        ),
    ]
    topic: Annotated[str, Meta(description="Missing: each topic with an offset.")] | None = None
    partition: Annotated[Count, Meta(description="Of `topic`; missing: all.")] | None = None
    offset: Count | None = None
    time: Annotated[str, Meta(description="As `since` of records.")] | None = None
    shift: Annotated[int, Meta(ge=-INT64 + 1, le=INT64 - 1)] | None = None
    dry_run: Annotated[bool, Meta(description="Change nothing.")] = False


class ResetOffset(AnswerShape):
    """An offset that was reset; it is never outside of the partition."""

    topic: str
    partition: int
    old_offset: Annotated[int, Meta(description="Null: there was none.")] | None
    new_offset: int


class OffsetsQuery(QueryShape):
    """A choice of committed offsets."""

    topic: str
    partition: Annotated[Count, Meta(description="Missing: all of the topic.")] | None = None
