"""Records read as a member of a group: assigned partitions, committed offsets, rebalances.

    join ─► partitions ─► committed offsets, or a place ─► records ─► written out ─► commit
     ▲                                                                   │
     └────────────── others came or left ◄───────────────────────────────┘

Offsets are committed behind records that are written out and flushed, so a record is never lost;
one may be read again after a failure.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.client.consume import PartitionReader
from minibroker.client.member import MemberSession
from minibroker.verbs import places, reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.client.client import Client
    from minibroker.kafka.ids import TopicPartition
    from minibroker.verbs.places import OffsetPlace
    from minibroker.verbs.record_output import RecordOutput

COMMIT_S: Final = 5.0
"""Time between two commits (auto.commit.interval.ms)."""


class GroupReading(NamedTuple):
    """The reading of a member: a group, a topic, a start and an end."""

    group: str
    topic: str
    start: OffsetPlace
    """The first record where the group has no offset."""
    follow: bool
    """It does not end at the end of its partitions."""
    is_committed: bool
    """It reads no records of open or aborted transactions."""


def read_as_member(plan: GroupReading, client: Client, output: RecordOutput) -> None:
    """Write the records that the group gives to this member, and commit their offsets.

    Without `follow` it ends when its partitions are read to the end that they had when it got them.
    Raises OffsetGoneError, CorruptionError, KafkaError, OSError, ProtocolError, ConfigError,
    BrokenPipeError.
    """
    client.partition_count(plan.topic)  # a missing topic is an error, and no empty assignment
    session = _Session(plan, client, output)
    try:
        while not session.read_assigned():
            pass
    finally:
        session.close()


class _Session:
    """A member, and what it reads. Used by one thread."""

    def __init__(self, plan: GroupReading, client: Client, output: RecordOutput) -> None:
        self._plan = plan
        self._client = client
        self._output = output
        self._is_committed = plan.is_committed
        self._member = MemberSession(client.settings, plan.group, [plan.topic])
        self._written: dict[TopicPartition, int] = {}
        """Offsets behind records that are written out, and not committed."""
        self._committed_s = time.monotonic()

    def read_assigned(self) -> bool:
        """Read the partitions of one assignment; return whether everything is read.

        False: the group is about to give out its partitions again.
        """
        assigned = self._member.join()
        starts, ends = self._begin(assigned)
        if self._plan.follow:
            ends = {}
        reader = PartitionReader(
            self._client, starts, is_committed=self._is_committed, rack=self._client.rack
        )
        try:
            return self._read(reader, ends)
        finally:
            reader.close()

    def close(self) -> None:
        """Commit what is written out, and leave the group."""
        try:
            self._commit()
        finally:
            self._member.leave()

    def _begin(
        self, assigned: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return the first offset and the end of each partition.

        An offset that the group has committed counts, unless its records are gone.
        """
        bounds = places.bounds_of(self._client, assigned, is_committed=self._is_committed)
        starts = places.offsets_at(
            self._client, self._plan.start, bounds, is_committed=self._is_committed
        )
        committed = self._member.committed(assigned)
        fresh = {part: bound for part, bound in bounds.items() if part not in committed}
        self._output.note_all(places.outside_notes(self._plan.start, fresh))
        for part, offset in committed.items():
            if part in bounds:
                starts[part] = offset
                if offset < bounds[part].beginning:
                    self._output.note_lost(reading.Lost(part, offset, bounds[part].beginning))
                    starts[part] = bounds[part].beginning
        # A position counts as read also before the first record, as it does to Java's consumers.
        self._written.update(starts)
        return starts, {part: bound.end for part, bound in bounds.items()}

    def _read(self, reader: PartitionReader, ends: Mapping[TopicPartition, int]) -> bool:
        output = self._output
        for part in [part for part, end in ends.items() if reader.positions[part] >= end]:
            reader.remove([part])
        while self._plan.follow or reader.positions:
            if self._member.must_rejoin():
                self._commit()
                return False
            for fetched in reading.polled(self._client, reader, 1.0, output.note_lost):
                behind = output.write(fetched, fetched.start, ends.get(fetched.place))
                self._written[fetched.place] = min(behind, ends.get(fetched.place, behind))
                if output.is_full:
                    return True
                if fetched.next_offset >= ends.get(fetched.place, fetched.next_offset + 1):
                    reader.remove([fetched.place])
            self._commit_sometimes()
        return True

    def _commit_sometimes(self) -> None:
        if self._plan.follow:
            self._output.flush()
        if time.monotonic() - self._committed_s >= COMMIT_S:
            self._commit()

    def _commit(self) -> None:
        """Commit the offsets behind records that are written out. Raises BrokenPipeError."""
        self._committed_s = time.monotonic()
        if not self._written:
            return
        self._output.flush()
        if not self._member.commit(self._written):
            self._output.note(
                f"group {self._member.group} gave the partitions to others before the commit: they "
                "read the last records again"
            )
        self._written.clear()
