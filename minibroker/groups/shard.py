"""The groups of one partition of `__consumer_offsets`: what was loaded, what was appended since.

Every change of offsets and of what a group must not forget is a record first: `append` writes, and
`replay` does to the state what loading the record will do to it after a restart. `commit_offsets`
does both for OffsetCommit, one write for all that a socket read brought.

Source: Kafka 4.4 GroupCoordinatorShard.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.groups.classic.group import ClassicGroup
from minibroker.groups.classic.stored import group_of
from minibroker.groups.offsets import NO_PRODUCER_ID, CommittedOffset, OffsetStore
from minibroker.groups.records import (
    GROUP_METADATA,
    OFFSET_COMMIT,
    OFFSET_RUN,
    USUAL_VERSION,
    decode_record,
    encode_offset_key,
    encode_offset_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from minibroker.clock import Clock
    from minibroker.groups.group import Group, GroupRecord
    from minibroker.groups.offsets import OffsetKey
    from minibroker.groups.records import GroupEntry
    from minibroker.partitions.journal import Journal, Staged

CHUNK_BYTES: Final = 256 * 1024
"""Tombstones of many offsets are written in batches of about this size; `max.message.bytes` is
1 MiB."""


EXPIRED_AT_ONCE: Final = 32
"""Offsets that one step of `GroupShard.expire` looks at; deleting one takes some 10 us."""


class GroupShard:
    """Made when its partition begins to load, dropped when this broker leads it no more."""

    __slots__ = ("_clock", "_journal", "_offset_version", "groups", "index", "offsets")

    def __init__(self, index: int, journal: Journal, clock: Clock, *, offset_version: int) -> None:
        """`offset_version`: of new values of committed offsets."""
        self.index = index
        self._journal = journal
        self._clock = clock
        self._offset_version = offset_version
        self.groups: dict[str, Group] = {}
        """By group id."""
        self.offsets = OffsetStore()

    @property
    def epoch(self) -> int:
        """The leader epoch of the partition. Raises KafkaError when it is not led any more."""
        return self._journal.leader_epoch_of(self.index)

    # Writing.

    def append(self, records: Sequence[GroupRecord], *, required_acks: int = -1) -> int:
        """Write `records` as one batch; the offset of the first. The caller changes its state.

        Raises KafkaError, nothing is written then: COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS, UNKNOWN_SERVER_ERROR (larger than the topic allows).
        """
        try:
            return self._journal.append(self.index, records, required_acks=required_acks)
        except KafkaError as error:
            if error.code in _TOO_LARGE:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.detail) from error
            raise

    def append_and_replay(self, records: Sequence[GroupRecord], *, required_acks: int = -1) -> None:
        """Write `records` as one batch, then do what they say. Raises as `append`."""
        offset = self.append(records, required_acks=required_acks)
        for key, value in records:
            entry = decode_record(key, value, offset)
            assert entry is not None, "a record that this broker does not know itself"
            self.replay(entry)
            offset += 1

    def delete(self, records: Iterable[GroupRecord]) -> None:
        """Write tombstones, as many batches as it takes, and do what they say. Raises as `append`.

        Nobody waits for replicas: what is lost is found and deleted again.
        """
        chunk: list[GroupRecord] = []
        size_bytes = 0
        for record in records:
            chunk.append(record)
            size_bytes += len(record[0])
            if size_bytes >= CHUNK_BYTES:
                self.append_and_replay(chunk, required_acks=0)
                chunk, size_bytes = [], 0
        if chunk:
            self.append_and_replay(chunk, required_acks=0)

    def commit_offsets(
        self,
        commits: Sequence[tuple[OffsetKey, CommittedOffset]],
        on_failed: Callable[[ErrorCode], None],
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
    ) -> None:
        """Stage committed offsets of one group as one batch; they count once they are written.

        That is before the answer leaves; where the disk refuses, `on_failed` is called instead.
        With a producer they are part of its transaction and count when that is committed.

        Raises KafkaError as `append`; INVALID_COMMIT_OFFSET_SIZE for a batch that is too large.
        """
        version = self._offset_version
        records = [
            (encode_offset_key(*key), encode_offset_value(committed, version))
            for key, committed in commits
        ]
        try:
            self._journal.stage(
                self.index,
                records,
                on_written=partial(self._on_committed, commits, producer_id),
                on_failed=on_failed,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                is_transactional=producer_id != NO_PRODUCER_ID,
                base_sequence=0,
            )
        except KafkaError as error:
            if error.code in _TOO_LARGE:
                raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, error.detail) from error
            raise

    @property
    def takes_templates(self) -> bool:
        """Whether `stage_batch` may have what `offset_batches` builds: uncompressed, the values of
        the usual versions."""
        return self._offset_version == USUAL_VERSION and not self._journal.is_compressed

    def stage_batch(self, batch: bytearray, now_ms: int, staged: Staged) -> None:
        """Have a batch of committed offsets written; `staged` does what they say. Raises as
        `append`, and for a batch that is too large KafkaError with the log's code."""
        self._journal.stage_batch(self.index, batch, now_ms, staged)

    def _on_committed(
        self,
        commits: Sequence[tuple[OffsetKey, CommittedOffset]],
        producer_id: int,
        first_offset: int,
    ) -> None:
        for record_offset, (key, committed) in enumerate(commits, first_offset):
            # Not `_replace`, which takes several times as long.
            value = CommittedOffset(*committed[:-1], record_offset)
            self.replay_offset(key, value, producer_id)

    # Replaying.

    def replay(self, entry: GroupEntry, producer_id: int = NO_PRODUCER_ID) -> None:
        """Do what a record says: at load, and after it was written."""
        if entry.kind == OFFSET_RUN:
            group_id, topic = entry.key
            if group_id not in self.groups:
                self.create_simple_group(group_id)
            self.offsets.replay_run(group_id, topic, entry.value)
        elif entry.kind <= OFFSET_COMMIT:
            self.replay_offset(entry.key, entry.value, producer_id)
        elif entry.kind == GROUP_METADATA:
            group_id = entry.key.group
            if entry.value is None:
                self.groups.pop(group_id, None)
            else:
                self.groups[group_id] = group_of(group_id, entry.value)
        else:
            from minibroker.groups.consumer.replay import replay  # noqa: PLC0415 unless there is one

            replay(self.groups, entry.kind, entry.key, entry.value)

    def replay_offset(
        self, key: OffsetKey, value: CommittedOffset | None, producer_id: int
    ) -> None:
        """One committed offset, or its tombstone; a group that only stores offsets comes to be."""
        if value is not None and key[0] not in self.groups:
            self.create_simple_group(key[0])
        self.offsets.replay(key, value, producer_id)

    def create_simple_group(self, group_id: str) -> Group:
        """An empty group without a protocol, as whoever only commits offsets has."""
        group = self.groups[group_id] = ClassicGroup(group_id, self._clock.now_ms())
        return group

    def complete_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """The marker of a producer stands in the partition: its pending offsets count, or not."""
        self.offsets.complete_transaction(producer_id, is_commit=is_commit)

    # Deleting.

    def tombstones_of(self, group_id: str) -> list[GroupRecord]:
        """Deletes all offsets of a group, pending ones too; the group has its own tombstones."""
        return [(encode_offset_key(*key), None) for key in self.offsets.keys_of(group_id)]

    def forget_topic(self, topic: str, topic_id: bytes) -> int:
        """A topic is gone, and with it what was committed for it; how many offsets. Raises as
        `append`."""
        keys = self.offsets.keys_of_topic(topic, topic_id)
        self.delete((encode_offset_key(*key), None) for key in keys)
        return len(keys)

    def expire(self, retention_ms: int) -> Iterator[int]:
        """Delete expired offsets and the groups that keep nothing, in short steps.

        An offset expires by `offsets.retention.minutes` (`retention_ms`) or at its explicit time.
        Each step decides and deletes, so commits may come between two of them. Yields the number
        of offsets that the step deleted. Raises as `append`.
        """
        for group_id in list(self.groups):
            for topic, partitions in list(self.offsets.of_group(group_id).items()):
                indexes = list(partitions)
                for start in range(0, len(indexes), EXPIRED_AT_ONCE):
                    yield self._expire_some(
                        group_id, topic, indexes[start : start + EXPIRED_AT_ONCE], retention_ms
                    )
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
        self.delete(records)
        return len(records)

    def _delete_if_it_keeps_nothing(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if (
            group is not None
            and group.is_empty
            and not self.offsets.of_group(group_id)
            and not self.offsets.has_pending_in(group_id)
        ):
            self.delete(group.tombstones())


_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
