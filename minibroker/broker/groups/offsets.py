"""Committed offsets, as replaying a partition of `__consumer_offsets` leaves them.

Two stores in one: what is committed, and what transactions have written but not ended yet. A
pending offset is seen by nobody until the marker of its producer comes; then it becomes the
committed one, unless something that stands later in the log has been committed meanwhile.

Pure: every change is the replay of a record or a marker, at load and after an append alike.

Source: Kafka 4.4 OffsetMetadataManager; 3.9 GroupMetadata.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from minibroker.kafka.ids import NO_PRODUCER_ID, ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OffsetKey: TypeAlias = tuple[str, str, int]
"""Group id, topic, partition."""

NO_EXPIRY: Final = -1
_NONE: Final[dict[str, dict[int, CommittedOffset]]] = {}


class CommittedOffset(NamedTuple):
    """An offset that a group committed for a partition."""

    offset: int
    leader_epoch: int
    """-1: not told."""
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY
    """Explicit, as OffsetCommit v2-4 can ask for; -1: `offsets.retention.minutes` count."""
    topic_id: bytes = ZERO_TOPIC_ID
    """Zero: committed by name, and not known."""
    record_offset: int = -1
    """Offset of its record in `__consumer_offsets`."""

    def is_expired(self, now_ms: int, base_ms: int, retention_ms: int) -> bool:
        """Return whether it may expire; retention counts from `base_ms` on."""
        if self.expire_timestamp_ms != NO_EXPIRY:
            return now_ms >= self.expire_timestamp_ms
        return now_ms - base_ms >= retention_ms


class OffsetStore:
    """Offsets of the groups of one partition of `__consumer_offsets`."""

    __slots__ = ("_committed", "_open", "_pending", "_visible_values", "committed_count")

    def __init__(self) -> None:
        self._committed: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._visible_values: dict[OffsetKey, CommittedOffset | None] = {}
        """Values for readers while a newer offset is written and not visible yet; None: no offset.
        """
        self._pending: dict[int, dict[OffsetKey, CommittedOffset]] = {}
        """By producer id."""
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}
        """Group → (topic, partition) → producers with a pending offset there."""
        self.committed_count = 0

    # Looking.

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return the committed offset, None if there is none."""
        return self._committed.get(group_id, _NONE).get(topic, {}).get(partition)

    def visible(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return the committed offset that a client may see, None if there is none."""
        if self._visible_values:
            key = group_id, topic, partition
            if key in self._visible_values:
                return self._visible_values[key]
        return self.get(group_id, topic, partition)

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """Return topic → partition → committed offset, in the order of the first commits.

        The caller must not change it.
        """
        return self._committed.get(group_id, _NONE)

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction has written an offset for the partition."""
        return (topic, partition) in self._open.get(group_id, ())

    def has_pending_in(self, group_id: str) -> bool:
        """Return whether any open transaction has written an offset of the group."""
        return group_id in self._open

    def group_ids(self) -> Iterator[str]:
        """Yield every group that has an offset, committed or pending, once."""
        yield from self._committed
        for group_id in self._open:
            if group_id not in self._committed:
                yield group_id

    def first_of(self, group_id: str, count_max: int) -> list[OffsetKey]:
        """Return the first offsets of a group, committed or pending, each once; none: it has none.

        A marker may commit what was pending, so who deletes all of them asks again each time.
        """
        of_group = self._committed.get(group_id, _NONE).items()
        committed = ((topic, partition) for topic, indexes in of_group for partition in indexes)
        places = islice(chain(committed, self._open.get(group_id, ())), count_max)
        return [(group_id, topic, partition) for topic, partition in dict.fromkeys(places)]

    def all_of(self, group_id: str, topic: str, partition: int) -> list[CommittedOffset]:
        """Return the committed offset and the pending ones of a group for one partition."""
        key = group_id, topic, partition
        committed = self.get(*key)
        offsets = [] if committed is None else [committed]
        producers = self._open.get(group_id, {}).get((topic, partition), ())
        return offsets + [self._pending[producer_id][key] for producer_id in producers]

    def partitions_of(self, group_id: str, topic: str) -> list[int]:
        """Return the partitions of a topic that have an offset, committed or pending."""
        committed = self._committed.get(group_id, _NONE).get(topic, {})
        pending = [
            partition
            for name, partition in self._open.get(group_id, ())
            if name == topic and partition not in committed
        ]
        return [*committed, *pending]

    # Written, and not visible yet.

    def hide(self, key: OffsetKey) -> None:
        """Have readers see what they see now, until `show`: a newer offset is about to be put."""
        if key not in self._visible_values:
            self._visible_values[key] = self.get(*key)

    def show(self, key: OffsetKey, value: CommittedOffset) -> None:
        """Have readers see an offset whose record is visible now."""
        if key not in self._visible_values:
            return  # it was deleted meanwhile
        newest = self.get(*key)
        if newest is None or newest.record_offset <= value.record_offset:
            del self._visible_values[key]
        else:
            self._visible_values[key] = value

    # Replaying.

    def replay(
        self, key: OffsetKey, value: CommittedOffset | None, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        """Apply a record that was read, or has just been written; `value` None deletes, pending
        ones too.

        `producer_id` is its batch's if the batch is transactional.
        """
        group_id, topic, partition = key
        if value is None:
            self._remove(group_id, topic, partition)
        elif producer_id == NO_PRODUCER_ID:
            self._put(group_id, topic, partition, value)
        else:
            self._pending.setdefault(producer_id, {})[key] = value
            open_here = self._open.setdefault(group_id, {})
            open_here.setdefault((topic, partition), set()).add(producer_id)

    def put_all(
        self,
        group_id: str,
        commits: Iterable[tuple[OffsetKey, CommittedOffset]],
        first_offset: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> list[tuple[OffsetKey, CommittedOffset]]:
        """Apply the records of one group's batch, which begins at `first_offset`, as `replay` does;
        return the offsets with the offsets of their records.
        """
        # Not `_replace`, which takes several times as long.
        values = [
            (key, CommittedOffset(*committed[:-1], record_offset))
            for record_offset, (key, committed) in enumerate(commits, first_offset)
        ]
        if producer_id != NO_PRODUCER_ID:
            self._pending.setdefault(producer_id, {}).update(values)
            open_here = self._open.setdefault(group_id, {})
            for key, _ in values:
                open_here.setdefault(key[1:], set()).add(producer_id)
            return values
        topics = self._committed.setdefault(group_id, {})
        for (_, topic, partition), value in values:
            partitions = topics.setdefault(topic, {})
            self.committed_count += partition not in partitions
            partitions[partition] = value
        return values

    def replay_run(self, group_id: str, topic: str, run: dict[int, CommittedOffset]) -> None:
        """Partition → offset of what was committed for one topic, no transaction's; kept."""
        topics = self._committed.setdefault(group_id, {})
        partitions = topics.get(topic)
        if partitions is None:
            topics[topic] = run
            self.committed_count += len(run)
        else:
            self.committed_count -= len(partitions)
            partitions.update(run)
            self.committed_count += len(partitions)

    def _put(self, group_id: str, topic: str, partition: int, value: CommittedOffset) -> None:
        topics = self._committed.get(group_id)
        if topics is None:
            topics = self._committed[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        if partition not in partitions:
            self.committed_count += 1
        partitions[partition] = value

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        self._visible_values.pop((group_id, topic, partition), None)
        topics = self._committed.get(group_id)
        if topics is not None and partition in topics.get(topic, ()):
            del topics[topic][partition]
            self.committed_count -= 1
            if not topics[topic]:
                del topics[topic]
            if not topics:
                del self._committed[group_id]
        open_here = self._open.get(group_id)
        if open_here is not None:
            for producer_id in open_here.pop((topic, partition), ()):
                self._pending[producer_id].pop((group_id, topic, partition), None)
            if not open_here:
                del self._open[group_id]

    def complete_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Count the producer's pending offsets, or drop them: its marker was read or written.

        Compaction may leave an offset that was committed later than this transaction's before its
        marker, so the place in the log decides which of the two is the newer one.
        """
        for key, value in self._pending.pop(producer_id, {}).items():
            group_id, topic, partition = key
            open_here = self._open[group_id]
            producers = open_here[topic, partition]
            producers.discard(producer_id)
            if not producers:
                del open_here[topic, partition]
                if not open_here:
                    del self._open[group_id]
            if is_commit:
                newest = self.get(group_id, topic, partition)
                if newest is None or value.record_offset > newest.record_offset:
                    self._put(group_id, topic, partition, value)
                elif key in self._visible_values:
                    self.show(key, value)
