"""The directory of KRaft's metadata: a snapshot that becomes the whole of `__cluster_metadata-0`.

    <offset, 20 digits>-<epoch, 10 digits>.checkpoint    a snapshot
    <offset, 20 digits>.log                              records behind it (`log_reading`)
    quorum-state, partition.metadata, leader-epoch-checkpoint, indexes: Kafka makes them

A snapshot holds the state in front of its offset. Its own records count from 0. They are a control
batch with a header, batches of metadata records, and a control batch with a footer. Every batch has
the epoch of the snapshot. A node that finds a snapshot and no log begins its log at the snapshot's
offset. The voters stand in `controller.quorum.voters`, so there is no record of them
(kraft.version 0).

A new directory is made under the name of one that is to be deleted: after a crash, Kafka and
minibroker remove it. `meta.properties` of version 1 comes last. Where it is there already and Kafka
has not started yet, a new snapshot comes beside the old one: a node that finds none begins an empty
cluster. A directory that was taken back has a file in this place, so that no node begins one there.

Source: Kafka RecordsSnapshotWriter, FileRawSnapshotWriter, Snapshots, KafkaRaftLog (in 3.9 and 4.0
KafkaMetadataLog), BatchAccumulator, MetaPropertiesEnsemble.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.log_directory import keep_kafka_out
from minibroker.kafka.protocol.stored.metadata_control import (
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from minibroker.kafka.protocol.writer import Writer
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.tools.kraft.records import encode_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minibroker.broker.storage.files import Files
    from minibroker.tools.kraft.records import MetadataRecord, StoredMessage

CHECKPOINT: Final = ".checkpoint"

CONTROL_KEY: Final = Struct(">hh")
"""Key of a control record: its version and its type."""
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
"""Types of control records."""
BATCH_BYTES: Final = 256 << 10
"""A batch is closed when its values have so many bytes; Kafka takes up to 8 MiB."""

_PARTIAL: Final = ".part"
"""Behind the name of a snapshot that is being written; Kafka removes such a file at its start."""
_OFFSET_DIGITS: Final = 20
_EPOCH_DIGITS: Final = 10
_OFFSET_MAX: Final = 2**63 - 1
_EPOCH_MAX: Final = 2**31 - 1


class SnapshotId(NamedTuple):
    """The place of a snapshot in the log."""

    offset: int
    """Offset of the first record that is not in the snapshot."""
    epoch: int
    """Epoch of the last record that is in it."""

    @property
    def rank(self) -> tuple[int, int]:
        """Return what is greater for a later snapshot: the epoch, then the offset."""
        return self.epoch, self.offset

    @property
    def file_name(self) -> str:
        """Return the name of its file."""
        return f"{self.offset:0{_OFFSET_DIGITS}d}-{self.epoch:0{_EPOCH_DIGITS}d}{CHECKPOINT}"


def parse_snapshot_name(name: str) -> SnapshotId | None:
    """Return the id in the name of a whole snapshot, None for a name of any other form."""
    stem = name.removesuffix(CHECKPOINT)
    offset, dash, epoch = stem.partition("-")
    digits = offset + epoch
    if stem == name or not dash or not (digits.isascii() and digits.isdigit()):
        return None
    if len(offset) != _OFFSET_DIGITS or len(epoch) != _EPOCH_DIGITS:
        return None
    return SnapshotId(int(offset), int(epoch))


def write_metadata_directory(
    files: Files,
    log_directory: str,
    records: Iterable[MetadataRecord],
    snapshot: SnapshotId,
    now_ms: int,
) -> str:
    """Make `__cluster_metadata-0` in a log directory, with one snapshot; return its path.

    An older one goes, with all its files. When this returns, the new one is durable. After a crash
    the old snapshot or the new one counts. If the old directory has a log, there may be neither:
    then the mark of the owner, in `meta.properties`, must not be Kafka's yet.

    Args:
        files: the files of the system.
        log_directory: the one that `metadata.log.dir` names, by default the first of `log.dirs`.
        records: those of the snapshot, in the order of `records_of`.
        snapshot: its offset is 1 or more, its epoch 1 or more: Kafka begins its log there.
        now_ms: time of the records, ms since the epoch.

    Raises:
        ValueError: the snapshot's id is out of range.
        LevelError: of `records`.
        OSError: a file could not be written.
    """
    if not (1 <= snapshot.offset <= _OFFSET_MAX and 1 <= snapshot.epoch < _EPOCH_MAX):
        raise ValueError(f"{snapshot} is no place in a log: offset and epoch are 1 or more")
    path = f"{log_directory}/{names.KRAFT_LOG}"
    batches = snapshot_batches(records, snapshot, now_ms)
    has_directory = files.exists(path) and not is_guarded(files, log_directory)
    if has_directory and not any(name.endswith(names.LOG) for name in files.list_files(path)):
        _replace_snapshot(files, path, snapshot.file_name, batches)
    else:
        new_path = f"{log_directory}/{_name_of_deleted()}"
        files.make_directory(new_path)
        _write_file(files, f"{new_path}/{snapshot.file_name}", batches)
        files.sync_directory(new_path)
        remove_metadata_directory(files, log_directory)
        files.replace(new_path, path)
        files.sync_directory(log_directory)
    return f"{path}/{snapshot.file_name}"


def _replace_snapshot(
    files: Files, path: str, file_name: str, batches: Iterable[bytearray]
) -> None:
    """Write a snapshot into a directory where no log is, and remove what was there.

    Between the two the greater snapshot counts. Raises OSError, and what `batches` raises.
    """
    temporary = f"{path}/{file_name}{_PARTIAL}"
    _write_file(files, temporary, batches)
    files.replace(temporary, f"{path}/{file_name}")
    files.sync_directory(path)
    for name in files.list_files(path):
        if name != file_name:
            files.remove(f"{path}/{name}")
    files.sync_directory(path)


def remove_metadata_directory(files: Files, log_directory: str) -> None:
    """Remove `__cluster_metadata-0`, if there is one; durable when this returns. Raises OSError.

    After a crash it is there as a whole, or not at all.
    """
    path = f"{log_directory}/{names.KRAFT_LOG}"
    if is_guarded(files, log_directory):
        files.remove(path)
        files.sync_directory(log_directory)
    elif files.exists(path):
        old = f"{log_directory}/{_name_of_deleted()}"
        files.replace(path, old)
        files.sync_directory(log_directory)
        remove_directory(files, old)


def is_guarded(files: Files, log_directory: str) -> bool:
    """Return whether a file keeps Kafka from the log directory. Raises OSError."""
    return names.KRAFT_LOG in files.list_files(log_directory)


def guard(files: Files, log_directory: str) -> None:
    """Put a file in the place of `__cluster_metadata-0`, so that no node of KRaft starts here
    (`storage.log_directory.keep_kafka_out`). Durable when this returns. Raises OSError.
    """
    remove_metadata_directory(files, log_directory)
    keep_kafka_out(files, log_directory)
    files.sync_path(f"{log_directory}/{names.KRAFT_LOG}")
    files.sync_directory(log_directory)


def remove_directory(files: Files, path: str) -> None:
    """Remove a directory that holds files only. Raises OSError."""
    for name in files.list_files(path):
        files.remove(f"{path}/{name}")
    files.remove_directory(path)


def _name_of_deleted() -> str:
    """Return a fresh name of a directory that whoever starts next removes."""
    return names.marked_directory("__cluster_metadata", 0, names.DELETE_DIRECTORY)


def _write_file(files: Files, path: str, parts: Iterable[bytes | bytearray]) -> None:
    """Write a new file, part by part, and sync it. Raises OSError."""
    handle = files.open(path, create=True)
    try:
        position = 0
        for part in parts:
            position += files.write_all(handle, [part], position)
        files.sync(handle)
    finally:
        files.close(handle)


def snapshot_batches(
    records: Iterable[MetadataRecord], snapshot: SnapshotId, now_ms: int
) -> Iterator[bytearray]:
    """Yield the batches of a snapshot's file, in order. Raises what `records` raises."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=now_ms)
    yield _control_batch(SNAPSHOT_HEADER, header, 0, snapshot.epoch, now_ms)
    offset = 1
    for values in _groups(records):
        batch = [Record(0, now_ms, None, value) for value in values]
        yield build_batch(batch, base_offset=offset, leader_epoch=snapshot.epoch)
        offset += len(values)
    footer = SnapshotFooterRecord()
    yield _control_batch(SNAPSHOT_FOOTER, footer, offset, snapshot.epoch, now_ms)


def _groups(records: Iterable[MetadataRecord]) -> Iterator[list[bytes]]:
    """Yield the values of the records in groups, each as large as a batch may be."""
    values: list[bytes] = []
    size_bytes = 0
    for record in records:
        value = encode_record(record)
        values.append(value)
        size_bytes += len(value)
        if size_bytes >= BATCH_BYTES:
            yield values
            values, size_bytes = [], 0
    if values:
        yield values


def _control_batch(
    type_id: int, message: StoredMessage, offset: int, epoch: int, now_ms: int
) -> bytearray:
    writer = Writer()
    message.write(writer, 0)
    record = Record(0, now_ms, CONTROL_KEY.pack(0, type_id), writer.to_bytes())
    return build_batch([record], base_offset=offset, is_control=True, leader_epoch=epoch)
