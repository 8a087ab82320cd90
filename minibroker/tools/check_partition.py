"""One partition's directory under `check-log`: its segments in order, and the files beside them.

A crash leaves defects that the recovery of the next start mends: a torn end, and indexes or epochs
that reached the disk before their records or not at all. Behind the recovery point of a broker that
did not stop cleanly they are notes. Elsewhere, and with `--strict`, they are damage.

Source: Kafka LogLoader, UnifiedLog, LeaderEpochFileCache; FORMAT.md section 8.
"""

from itertools import pairwise
from typing import NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.partition_metadata import read_metadata
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicId
from minibroker.tools.check_producers import ProducerHistory
from minibroker.tools.check_segment import EpochSpan, SegmentCheck
from minibroker.tools.findings import Findings
from minibroker.tools.kraft.log_directory import CHECKPOINT

_LEFTOVERS = {
    names.DELETED: "on its way out; the next start removes it",
    names.CLEANED: "an unfinished compaction; the next start removes it",
    names.SWAP: "a finished compaction; the next start puts it in its place",
    ".tmp": "an unfinished replacement of its namesake",
}


class EpochStart(NamedTuple):
    """A line of `leader-epoch-checkpoint`."""

    epoch: int
    offset: int


class CheckedPartition(NamedTuple):
    """State of the log directory: its checkpoints, and whether the last stop was clean."""

    recovery_point: int = 0
    log_start_offset: int = 0
    is_clean: bool = False
    is_strict: bool = False

    @property
    def synced_offset(self) -> int:
        """Return the offset below which every record was synced.

        A log whose start has moved has its recovery point there, whatever was synced before.
        """
        return self.recovery_point if self.recovery_point > self.log_start_offset else 0


class PartitionEnd(NamedTuple):
    """Results of a partition's check, for the comparison with the directory's checkpoints."""

    first_offset: int
    end_offset: int
    segment_count: int
    topic_id: TopicId | None


def check_partition(
    directory: str, facts: CheckedPartition, findings: Findings, *, is_deep: bool = False
) -> PartitionEnd:
    """Check everything in a partition's directory. Raises OSError."""
    return _PartitionCheck(directory, facts, findings, is_deep).run()


class _PartitionCheck:
    def __init__(
        self, directory: str, facts: CheckedPartition, findings: Findings, is_deep: bool
    ) -> None:
        self.directory = directory
        self.facts = facts
        self.findings = findings
        self.is_deep = is_deep
        self.file_names = sorted(REAL_FILES.list_files(directory))
        self.producers = ProducerHistory(findings, facts.log_start_offset)
        self.epochs: list[EpochSpan] = []
        self.may_mend = not facts.is_clean and not facts.is_strict

    def run(self) -> PartitionEnd:
        bases = self._bases()
        snapshots = self._snapshots()
        self._note_leftovers(bases)
        end_offset = bases[0] if bases else 0
        for number, base in enumerate(bases):
            following = bases[number + 1] if number + 1 < len(bases) else None
            end_offset, is_torn = self._check_segment(base, end_offset, following, snapshots)
            if is_torn:
                break
        self.findings.excuses = self.may_mend
        for offset, path in sorted(snapshots.items()):
            if offset > end_offset:
                self.findings.broken(
                    "snapshot-offset", path, None, f"the log ends at offset {end_offset}"
                )
            else:
                self.producers.check_snapshot(path, offset)
        self._check_epochs(end_offset)
        self.findings.excuses = False
        topic_id = self._check_metadata()
        return PartitionEnd(bases[0] if bases else 0, end_offset, len(bases), topic_id)

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def _bases(self) -> list[int]:
        bases = []
        for name in self.file_names:
            base = names.base_offset_of(name)
            if base is not None and name == names.segment_file(base, names.LOG):
                bases.append(base)
        return bases

    def _snapshots(self) -> dict[int, str]:
        bases = {}
        for name in self.file_names:
            offset = names.base_offset_of(name)
            if offset is not None and name == names.segment_file(offset, names.SNAPSHOT):
                bases[offset] = self._path(name)
        return bases

    def _note_leftovers(self, bases: list[int]) -> None:
        has_snapshot = any(name.endswith(CHECKPOINT) for name in self.file_names)
        if not bases and not has_snapshot and self.file_names != [names.PARTITION_METADATA]:
            # With the last file alone it has no record yet.
            self.findings.note("no-segment", self.directory, "no segment: an empty log")
        for name in self.file_names:
            base = names.base_offset_of(name)
            for suffix, words in _LEFTOVERS.items():
                if name.endswith(suffix):
                    self.findings.note("leftover", self._path(name), words)
            if name.endswith(names.SEGMENT_SUFFIXES[1:]) and base not in bases:
                self.findings.note(
                    "orphan", self._path(name), "no .log beside it; the next start removes it"
                )

    def _check_segment(
        self, base: int, expected: int, following: int | None, snapshots: dict[int, str]
    ) -> tuple[int, bool]:
        """Return (offset behind the segment, whether readers stop in it)."""
        path = self._path(names.segment_file(base, names.LOG))
        # Of a segment that ends at the recovery point the last entry of the time index may lack.
        reaches_unsynced = following is None or following >= self.facts.synced_offset
        self.findings.excuses = self.may_mend and reaches_unsynced
        end = SegmentCheck(
            path,
            base,
            expected_offset=expected,
            end_offset=following,
            is_deep=self.is_deep,
            findings=self.findings,
            producers=self.producers,
            epochs=self.epochs,
        ).run(snapshots)
        if end.reason is not None:
            self.findings.excuses = self.may_mend and end.next_offset >= self.facts.synced_offset
            rest = "" if following is None else ", and every later segment"
            self.findings.broken(
                "batch",
                path,
                end.sound_position,
                f"{end.reason}; {end.size_bytes - end.sound_position} bytes behind offset "
                f"{end.next_offset} cannot be read{rest}",
            )
        self.findings.excuses = False
        for suffix in names.SEGMENT_SUFFIXES:
            self.findings.close_file(path.removesuffix(names.LOG) + suffix)
        return end.next_offset, end.reason is not None

    def _check_epochs(self, end_offset: int) -> None:
        """Compare the epochs in the file with the epochs in the batches."""
        path = self._path(names.LEADER_EPOCHS)
        try:
            entries = _epoch_entries(REAL_FILES.read_all(path).decode("ascii", "replace"))
        except FileNotFoundError:
            if end_offset:  # it comes with the first record
                self.findings.note("epochs-absent", path, "is not there: no history of leaders")
            return
        except CorruptionError as error:
            self.findings.broken("epochs", path, None, str(error))
            return
        broken = self.findings.broken
        for entry, other in pairwise(entries):
            if other.epoch <= entry.epoch or other.offset < entry.offset:
                broken(
                    "epochs-order",
                    path,
                    None,
                    f"epoch {other.epoch} from offset {other.offset} does not follow epoch "
                    f"{entry.epoch} from offset {entry.offset}",
                )
        if entries and entries[-1].offset > end_offset:
            broken(
                "epochs-end",
                path,
                None,
                f"epoch {entries[-1].epoch} begins at offset {entries[-1].offset}, the log ends at "
                f"{end_offset}",
            )
        log_start = max(self.facts.log_start_offset, entries[0].offset if entries else 0)
        for span in self.epochs:
            for offset in {end for end in (span.first, span.last) if end >= log_start}:
                self._check_epoch_at(path, entries, offset, span.epoch)

    def _check_epoch_at(
        self, path: str, entries: list[EpochStart], offset: int, epoch: int
    ) -> None:
        """Check that the epoch file has the leader of the batch at `offset`."""
        nearest = max((entry for entry in entries if entry.offset <= offset), default=None)
        if nearest is None:
            self.findings.note("epochs-absent", path, f"no epoch for offset {offset}")
        elif nearest.epoch != epoch:
            self.findings.broken(
                "epochs-batch",
                path,
                None,
                f"offset {offset} belongs to epoch {nearest.epoch}, its batch says epoch {epoch}",
            )

    def _check_metadata(self) -> TopicId | None:
        try:
            return read_metadata(REAL_FILES, self.directory)
        except CorruptionError as error:
            path = self._path(names.PARTITION_METADATA)
            self.findings.broken("metadata", path, None, str(error))
            return None


def _epoch_entries(text: str) -> list[EpochStart]:
    """Return the lines of `leader-epoch-checkpoint`, unchanged. Raises CorruptionError."""
    lines = text.splitlines()
    if not lines:
        return []
    try:
        entries = [EpochStart(*map(int, line.split())) for line in lines[2:]]
        version, count = lines[0], int(lines[1])
    except (ValueError, TypeError, IndexError) as error:
        raise CorruptionError(f"not a leader epoch checkpoint ({error})") from error
    if version != "0" or count != len(entries):
        raise CorruptionError(
            f"version {version} and {len(entries)} entries, expected version 0 and {count} entries"
        )
    return entries
