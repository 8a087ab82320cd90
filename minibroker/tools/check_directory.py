"""Log directories under `check-log`: their owner, their checkpoints, their partitions.

Source: Kafka LogManager, MetaPropertiesEnsemble, OffsetCheckpointFile; FORMAT.md sections 1, 6, 7.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import MetaProperties, read_offsets, read_properties
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicId, TopicPartition
from minibroker.tools.check_partition import CheckedPartition, PartitionEnd, check_partition
from minibroker.tools.findings import Findings
from minibroker.tools.kraft.log_reading import MetadataLog, NoMetadataError

_MARKS: Final = {
    names.DELETE_DIRECTORY: "a deleted partition, on its way out",
    names.STRAY_DIRECTORY: "a partition without an owner",
    names.FUTURE_DIRECTORY: "a partition on its way into this directory",
}
_CHECKPOINTS: Final = {
    names.RECOVERY_POINTS: "recovery point",
    names.LOG_START_OFFSETS: "log start offset",
    names.HIGH_WATERMARKS: "high watermark",
    names.CLEANER_OFFSETS: "cleaner offset",
}


def is_log_directory(path: str) -> bool:
    """Return whether a directory has a file of a log directory. Raises OSError."""
    files = REAL_FILES.list_files(path)
    if names.META_PROPERTIES in files or any(name in files for name in _CHECKPOINTS):
        return True
    return any(map(names.parse_directory, REAL_FILES.list_directories(path)))


def is_partition_directory(path: str) -> bool:
    """Return whether a directory has segments itself. Raises OSError."""
    return any(
        name.endswith(names.LOG) and names.base_offset_of(name) is not None
        for name in REAL_FILES.list_files(path)
    )


class _State(NamedTuple):
    """Facts that a log directory's files state about its partitions."""

    is_clean: bool
    recovery_points: Mapping[TopicPartition, int]
    log_starts: Mapping[TopicPartition, int]


def _offsets_in(path: str) -> Mapping[TopicPartition, int]:
    try:
        return read_offsets(REAL_FILES, path)
    except CorruptionError:
        return {}  # said when the checkpoints are compared


class DirectoriesCheck:
    """The log directories of one broker."""

    def __init__(self, findings: Findings, *, is_deep: bool, is_strict: bool) -> None:
        self._findings = findings
        self._is_deep = is_deep
        self._is_strict = is_strict
        self._homes: dict[TopicPartition, str] = {}
        self._topic_ids: dict[str, tuple[TopicId, str]] = {}
        self._owner: tuple[MetaProperties, str] | None = None
        self.partition_count = 0
        self.segment_count = 0

    def check_partition(self, path: str) -> None:
        """Check one partition's directory, with the facts of its log directory."""
        parent, _, name = path.rpartition("/")
        name_and_mark = names.parse_directory(name)
        facts = CheckedPartition(is_strict=self._is_strict)
        if name_and_mark is not None:
            facts = self._facts(name_and_mark[0], self._read_state(parent or "."))
        self._check_partition(path, facts)

    def check(self, directory: str) -> None:
        """Check one log directory. Raises OSError."""
        self._check_owner(directory)
        state = self._read_state(directory)
        ends: dict[TopicPartition, PartitionEnd] = {}
        for name in sorted(REAL_FILES.list_directories(directory)):
            path = f"{directory}/{name}"
            name_and_mark = names.parse_directory(name)
            if name_and_mark is None:
                self._findings.note("directory", path, "no partition's name; nobody looks at it")
                continue
            partition, mark = name_and_mark
            if mark:
                self._findings.note("directory", path, _MARKS[mark])
                if mark == names.DELETE_DIRECTORY:
                    continue
            else:
                self._note_home(partition, path)
            end = self._check_partition(path, self._facts(partition, state))
            if not mark:
                ends[partition] = end
                self._check_topic_id(partition, end, path)
        self._check_checkpoints(directory, ends, is_clean=state.is_clean)

    def _read_state(self, directory: str) -> "_State":
        return _State(
            REAL_FILES.exists(f"{directory}/{names.CLEAN_SHUTDOWN}"),
            _offsets_in(f"{directory}/{names.RECOVERY_POINTS}"),
            _offsets_in(f"{directory}/{names.LOG_START_OFFSETS}"),
        )

    def _facts(self, partition: TopicPartition, state: "_State") -> CheckedPartition:
        return CheckedPartition(
            state.recovery_points.get(partition, 0),
            state.log_starts.get(partition, 0),
            state.is_clean,
            self._is_strict,
        )

    def _check_partition(self, path: str, facts: CheckedPartition) -> PartitionEnd:
        end = check_partition(path, facts, self._findings, is_deep=self._is_deep)
        if path.rpartition("/")[2] == names.KRAFT_LOG:
            self._check_kraft(path)
        self.partition_count += 1
        self.segment_count += end.segment_count
        return end

    def _check_kraft(self, path: str) -> None:
        """Check that the metadata of KRaft can be read: the newest snapshot and the log behind."""
        try:
            for _ in MetadataLog(REAL_FILES, path).records():
                pass
        except (CorruptionError, NoMetadataError) as error:
            self._findings.broken("kraft-metadata", path, None, str(error))

    def _check_owner(self, directory: str) -> None:
        path = f"{directory}/{names.META_PROPERTIES}"
        try:
            properties = read_properties(REAL_FILES, directory)
        except CorruptionError as error:
            self._findings.broken("owner", path, None, str(error))
            return
        if properties is None:
            self._findings.note("owner", path, "is not there: nobody has claimed the directory")
            return
        if self._owner is None:
            self._owner = properties, path
        owner, file = self._owner
        if (properties.broker_id, properties.cluster_id) != (owner.broker_id, owner.cluster_id):
            self._findings.broken(
                "owner",
                path,
                None,
                f"broker {properties.broker_id} of cluster {properties.cluster_id}, "
                f"but {file} says broker {owner.broker_id} of cluster {owner.cluster_id}",
            )

    def _note_home(self, partition: TopicPartition, path: str) -> None:
        other = self._homes.setdefault(partition, path)
        if other != path:
            self._findings.broken("duplicate", path, None, f"the partition is in {other}, too")

    def _check_topic_id(self, partition: TopicPartition, end: PartitionEnd, path: str) -> None:
        if end.topic_id is None:
            return
        topic_id, file = self._topic_ids.setdefault(partition.topic, (end.topic_id, path))
        if topic_id != end.topic_id:
            self._findings.broken(
                "topic-id",
                path,
                None,
                f"topic id {end.topic_id.hex()}, but {file} has {topic_id.hex()}",
            )

    def _check_checkpoints(
        self, directory: str, ends: Mapping[TopicPartition, PartitionEnd], *, is_clean: bool
    ) -> None:
        for name, meaning in _CHECKPOINTS.items():
            path = f"{directory}/{name}"
            try:
                offsets = read_offsets(REAL_FILES, path)
            except CorruptionError as error:
                self._findings.broken("checkpoint", path, None, str(error))
                continue
            self._findings.excuses = not is_clean and not self._is_strict
            for partition, offset in offsets.items():
                end = ends.get(partition)
                if end is None:
                    self._findings.note(
                        "checkpoint", path, f"{partition} is not in this directory (any more)"
                    )
                elif not 0 <= offset <= end.end_offset:
                    self._findings.broken(
                        "checkpoint-offset",
                        path,
                        None,
                        f"{meaning} {offset} of {partition}, the log ends at {end.end_offset}",
                    )
            self._findings.excuses = False


def check_directories(paths: Sequence[str], check: DirectoriesCheck) -> None:
    """Check each of `paths`, log directories or directories of partitions. Raises OSError."""
    for path in paths:
        if is_partition_directory(path):
            check.check_partition(path)
        else:
            check.check(path)
