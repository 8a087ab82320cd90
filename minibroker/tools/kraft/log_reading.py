"""The records of `__cluster_metadata-0`: the newest snapshot, and the log behind it.

Kafka leaves both when it stops. A snapshot was made under another name and synced before it got its
own, so it is whole. The last segment of the log may end in the middle of a batch after a kill or a
power cut. Kafka cuts such an end at its next start, and it is left out here. Damage in front of it
is an error.

Only committed records count. Of one voter each record in the log is committed. Of several voters
the longest log of the newest epoch has all of them: that voter would win the next election.

Source: Kafka KafkaRaftLog (recoverSnapshots, truncateToLatestSnapshot), LogSegment.recover,
RecordsBatchReader, RecordsSnapshotReader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from minibroker.broker.storage import names
from minibroker.kafka.errors import CorruptionError, MinibrokerError, ProtocolError
from minibroker.kafka.protocol.stored.cluster_metadata import RECORDS
from minibroker.tools.kraft.log_directory import (
    CONTROL_KEY,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    SnapshotId,
    parse_snapshot_name,
)
from minibroker.tools.kraft.records import TYPES, MetadataRecord
from minibroker.tools.kraft.replay import Replay
from minibroker.tools.log_file import LogFile
from minibroker.tools.log_records import v2_records
from minibroker.tools.metadata_records import read_framed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minibroker.broker.storage.files import Files
    from minibroker.kafka.records.record import Record
    from minibroker.tools.kraft.metadata import Metadata
    from minibroker.tools.kraft.records import RegisteredBroker, StoredMessage
    from minibroker.tools.log_file import FileBatch

BATCH_BYTES_MAX: Final = 16 << 20
"""Kafka's controllers write batches of at most 8 MiB."""
UNFOLDED_BYTES_MAX: Final = 64 << 20
"""Most uncompressed bytes of a batch. Kafka does not compress metadata."""


class NoMetadataError(MinibrokerError):
    """A log directory without the metadata of KRaft."""


class StoredMetadata(NamedTuple):
    """All that a log directory tells of the cluster."""

    metadata: Metadata
    brokers: Mapping[int, RegisteredBroker]
    """Registered brokers, by id."""
    end_offset: int
    """Offset of the record that would come next."""
    torn_bytes: int
    """Bytes at the end of the log that are no whole batch."""


def read_metadata_directory(files: Files, log_directory: str) -> StoredMetadata:
    """Return the metadata in a log directory that nobody serves.

    Raises:
        NoMetadataError: there is neither a snapshot nor a log.
        CorruptionError: bytes that are no metadata, or a gap between snapshot and log.
        LevelError: `metadata.version` is newer than the records known here.
        OSError: a file cannot be read.
    """
    replay = Replay()
    reader = MetadataLog(files, f"{log_directory}/{names.KRAFT_LOG}")
    for record in reader.records():
        replay.apply(record.message)
    metadata = replay.finish(reader.epoch)
    return StoredMetadata(metadata, replay.brokers, reader.end_offset, reader.torn_bytes)


class MetadataLog:
    """A reader of the directory. The fields are those of the records that were read so far."""

    def __init__(self, files: Files, directory: str) -> None:
        """List the directory. Raises NoMetadataError, OSError."""
        self._directory = directory
        self.snapshot: SnapshotId | None = None
        """The newest whole one."""
        self.epoch = 0
        """Epoch of the last batch, control batches too."""
        self.end_offset = 0
        """Offset behind the last batch."""
        self.torn_bytes = 0
        """Bytes at the end of the log that are no whole batch."""
        try:
            file_names = files.list_files(directory)
        except FileNotFoundError:
            file_names = []
        snapshots = [id_ for name in file_names if (id_ := parse_snapshot_name(name)) is not None]
        if snapshots:
            self.snapshot = max(snapshots, key=lambda id_: id_.rank)
        self._segments = sorted(
            (offset, name)
            for name in file_names
            if name.endswith(names.LOG) and (offset := names.base_offset_of(name)) is not None
        )
        if self.snapshot is None and not self._segments:
            raise NoMetadataError(
                f"{directory} has no snapshot and no log of KRaft: name the first of Kafka's "
                "log.dirs, or its metadata.log.dir"
            )

    def records(self) -> Iterator[MetadataRecord]:
        """Yield the records of the snapshot, then those of the log behind it. Call it once.

        Raises CorruptionError, OSError.
        """
        if self.snapshot is not None:
            yield from self._snapshot_records(self.snapshot)
            self.end_offset, self.epoch = self.snapshot
        for place, (_base_offset, name) in enumerate(self._segments):
            end = self._segments[place + 1][0] if place + 1 < len(self._segments) else None
            # Everything in this segment is in the snapshot, too.
            if end is None or end > self.end_offset:
                yield from self._segment_records(f"{self._directory}/{name}", is_last=end is None)

    def _snapshot_records(self, snapshot: SnapshotId) -> Iterator[MetadataRecord]:
        path = f"{self._directory}/{snapshot.file_name}"
        is_begun = is_ended = False
        position = 0
        with LogFile(path) as file:
            for batch in file.batches():
                if is_ended or not _is_whole(batch):
                    break
                control = _control_type(file, batch) if batch.header.is_control else None
                if is_begun == (control == SNAPSHOT_HEADER):
                    break
                is_begun = True
                is_ended = control == SNAPSHOT_FOOTER
                position = batch.end
                if control is None:
                    yield from _metadata_records(file, batch)
            if not is_ended or position != file.size_bytes:
                raise CorruptionError(
                    f"{path}: {position} of {file.size_bytes} bytes are sound, expected a whole "
                    "snapshot from a header to a footer: take the directory of another controller, "
                    "or a copy of before"
                )

    def _segment_records(self, path: str, *, is_last: bool) -> Iterator[MetadataRecord]:
        """Yield the records of a segment that are not in the snapshot."""
        with LogFile(path) as file:
            for batch in self._whole_batches(file, is_last=is_last):
                header = batch.header
                if header.last_offset < self.end_offset:
                    continue
                if header.base_offset != self.end_offset:
                    raise CorruptionError(
                        f"{path}: the batch at position {batch.position} begins at offset "
                        f"{header.base_offset}, expected {self.end_offset}: the snapshot or the "
                        "segment in front of it is missing"
                    )
                self.end_offset, self.epoch = header.last_offset + 1, header.leader_epoch
                if not header.is_control:
                    yield from _metadata_records(file, batch)

    def _whole_batches(self, file: LogFile, *, is_last: bool) -> Iterator[FileBatch]:
        """Yield the batches in front of the torn end, which only the last segment may have."""
        position = 0
        reason: CorruptionError | None = None
        try:
            for batch in file.batches():
                if not _is_whole(batch):
                    break
                yield batch
                position = batch.end
        except CorruptionError as error:
            reason = error
        rest = file.size_bytes - position
        if rest and not is_last:
            raise CorruptionError(
                f"{file.path}: {rest} bytes from position {position} on are damaged, but the log "
                "goes on in another segment: take the directory of another controller, or a copy "
                "of before"
            ) from reason
        self.torn_bytes = rest


def _is_whole(batch: FileBatch) -> bool:
    """Return whether the format and the CRC are right. A large batch is read piece by piece."""
    return batch.header.magic == 2 and batch.crc_is_valid()


def _records(file: LogFile, batch: FileBatch) -> list[Record]:
    """Return the records of a whole batch. Raises CorruptionError."""
    header = batch.header
    if header.size_bytes > BATCH_BYTES_MAX:
        raise CorruptionError(
            f"{file.path}: the batch at position {batch.position} has {header.size_bytes} bytes, "
            f"expected at most {BATCH_BYTES_MAX}: this is no metadata of Kafka"
        )
    return v2_records(batch, UNFOLDED_BYTES_MAX)


def _control_type(file: LogFile, batch: FileBatch) -> int:
    """Return the type of the first control record of a batch. Raises CorruptionError."""
    for record in _records(file, batch):
        if record.key is not None and len(record.key) >= CONTROL_KEY.size:
            return int(CONTROL_KEY.unpack_from(record.key)[1])
    raise CorruptionError(
        f"{file.path}: the control batch at position {batch.position} holds no control record"
    )


def _metadata_records(file: LogFile, batch: FileBatch) -> Iterator[MetadataRecord]:
    """Yield the records of a data batch, decoded. Raises CorruptionError."""
    for record in _records(file, batch):
        try:
            message, version = read_framed(record.value, RECORDS)
        except ProtocolError as error:
            raise CorruptionError(
                f"{file.path}: the record at offset {record.offset} cannot be read: {error}. A "
                "Kafka newer than 4.4 may have written it: lower metadata.version with its "
                "kafka-features.sh, or take a newer minibroker"
            ) from error
        yield MetadataRecord(TYPES[type(message)], version, cast("StoredMessage", message))
