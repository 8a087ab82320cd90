"""Common code of OffsetCommit and TxnOffsetCommit after the group has accepted the request.

`accept` looks at every partition of the request, `write` has the group's shard write what is
accepted, and fills the answer. `when_replicated` answers when an fsync is done where there is to be
one, and when followers have the offsets, or refuses after `offsets.commit.timeout.ms`.

Source: Kafka OffsetMetadataManager.commitOffset, commitTransactionalOffset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from minibroker.broker.groups.offsets import NO_EXPIRY, CommittedOffset, OffsetKey
from minibroker.broker.handlers.commits.partitions import is_too_long
from minibroker.broker.handlers.common.visible_answers import when_visible
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import NO_PRODUCER_ID, ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.groups.group import CommitPartitionValidator
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.handlers.commits.partitions import KnownTopic, TopicAnswers
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.offset_commit import OffsetCommitResponse
    from minibroker.kafka.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse

R = TypeVar("R", "OffsetCommitResponse", "TxnOffsetCommitResponse")
_NOT_SET = -1


class Accepted(NamedTuple):
    """The offsets to commit, and a code for every partition of the request in order."""

    commits: list[tuple[OffsetKey, CommittedOffset]]
    codes: list[ErrorCode]
    batch: bytearray | None
    """The records of `commits`, None for no commit."""


def accept(
    shard: GroupShard,
    group_id: str,
    topics: list[KnownTopic],
    *,
    units_max: int,
    now_ms: int,
    expire_ms: int = NO_EXPIRY,
    has_ids: bool,
    has_times: bool,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
) -> Steps[Accepted]:
    """Return the partitions that may be committed, and their batch. It gives the loop back between
    two partitions, so with more than one (`codes`) the caller checks the group again behind it.

    Args:
        units_max: `offset.metadata.max.bytes`.
        expire_ms: explicit expiry, wall clock in ms.
        has_ids: the version names topics by id.
        has_times: partitions have a `commit_timestamp` (-1: none, then `now_ms` counts).
    """
    commits: list[tuple[OffsetKey, CommittedOffset]] = []
    codes: list[ErrorCode] = []
    for topic, partitions in topics:
        topic_id = topic.topic_id if has_ids else ZERO_TOPIC_ID
        for partition in partitions:
            if codes:
                yield
            metadata = partition.committed_metadata
            if is_too_long(metadata, units_max):
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            index = partition.partition_index
            codes.append(ErrorCode.NONE)
            timestamp_ms = partition.commit_timestamp if has_times else _NOT_SET
            committed = CommittedOffset(
                partition.committed_offset,
                partition.committed_leader_epoch,
                metadata or "",
                now_ms if timestamp_ms == _NOT_SET else timestamp_ms,
                expire_ms,
                topic_id,
            )
            commits.append(((group_id, topic.name, index), committed))
    batch = None
    if commits:
        batch = yield from shard.commit_batch(
            commits, producer_id=producer_id, producer_epoch=producer_epoch
        )
    return Accepted(commits, codes, batch)


def when_replicated(waiting: Awaitable[None] | None, response: R) -> R | Awaitable[R]:
    """Return the answer to offsets that are written, or an awaitable of it where they count for
    readers only when followers have them, or an fsync is done: `waiting`, which `write` returned.

    Where that does not come about, or not in time, what was accepted is refused in the answer.
    Offsets that are late count as soon as they are visible.
    """

    def refuse(code: ErrorCode) -> R:
        for topic in response.topics:
            for partition in topic.partitions:
                if not partition.error_code:
                    partition.error_code = int(code)
        return response

    return when_visible(waiting, response, refuse)


def write(
    shard: GroupShard,
    group_id: str,
    accepted: Accepted,
    topics: list[KnownTopic],
    answers: TopicAnswers,
    *,
    validator: CommitPartitionValidator | None,
    producer_id: int = NO_PRODUCER_ID,
) -> Steps[Awaitable[None] | None]:
    """Write the offsets in one step, then answer every partition. Return what the answer has to
    wait for (`GroupShard.visible`).

    `validator`: what the group says of the member now. Raises KafkaError of it, and where the write
    is refused and no partition has an error of its own; nothing is written or answered then.
    """
    if validator is not None:
        topic_ids = {topic.name: topic.topic_id for topic, _ in topics}
        for (_, name, index), _ in accepted.commits:
            validator(name, topic_ids[name], index)
    codes = accepted.codes
    waiting = None
    if accepted.batch is not None:
        try:
            shard.commit_offsets(
                group_id, accepted.commits, accepted.batch, producer_id=producer_id
            )
            # In the step of the write: the disk may refuse it before the next one.
            waiting = shard.visible()
        except KafkaError as error:
            if not any(codes):
                raise
            codes = [code or error.code for code in codes]
    answered = 0
    for topic, partitions in topics:
        for partition in partitions:
            if answered:
                yield
            index = partition.partition_index
            answers.add(topic.name, topic.topic_id, index, codes[answered])
            answered += 1
    return waiting
