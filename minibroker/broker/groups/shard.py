"""The groups and offsets of one partition of `__consumer_offsets`.

Every change is a record first. `write` writes the record, changes the state as a load of the record
does after a restart, and goes on when the record is visible.
`commit_offsets` does so for OffsetCommit.

Source: Kafka 4.4 GroupCoordinatorShard.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.groups.kinds import replay_of
from minibroker.broker.groups.offsets import OffsetStore
from minibroker.broker.groups.records import (
    OFFSET_COMMIT,
    OFFSET_RUN,
    decode_record,
    encode_offset_key,
    offset_records,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import NO_PRODUCER_ID, ZERO_TOPIC_ID
from minibroker.kafka.records.control import parse_marker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from minibroker.broker.groups.group import Group, GroupRecord
    from minibroker.broker.groups.offsets import CommittedOffset, OffsetKey
    from minibroker.broker.groups.records import GroupEntry
    from minibroker.broker.partitions.coordinator_runtime import CoordinatorRuntime
    from minibroker.broker.slices import Steps
    from minibroker.clock import Clock
    from minibroker.kafka.records.batch import BatchHeader
    from minibroker.kafka.records.record import Record

logger = logging.getLogger(__name__)

T = TypeVar("T")

CHUNK_BYTES: int = 256 * 1024
"""Tombstones are written in batches of at most about this size; `max.message.bytes` is 1 MiB."""
DELETED_AT_ONCE: Final = 32
"""Offsets that one step looks at and deletes, in one batch; one takes some 10 us."""
LOOKED_AT_ONCE: int = 256
"""Groups, or pending offsets, that one step looks at where it deletes nothing."""


class ShardFollower(Protocol):
    """A listener that is told when the groups of a whole partition come and go."""

    def on_shard_loaded(self, shard: GroupShard) -> None:
        """Begin the sessions of all members: the groups of the partition are loaded."""

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Answer waiting members with NOT_COORDINATOR: this broker serves the groups no more."""


def _do_nothing() -> None:
    """Do nothing: nobody waits for the record."""


class GroupShard:
    """The state of one partition, from the begin of its load until this broker leads it no more."""

    __slots__ = (
        "_clock",
        "_follower",
        "_journal",
        "_make_simple_group",
        "_offset_version",
        "_runtime",
        "deleted_groups",
        "groups",
        "index",
        "offsets",
    )

    def __init__(
        self,
        index: int,
        runtime: CoordinatorRuntime[GroupShard],
        clock: Clock,
        *,
        make_simple_group: Callable[[str, int], Group],
        offset_version: int,
        follower: ShardFollower | None = None,
    ) -> None:
        """Make the shard of partition `index`, without a group.

        Args:
            make_simple_group: makes an empty group without a protocol, of its id and the time (wall
                clock, ms).
            offset_version: of new values of committed offsets.
            follower: hears when the shard comes and goes.
        """
        self.index = index
        self._runtime = runtime
        self._journal = runtime.journal
        self._follower = follower
        self._clock = clock
        self._make_simple_group = make_simple_group
        self._offset_version = offset_version
        self.groups: dict[str, Group] = {}
        """By group id."""
        self.deleted_groups: set[str] = set()
        """Ids of groups that are being deleted: their requests are refused meanwhile."""
        self.offsets = OffsetStore()

    # Writing.

    def write(
        self,
        records: Sequence[GroupRecord],
        *,
        then: Callable[[], None] = _do_nothing,
        failed: Callable[[ErrorCode], None] | None = None,
        apply: Callable[[], None] | None = None,
        required_acks: int = -1,
    ) -> None:
        """Write `records` as one batch, do what they say, and `then` when they are visible.

        `apply` changes the state instead, where the caller knows more than the records say.
        `failed` gets the code for clients where they never become visible, or not in
        `offsets.commit.timeout.ms`; without it `then` waits as long as it takes.

        Raises KafkaError, nothing has happened then: COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS, UNKNOWN_SERVER_ERROR (larger than the topic allows).
        """

        def replay(offset: int) -> None:
            if apply is not None:
                apply()
                return
            for record_offset, (key, value) in enumerate(records, offset):
                entry = decode_record(key, value, record_offset)
                assert entry is not None, "a record that this broker does not know itself"
                self.replay(entry)

        self._runtime.write(
            self.index,
            records,
            replay=replay,
            then=then,
            failed=failed,
            required_acks=required_acks,
        )

    def when_visible(
        self, then: Callable[[], None], failed: Callable[[ErrorCode], None] | None = None
    ) -> None:
        """Call `then` when all that was written so far is visible: mostly at once.

        Or `failed`, as `write`.
        """
        self._runtime.when_visible(self.index, then, failed)

    def visible(self) -> Awaitable[None] | None:
        """Return None if all that was written is visible, else an awaitable that ends then.

        To be called in the step of the write: later the partition may be lost, and with it what was
        written. Raises KafkaError when awaited, as `CoordinatorRuntime.visible`.
        """
        return self._runtime.visible(self.index)

    def _delete(self, records: Iterable[GroupRecord]) -> None:
        """Write a few tombstones and apply them; one batch unless their keys are very long.

        Nobody waits for replicas: a tombstone that is lost is written again after the next load.
        Raises KafkaError with the journal's code.
        """
        chunk: list[GroupRecord] = []
        size_bytes = 0
        for record in records:
            chunk.append(record)
            size_bytes += len(record[0])
            if size_bytes >= CHUNK_BYTES:
                self.write(chunk, required_acks=0)
                chunk, size_bytes = [], 0
        if chunk:
            self.write(chunk, required_acks=0)

    def commit_batch(
        self,
        commits: Iterable[tuple[OffsetKey, CommittedOffset]],
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
    ) -> Steps[bytearray]:
        """Return the batch of committed offsets for `commit_offsets`."""
        return self._journal.batch_of(
            offset_records(commits, self._offset_version),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0,
        )

    def commit_offsets(
        self,
        group_id: str,
        commits: Sequence[tuple[OffsetKey, CommittedOffset]],
        batch: bytearray,
        *,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """Write committed offsets of a group (at least one), in one short step.

        They count from now on for decisions, and for readers once they are visible. With a producer
        they are part of its transaction and count when that is committed.

        Raises KafkaError with the journal's code; INVALID_COMMIT_OFFSET_SIZE for a batch that is
        too large.
        """
        is_hidden = producer_id == NO_PRODUCER_ID and self.lags
        new_values: list[tuple[OffsetKey, CommittedOffset]] = []

        def replay(first_offset: int) -> None:
            if group_id not in self.groups:
                self.create_simple_group(group_id)
            if is_hidden:
                for key, _ in commits:
                    self.offsets.hide(key)
            values = self.offsets.put_all(group_id, commits, first_offset, producer_id)
            if is_hidden:
                new_values.extend(values)

        def show() -> None:
            for key, value in new_values:
                self.offsets.show(key, value)

        self._runtime.write_batch(
            self.index,
            batch,
            replay=replay,
            then=show if is_hidden else _do_nothing,
            too_large=ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        )

    @property
    def lags(self) -> bool:
        """Return whether a record may be written and not visible yet (`Partition.lags`)."""
        return self._journal.lags(self.index)

    # Coming and going (`CoordinatorShard`).

    def replay_batch(self, header: BatchHeader, records: Sequence[GroupEntry | Record]) -> None:
        """Replay a batch of the journal; a marker commits or drops a producer's pending offsets."""
        if header.is_control:
            for record in records[:1]:
                marker = parse_marker(record)  # type: ignore[arg-type]
                if marker is not None:
                    self.complete_transaction(header.producer_id, is_commit=marker.is_commit)
            return
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
        for entry in records:
            self.replay(entry, producer_id)  # type: ignore[arg-type]

    def on_loaded(self) -> None:
        """Make the groups that have offsets but no record of their own, then tell the follower."""
        for group_id in list(self.offsets.group_ids()):
            if group_id not in self.groups:  # its tombstone stands alone: offsets outlive it
                self.create_simple_group(group_id)
        if self.groups:
            logger.info(
                "%s-%d is loaded: %d groups, %d committed offsets",
                OFFSETS_TOPIC,
                self.index,
                len(self.groups),
                self.offsets.committed_count,
            )
        if self._follower is not None:
            self._follower.on_shard_loaded(self)

    def on_unloaded(self) -> None:
        """Tell the follower."""
        if self._follower is not None:
            self._follower.on_shard_unloaded(self)

    # Replaying.

    def replay(self, entry: GroupEntry, producer_id: int = NO_PRODUCER_ID) -> None:
        """Change the state as a record says: at load, and after it was written."""
        if entry.kind == OFFSET_RUN:
            group_id, topic = entry.key
            if group_id not in self.groups:
                self.create_simple_group(group_id)
            self.offsets.replay_run(group_id, topic, entry.value)
        elif entry.kind <= OFFSET_COMMIT:
            self.replay_offset(entry.key, entry.value, producer_id)
        elif (replay := replay_of(entry.kind)) is not None:
            replay(self.groups, entry.kind, entry.key, entry.value)

    def replay_offset(
        self, key: OffsetKey, value: CommittedOffset | None, producer_id: int
    ) -> None:
        """Put a committed offset, or remove it (None); make its group where there is none."""
        if value is not None and key[0] not in self.groups:
            self.create_simple_group(key[0])
        self.offsets.replay(key, value, producer_id)

    def create_simple_group(self, group_id: str) -> Group:
        """Add an empty group without a protocol, for a client that only commits offsets."""
        group = self.groups[group_id] = self._make_simple_group(group_id, self._clock.now_ms())
        return group

    def complete_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Commit or drop the pending offsets of a producer, whose marker is in the partition."""
        self.offsets.complete_transaction(producer_id, is_commit=is_commit)

    # Deleting, in short steps. Others may change the groups between two of them.

    def delete_group(self, group: Group) -> Iterator[int]:
        """Delete a group and all its offsets, those of open transactions too.

        Meanwhile the group is in `deleted_groups`. Yields the number of offsets that each step
        deleted. Raises KafkaError with the journal's code; then the group stays with its remaining
        offsets.
        """
        group_id = group.group_id
        self.deleted_groups.add(group_id)
        try:
            while keys := self.offsets.first_of(group_id, DELETED_AT_ONCE):
                self._delete([(encode_offset_key(*key), None) for key in keys])
                yield len(keys)
                self.check_served()
            self._delete(group.tombstones())
        finally:
            self.deleted_groups.discard(group_id)

    def forget_topic(self, topic: str, topic_id: bytes) -> Iterator[int]:
        """Delete the offsets of a deleted topic; those of another topic id stay.

        So do offsets that are committed from now on: the name may belong to a new topic then.
        Yields the number of offsets that each step deleted. Raises KafkaError with the journal's
        code.
        """
        return self._forget_topic(topic, topic_id, self._journal.end_offset_of(self.index))

    def _forget_topic(self, topic: str, topic_id: bytes, end_offset: int) -> Iterator[int]:
        def is_gone(group_id: str, partition: int) -> bool:
            offsets = self.offsets.all_of(group_id, topic, partition)
            return any(
                committed.topic_id in (ZERO_TOPIC_ID, topic_id) for committed in offsets
            ) and all(committed.record_offset < end_offset for committed in offsets)

        for group_ids in _parts(list(self.offsets.group_ids()), LOOKED_AT_ONCE):
            for group_id in group_ids:
                for indexes in _parts(self.offsets.partitions_of(group_id, topic), DELETED_AT_ONCE):
                    self.check_served()
                    keys = [
                        encode_offset_key(group_id, topic, partition)
                        for partition in indexes
                        if is_gone(group_id, partition)
                    ]
                    self._delete([(key, None) for key in keys])
                    yield len(keys)
            yield 0

    def check_served(self) -> None:
        """Raises KafkaError(NOT_COORDINATOR) where the partition was unloaded meanwhile."""
        if self._runtime.find(self.index) is not self:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def expire(self, retention_ms: int) -> Iterator[int]:
        """Delete expired offsets and the groups that keep nothing, in short steps.

        An offset expires by `offsets.retention.minutes` (`retention_ms`) or at its explicit time.
        Each step decides and deletes, so commits may come between two of them. Yields the number
        of offsets that the step deleted. Raises KafkaError with the journal's code.
        """
        for group_id in list(self.groups):
            for topic, partitions in list(self.offsets.of_group(group_id).items()):
                for indexes in _parts(list(partitions), DELETED_AT_ONCE):
                    yield self._expire_some(group_id, topic, indexes, retention_ms)
            self._delete_if_it_keeps_nothing(group_id)
            yield 0

    def _expire_some(
        self, group_id: str, topic: str, partitions: Sequence[int], retention_ms: int
    ) -> int:
        """Delete the expired ones of these offsets of a group; return how many."""
        group = self.groups.get(group_id)
        if group is None or group.is_subscribed_to(topic):
            return 0
        now_ms = self._clock.now_ms()
        records: list[GroupRecord] = []
        for partition in partitions:
            committed = self.offsets.get(group_id, topic, partition)
            if committed is None:
                continue
            base_ms = group.expiration_base_ms(committed.commit_timestamp_ms)
            if base_ms is None:
                return 0
            if committed.is_expired(now_ms, base_ms, retention_ms) and not (
                self.offsets.has_pending(group_id, topic, partition)
            ):
                records.append((encode_offset_key(group_id, topic, partition), None))
        self._delete(records)
        return len(records)

    def _delete_if_it_keeps_nothing(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if (
            group is not None
            and group.is_empty
            and not self.offsets.of_group(group_id)
            and not self.offsets.has_pending_in(group_id)
        ):
            self._delete(group.tombstones())


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cut `items` into parts of `size`; the last may be smaller."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
