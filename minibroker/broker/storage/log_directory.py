"""One of `log.dirs`: its lock, whose it is, its checkpoints, its clean-shutdown marker.

Beside the partitions' directories it holds

    .lock                               held by the process that serves the directory
    meta.properties                     broker and cluster it belongs to
    recovery-point-offset-checkpoint    below these offsets everything is synced
    log-start-offset-checkpoint         where a log starts behind its first segment
    replication-offset-checkpoint       high watermarks
    cleaner-offset-checkpoint           how far compaction came
    .kafka_cleanshutdown                only while nobody serves it: the last stop was clean
    __cluster_metadata-0                a file after take-back, so that KRaft does not start there

`meta.properties` is written at the first start and compared at every other:

    #
    #Sat Nov 21 01:12:06 UTC 2026
    broker.id=0
    version=0
    cluster.id=vPeOCWypqUOSepEvx0cbog

Java's properties format; the order of the keys has no meaning. Version 1 is that of a node of
KRaft: it says `node.id` instead of `broker.id`. A directory of another broker or of
another cluster must not be served: its partitions are somebody else's.

A checkpoint is a small text file that is replaced as a whole, one line per partition:

    0                    version
    2                    number of lines that follow
    payments 0 1500      topic, partition, offset
    payments 1 0

A missing or empty file means "none"; a damaged one is a CorruptionError, and the log manager starts
from nothing known, as Kafka does: more is recovered then, nothing is lost.

Source: Kafka LogManager, CleanShutdownFileHandler, MetaProperties, MetaPropertiesEnsemble,
PropertiesUtils, OffsetCheckpointFile, CheckpointFile; FORMAT.md sections 6 and 7.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from threading import Lock
from typing import ClassVar, Final, NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files
from minibroker.kafka.errors import CorruptionError, StorageError, SyncError
from minibroker.kafka.ids import NO_BROKER_EPOCH, TopicPartition
from minibroker.kafka.java_formats.properties import parse_properties

logger = logging.getLogger(__name__)

_CHECKPOINT_VERSION = "0"


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return the file's bytes, ASCII, every line ended by a newline."""
    lines = [_CHECKPOINT_VERSION, str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    lines.append("")
    return "\n".join(lines).encode("ascii")


def decode_offsets(
    content: bytes, path: str, names_by_text: dict[str, TopicPartition] | None = None
) -> dict[TopicPartition, int]:
    """Return the offsets in a checkpoint's bytes.

    `names_by_text`: text → name, which checkpoints of one directory share; new ones are added.
    Raises CorruptionError with `path` where the content is not a checkpoint.
    """
    known_names = {} if names_by_text is None else names_by_text
    lines = content.decode("ascii", "replace").split("\n")
    if lines == [""]:
        return {}
    if lines[0].strip() != _CHECKPOINT_VERSION:
        raise CorruptionError(f"{path}: version {lines[0]!r}, expected {_CHECKPOINT_VERSION}")
    try:
        expected = int(lines[1])
        offsets: dict[TopicPartition, int] = {}
        for line in lines[2:]:
            if line:
                text, offset = line.rsplit(None, 1)
                name = known_names.get(text)
                if name is None:
                    topic, partition = text.split()
                    name = known_names[text] = TopicPartition(topic, int(partition))
                offsets[name] = int(offset)
    except (ValueError, IndexError) as error:
        raise CorruptionError(f"{path}: not an offset checkpoint ({error})") from error
    if len(offsets) != expected:
        raise CorruptionError(f"{path}: {len(offsets)} entries, {expected} announced")
    return offsets


def read_offsets(
    files: Files, path: str, names_by_text: dict[str, TopicPartition] | None = None
) -> dict[TopicPartition, int]:
    """Return the checkpoint at `path`, empty where there is none. `names_by_text`: see
    `decode_offsets`. Raises CorruptionError, OSError.
    """
    try:
        content = files.read_all(path)
    except FileNotFoundError:
        return {}
    return decode_offsets(content, path, names_by_text)


_DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MS_A_DAY = 86_400_000


class MetaProperties(NamedTuple):
    """The contents of the file; any key may be absent and is None then."""

    broker_id: int | None
    cluster_id: str | None
    directory_id: str | None = None
    version: int = 0
    """0: of a broker with ZooKeeper; 1: of a node of KRaft."""


_ID_KEYS: Final = ("broker.id", "node.id")
"""Key of the broker's id, by version of the file."""


def _civil_date(days: int) -> tuple[int, int, int]:
    """Days since 1970-01-01 → (year, month, day), proleptic Gregorian.

    By arithmetic, because importing `datetime` costs the start of the broker more than this line is
    worth. The era is 400 years, counted from a 1st of March so that leap days come last.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def java_date(now_ms: int) -> str:
    """Milliseconds since the epoch → the form of java.util.Date, in UTC."""
    days, rest_ms = divmod(now_ms, _MS_A_DAY)
    year, month, day = _civil_date(days)
    seconds = rest_ms // 1000
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{_DAYS[days % 7]} {_MONTHS[month - 1]} {day:02d} {clock} UTC {year}"


def encode_properties(properties: MetaProperties, now_ms: int) -> bytes:
    """Return the file's bytes (ISO 8859-1, as Java writes properties)."""
    lines = ["#", f"#{java_date(now_ms)}"]
    if properties.broker_id is not None:
        lines.append(f"{_ID_KEYS[properties.version]}={properties.broker_id}")
    if properties.directory_id is not None:
        lines.append(f"directory.id={properties.directory_id}")
    lines.append(f"version={properties.version}")
    if properties.cluster_id is not None:
        lines.append(f"cluster.id={properties.cluster_id}")
    lines.append("")
    return "\n".join(lines).encode("latin-1")


def decode_properties(content: bytes, path: str) -> MetaProperties:
    """Return the contents of a file. Raises CorruptionError where they are not Java properties, or
    version or broker id are not numbers Kafka would accept.
    """
    try:
        values = parse_properties(content.decode("latin-1"))
    except ValueError as error:
        raise CorruptionError(f"{path}: {error}") from error
    version_text = values.get("version", "0")
    if version_text not in ("0", "1"):
        raise CorruptionError(f"{path}: version {version_text!r}, expected 0 or 1")
    version = int(version_text)
    key = _ID_KEYS[version]
    broker = values.get(key)
    try:
        broker_id = int(broker) if broker is not None else None
    except ValueError as error:
        raise CorruptionError(f"{path}: {key} {broker!r} is not a number") from error
    return MetaProperties(broker_id, values.get("cluster.id"), values.get("directory.id"), version)


def read_properties(files: Files, directory: str) -> MetaProperties | None:
    """Return the directory's file, None where there is none. Raises CorruptionError, OSError."""
    path = f"{directory}/{names.META_PROPERTIES}"
    try:
        content = files.read_all(path)
    except FileNotFoundError:
        return None
    return decode_properties(content, path)


def stored_broker_id(files: Files, directories: Iterable[str]) -> int | None:
    """Return the broker id in the first of these directories that has one, None where none has.
    A directory that cannot be read is left out: the start says what is wrong with it.
    """
    for directory in directories:
        with suppress(CorruptionError, OSError):
            properties = read_properties(files, directory)
            if properties is not None and properties.broker_id is not None:
                return properties.broker_id
    return None


def write_properties(files: Files, directory: str, properties: MetaProperties, now_ms: int) -> None:
    """Replace the directory's file atomically and durably. Raises OSError."""
    path = f"{directory}/{names.META_PROPERTIES}"
    files.write_atomically(path, encode_properties(properties, now_ms))


def check_properties(
    properties: MetaProperties, *, broker_id: int, cluster_id: str | None, directory: str
) -> None:
    """Raises StorageError, one sentence, where the directory is another broker's or cluster's."""
    if (
        cluster_id is not None
        and properties.cluster_id is not None
        and properties.cluster_id != cluster_id
    ):
        raise StorageError(
            f"the data directory {directory} belongs to cluster {properties.cluster_id}, but this "
            f"broker is in cluster {cluster_id}: use the metadata it was written with, or another "
            "--data-dir"
        )
    if properties.broker_id is not None and properties.broker_id != broker_id:
        raise StorageError(
            f"the data directory {directory} belongs to broker.id {properties.broker_id}, but "
            f"broker.id is configured as {broker_id}: set broker.id={properties.broker_id}, or use "
            "another --data-dir"
        )


def write_clean_marker(files: Files, directory: str, broker_epoch: int = NO_BROKER_EPOCH) -> None:
    """Write that the last stop was clean: no log has to be recovered. Raises OSError.

    `broker_epoch`: that of the broker's registration in KRaft, which Kafka 4.0 and newer compare.
    """
    content = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
    files.write_atomically(f"{directory}/{names.CLEAN_SHUTDOWN}", content.encode("ascii"))


def has_served_kraft(files: Files, directory: str) -> bool:
    """Return whether Apache Kafka with KRaft has served the first log directory of a node."""
    return files.exists(f"{directory}/{names.QUORUM_STATE}")


def is_kafkas(files: Files, directory: str, properties: MetaProperties | None) -> bool:
    """Return whether Apache Kafka with KRaft owns the first log directory of a node, whose
    `meta.properties` are these. If Kafka has served it, its metadata may have more than ours,
    whatever the version says.
    """
    is_given = properties is not None and properties.version == 1
    return is_given or has_served_kraft(files, directory)


def way_back(directory: str) -> str:
    """Return what to do with a directory that is Kafka's, for a message."""
    return (
        f"start Kafka on it, or stop Kafka and run `minibroker take-back {directory}`, which "
        "brings Kafka's changes along"
    )


_GUARD: Final = (
    b"minibroker serves this log directory. Apache Kafka does not start on it while this file is "
    b"here: minibroker hand-over gives it the directory.\n"
)


def keep_kafka_out(files: Files, directory: str) -> None:
    """Put a file in the place of `__cluster_metadata-0`, if nothing is there, so that no node of
    KRaft starts on the log directory. Raises OSError.

    A node that finds nothing there begins an empty cluster, takes each log for a stray one, and
    deletes it. The file is not synced: a start writes it again.
    """
    path = f"{directory}/{names.KRAFT_LOG}"
    if not files.exists(path):
        fd = files.open(path, create=True)
        try:
            files.write_all(fd, [_GUARD], 0)
        finally:
            files.close(fd)


class LogDirectory:
    """A locked log directory. Opened and closed by the log manager."""

    locked_paths: ClassVar[set[str]] = set()
    """Real paths locked by this process: a POSIX lock does not keep a process from itself."""

    __slots__ = (
        "_files",
        "_lock",
        "_written",
        "checkpoint_names",
        "checkpoints_lock",
        "is_offline",
        "offsets",
        "path",
        "properties",
        "stopped_ns",
        "was_clean",
    )

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self.properties: MetaProperties | None = None
        self.was_clean = False
        self.stopped_ns = 0
        """When the clean stop wrote its marker, in the file system's time (ns); 0: never."""
        self.checkpoint_names: set[TopicPartition] = set()
        """Partitions that the checkpoints may name, also such as are gone: see `checkpoints`."""
        self.offsets: dict[str, Mapping[TopicPartition, int]] = {}
        """Checkpoint → what stands in the file. Nobody changes these mappings, they are replaced.
        Under `checkpoints_lock`."""
        self.is_offline = False
        """It failed: nothing is read or written in it until the broker is started again."""
        self._lock: int | None = None
        self._written: dict[str, bytes] = {}
        self.checkpoints_lock = Lock()
        """Held while the checkpoints are written, with what is known of them here."""

    def open(self) -> None:
        """Make the directory if need be, lock it, read whose it is.

        Raises StorageError, one sentence, where it cannot be used.
        """
        try:
            self._files.make_directories(self.path)
        except FileExistsError as error:
            raise self._failed("is not a directory") from error
        except PermissionError as error:
            raise self._failed("cannot be created: permission denied") from error
        except OSError as error:
            raise self._failed(f"cannot be created: {error.strerror}") from error
        if not self._files.is_usable_directory(self.path):
            raise self._failed("cannot be read and written: permission denied") from (
                PermissionError(errno.EACCES, "permission denied", self.path)
            )
        self._take_lock()
        try:
            self.properties = read_properties(self._files, self.path)
        except (OSError, CorruptionError) as error:
            self.release()
            raise self._failed(f"cannot be read: {error}") from error

    def take_marker(self) -> None:
        """Read whether the last stop was clean, and remove the marker that says so. Raises
        StorageError.
        """
        marker = f"{self.path}/{names.CLEAN_SHUTDOWN}"
        try:
            self.was_clean = self._files.exists(marker)
            if self.was_clean:
                _, self.stopped_ns = self._files.last_change(marker)
                self._files.remove(marker)
        except OSError as error:
            self.release()
            raise self._failed(f"cannot be read: {error}") from error

    def _failed(self, action: str) -> StorageError:
        return StorageError(f"the data directory {self.path} {action}", log_directory=self.path)

    def _take_lock(self) -> None:
        real = self._files.real_path(self.path)
        try:
            lock = (
                None if real in self.locked_paths else self._files.lock(f"{self.path}/{names.LOCK}")
            )
        except OSError as error:
            raise self._failed(f"cannot be locked: {error.strerror}") from error
        if lock is None:
            raise self._failed(
                "is in use by another process: stop that broker, or use another --data-dir"
            )
        self._lock = lock
        self.locked_paths.add(real)

    def claim(self, broker_id: int, cluster_id: str, now_ms: int) -> None:
        """Compare `meta.properties` with who we are; a new directory becomes ours. Raises
        StorageError.
        """
        if self.properties is not None:
            check_properties(
                self.properties, broker_id=broker_id, cluster_id=cluster_id, directory=self.path
            )
            if self.properties.broker_id is not None and self.properties.cluster_id is not None:
                return
        properties = self.properties
        mine = MetaProperties(
            broker_id, cluster_id, properties.directory_id if properties else None
        )
        try:
            write_properties(self._files, self.path, mine, now_ms)
            self._files.create(f"{self.path}/{names.CLEANER_OFFSETS}")
        except OSError as error:
            raise self._failed(f"cannot be written: {error.strerror}") from error
        self.properties = mine

    def read_checkpoint(
        self, name: str, names_by_text: dict[str, TopicPartition] | None = None
    ) -> dict[TopicPartition, int]:
        """Return a checkpoint's offsets; none where the file is absent, or damaged (more is
        recovered then). `names_by_text`: see `decode_offsets`.
        """
        path = f"{self.path}/{name}"
        try:
            offset_by_log = read_offsets(self._files, path, names_by_text)
        except CorruptionError as error:
            logger.warning("%s is ignored: %s", path, error)
            return {}
        except OSError as error:
            raise StorageError(
                f"{path} cannot be read: {error}", log_directory=self.path
            ) from error
        self.offsets[name] = offset_by_log
        return offset_by_log

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace a checkpoint, if it says something new. Any thread. Raises StorageError."""
        content = encode_offsets(offsets)
        if self._written.get(name) == content:
            return
        try:
            self._files.write_atomically(f"{self.path}/{name}", content)
        except OSError as error:
            raise StorageError(
                f"{self.path}/{name} cannot be written: {error}", log_directory=self.path
            ) from error
        self._written[name] = content
        self.offsets[name] = offsets

    def mark_clean(self) -> None:
        """Say that everything is synced and checkpointed; the last file written. Raises
        StorageError.
        """
        try:
            write_clean_marker(self._files, self.path)
        except OSError as error:
            raise StorageError(
                f"{self.path}/{names.CLEAN_SHUTDOWN} cannot be written: {error}",
                log_directory=self.path,
            ) from error

    def sync(self) -> None:
        """Make new and removed names in the directory durable: that there is no marker any more.
        Any thread. Raises SyncError: after a power cut the next start might trust the old one.
        """
        try:
            self._files.sync_directory(self.path)
        except OSError as error:
            raise SyncError(f"cannot sync {self.path}: {error}", log_directory=self.path) from error

    def fail(self) -> None:
        """Release the directory, and do nothing in it any more. The caller says what failed."""
        self.is_offline = True
        self.release()

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            try:
                self._files.close(self._lock)
            except OSError as error:  # of a disk that failed: the lock is gone all the same
                logger.warning("the lock of %s was closed with an error: %s", self.path, error)
            self._lock = None
            self.locked_paths.discard(self._files.real_path(self.path))
