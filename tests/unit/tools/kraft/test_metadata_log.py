"""The files of `__cluster_metadata-0`: a snapshot that we write, and logs as Kafka leaves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import write_clean_marker
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicId
from minibroker.kafka.protocol.stored.cluster_metadata import RemoveTopicRecord, TopicRecord
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.tools.kraft.log_directory import (
    BATCH_BYTES,
    CONTROL_KEY,
    SnapshotId,
    parse_snapshot_name,
    remove_metadata_directory,
    write_metadata_directory,
)
from minibroker.tools.kraft.log_reading import NoMetadataError, read_metadata_directory
from minibroker.tools.kraft.metadata import TopicValue
from minibroker.tools.kraft.records import TYPES, MetadataRecord, encode_record, records_of
from tests.support.faulty_files import FaultyFiles, PowerCut, keep_everything, keep_nothing
from tests.support.kraft_metadata import EPOCH, full_metadata

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.broker.storage.files import Files
    from minibroker.tools.kraft.log_reading import StoredMetadata
    from minibroker.tools.kraft.records import StoredMessage

DIRECTORY = b"d" * 16
SNAPSHOT = SnapshotId(1000, EPOCH)
NOW_MS = 1_795_225_152_000
LEADER_CHANGE = CONTROL_KEY.pack(0, 2)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a log directory with a snapshot of the full metadata."""
    write(tmp_path)
    return tmp_path


def write(log_directory: Path, snapshot: SnapshotId = SNAPSHOT) -> None:
    records = records_of(full_metadata("4.4", DIRECTORY))
    write_metadata_directory(REAL_FILES, str(log_directory), records, snapshot, NOW_MS)


def read(log_directory: Path) -> StoredMetadata:
    return read_metadata_directory(REAL_FILES, str(log_directory))


def log_batch(offset: int, *messages: StoredMessage, epoch: int = 6) -> bytes:
    """Return a batch of metadata records, a control batch if there are none."""
    values = [encode_record(MetadataRecord(TYPES[type(m)], 0, m)) for m in messages]
    records = [Record(0, NOW_MS, None, value) for value in values]
    is_control = not records
    if is_control:
        records = [Record(0, NOW_MS, LEADER_CHANGE, b"")]
    one_batch = build_batch(records, base_offset=offset, leader_epoch=epoch, is_control=is_control)
    return bytes(one_batch)


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=name.encode() * 16)


def add_segment(log_directory: Path, offset: int, content: bytes) -> Path:
    path = log_directory / names.KRAFT_LOG / names.segment_file(offset, names.LOG)
    path.write_bytes(content)
    return path


def test_a_snapshot_is_read_back(directory: Path) -> None:
    stored = read(directory)
    assert stored.metadata == full_metadata("4.4", DIRECTORY)
    assert (stored.end_offset, stored.torn_bytes, stored.brokers) == (1000, 0, {})
    assert [path.name for path in (directory / names.KRAFT_LOG).iterdir()] == [
        "00000000000000001000-0000000005.checkpoint"
    ]


def test_the_names_of_snapshots_are_kafka_s() -> None:
    assert parse_snapshot_name(SNAPSHOT.file_name) == SNAPSHOT
    for name in (
        "00000000000000001000-0000000005.checkpoint.deleted",
        "00000000000000001000-0000000005-123.checkpoint.part",
        "1000-5.checkpoint",
        "leader-epoch-checkpoint",
    ):
        assert parse_snapshot_name(name) is None


def test_a_large_snapshot_has_several_batches(tmp_path: Path) -> None:
    metadata = full_metadata("4.4", DIRECTORY)
    for number in range(4000):
        name = f"{number:0200d}"
        metadata.topics[name] = TopicValue(TopicId(number.to_bytes(16)), ())
    records = records_of(metadata)
    path = write_metadata_directory(REAL_FILES, str(tmp_path), records, SNAPSHOT, NOW_MS)
    assert REAL_FILES.size_at(path) > 3 * BATCH_BYTES
    assert read(tmp_path).metadata == metadata


def test_a_second_snapshot_replaces_the_whole_directory(directory: Path) -> None:
    add_segment(directory, 1000, log_batch(1000, topic("a")))
    write(directory, SnapshotId(2000, 9))
    assert [path.name for path in directory.iterdir()] == [names.KRAFT_LOG]
    assert read(directory).end_offset == 2000


OLDER, NEWER = SnapshotId(900, 4), SnapshotId(1100, 6)


def write_again(files: Files, log_directory: str, snapshot: SnapshotId) -> None:
    metadata = full_metadata("4.0", DIRECTORY)
    metadata.topics.clear()
    write_metadata_directory(files, log_directory, records_of(metadata), snapshot, NOW_MS)


@pytest.mark.parametrize("keep_names", [keep_nothing, keep_everything, lambda count: count // 2])
@pytest.mark.parametrize("snapshot", [OLDER, SNAPSHOT, NEWER])
@pytest.mark.parametrize("has_log", [False, True])
def test_a_power_cut_at_any_step_leaves_the_old_or_the_new(
    tmp_path: Path, snapshot: SnapshotId, keep_names: Callable[[int], int], *, has_log: bool
) -> None:
    """Every step is tried, until the write has no further one."""
    answers = set()
    for step in range(100):
        root = tmp_path / f"{step}"
        root.mkdir()
        write(root)
        if has_log:
            add_segment(root, 1000, log_batch(1000, topic("a")))
        files = FaultyFiles(str(root))
        files.cut_at = files.call_count + step
        try:
            write_again(files, str(root), snapshot)
        except PowerCut:
            files.power_cut(keep_everything, keep_names)
            is_finished = False
        else:
            is_finished = True
            files.cut_at = -1
            files.power_cut()
        try:
            topics = tuple(read(root).metadata.topics)
        except NoMetadataError:
            topics = None
        answers.add(topics)
        for name in REAL_FILES.list_directories(str(root)):
            parts = names.parse_directory(name)
            assert parts is not None
            assert name == names.KRAFT_LOG or parts[1] == names.DELETE_DIRECTORY
        if is_finished:
            break
    assert is_finished
    assert topics == ()
    old = ("orders", "prices", "a") if has_log else ("orders", "prices")
    assert answers <= ({(), old, None} if has_log else {(), old})


def test_a_write_that_fails_leaves_the_snapshot_of_before(directory: Path) -> None:
    files = FaultyFiles(str(directory))
    files.fail_at = files.call_count + 1
    with pytest.raises(OSError, match="No space left"):
        write_again(files, str(directory), NEWER)
    assert read(directory).end_offset == 1000
    write_again(REAL_FILES, str(directory), OLDER)
    assert [path.name for path in (directory / names.KRAFT_LOG).iterdir()] == [OLDER.file_name]


def test_every_batch_of_a_snapshot_has_its_epoch(directory: Path) -> None:
    content = (directory / names.KRAFT_LOG / SNAPSHOT.file_name).read_bytes()
    headers = [header for _, header in iterate_headers(content)]
    assert {header.leader_epoch for header in headers} == {EPOCH}
    assert [header.is_control for header in headers] == [True, False, True]
    assert [header.base_offset for header in headers[1:]] == [1, headers[1].last_offset + 1]


def test_a_place_that_no_log_has_is_refused(tmp_path: Path) -> None:
    for snapshot in (SnapshotId(0, 5), SnapshotId(5, 0), SnapshotId(2**63, 5)):
        with pytest.raises(ValueError, match="is no place in a log"):
            write(tmp_path, snapshot)


def test_the_directory_is_removed(directory: Path) -> None:
    remove_metadata_directory(REAL_FILES, str(directory))
    assert list(directory.iterdir()) == []
    remove_metadata_directory(REAL_FILES, str(directory))


def test_the_marker_names_the_epoch_of_the_broker(tmp_path: Path) -> None:
    write_clean_marker(REAL_FILES, str(tmp_path), 1002)
    marker = tmp_path / names.CLEAN_SHUTDOWN
    assert marker.read_bytes() == b'{"version":0,"brokerEpoch":1002}'


def test_the_log_behind_the_snapshot_counts(directory: Path) -> None:
    remove = RemoveTopicRecord(topic_id=b"a" * 16)
    first = log_batch(1000) + log_batch(1001, topic("a"), topic("b"))
    add_segment(directory, 1000, first)
    add_segment(directory, 1003, log_batch(1003, remove, epoch=8) + log_batch(1004, epoch=9))
    stored = read(directory)
    assert list(stored.metadata.topics) == ["orders", "prices", "b"]
    assert (stored.end_offset, stored.metadata.epoch) == (1005, 9)


def test_the_newest_snapshot_counts_and_the_log_in_front_of_it_does_not(directory: Path) -> None:
    add_segment(directory, 990, log_batch(990, topic("a")) + log_batch(991, *[topic("b")] * 8))
    add_segment(directory, 999, log_batch(999, topic("c")) + log_batch(1000, topic("d")))
    older = directory / names.KRAFT_LOG / SnapshotId(900, 4).file_name
    older.write_bytes(b"not looked at")
    assert list(read(directory).metadata.topics) == ["orders", "prices", "d"]


@pytest.mark.parametrize("ending", [b"\x00" * 100, log_batch(1001, topic("b"))[:-1], b"torn"])
def test_a_torn_end_is_left_out(directory: Path, ending: bytes) -> None:
    add_segment(directory, 1000, log_batch(1000, topic("a")) + ending)
    stored = read(directory)
    assert list(stored.metadata.topics) == ["orders", "prices", "a"]
    assert (stored.end_offset, stored.torn_bytes) == (1001, len(ending))


def test_a_log_may_end_anywhere(directory: Path) -> None:
    batches = [log_batch(1000 + place, topic(name)) for place, name in enumerate("abc")]
    whole = b"".join(batches)
    for size in range(len(whole) + 1):
        add_segment(directory, 1000, whole[:size])
        count = size // len(batches[0])
        stored = read(directory)
        assert list(stored.metadata.topics) == ["orders", "prices", *"abc"[:count]]
        assert stored.end_offset == 1000 + count


def test_a_batch_with_a_wrong_crc_is_a_torn_end(directory: Path) -> None:
    damaged = bytearray(log_batch(1001, topic("b")))
    damaged[-1] ^= 1
    add_segment(directory, 1000, log_batch(1000, topic("a")) + damaged)
    assert read(directory).torn_bytes == len(damaged)


def test_damage_in_front_of_the_last_segment_is_an_error(directory: Path) -> None:
    add_segment(directory, 1000, log_batch(1000, topic("a")) + b"damage")
    add_segment(directory, 1001, log_batch(1001, topic("b")))
    with pytest.raises(CorruptionError, match=r"1000\.log: 6 bytes from position \d+ on"):
        read(directory)


def test_a_gap_is_an_error(directory: Path) -> None:
    add_segment(directory, 1001, log_batch(1001, topic("a")))
    with pytest.raises(CorruptionError, match="begins at offset 1001, expected 1000"):
        read(directory)


def test_a_snapshot_without_its_end_is_an_error(directory: Path) -> None:
    path = directory / names.KRAFT_LOG / SNAPSHOT.file_name
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole + b"more", whole[:-80], whole[83:]):
        path.write_bytes(content)
        with pytest.raises(CorruptionError, match="expected a whole snapshot"):
            read(directory)


def test_a_record_of_a_newer_kafka_is_named(directory: Path) -> None:
    values = [b"\x01\x7f\x00\x00", b"\x01\x02\x09\x00", b"\x02\x02\x00\x00"]
    for value in values:
        batch = build_batch([Record(0, NOW_MS, None, value)], base_offset=1000, leader_epoch=6)
        add_segment(directory, 1000, bytes(batch))
        with pytest.raises(CorruptionError, match=r"offset 1000 cannot be read.*newer than 4\.4"):
            read(directory)


def test_a_batch_larger_than_any_of_kafka_is_refused(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minibroker.tools.kraft.log_reading.BATCH_BYTES_MAX", 50)
    with pytest.raises(CorruptionError, match="expected at most 50"):
        read(directory)


def test_a_directory_without_metadata_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoMetadataError, match="has no snapshot and no log of KRaft"):
        read(tmp_path)
