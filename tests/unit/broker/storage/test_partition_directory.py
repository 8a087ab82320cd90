"""The directory of a partition: whose it is, and how it leaves service and comes back."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage import names
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.partition_metadata import (
    MetadataWriter,
    SharedMetadata,
    read_metadata,
)
from minibroker.kafka.errors import CorruptionError, KafkaError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition, topic_id_from_text
from tests.support.faulty_files import FaultyFiles
from tests.support.runners import workers_of

if TYPE_CHECKING:
    from collections.abc import Callable


ID = TopicId(b"1" * 16)
OTHER_ID = TopicId(b"2" * 16)


@pytest.fixture
def path(tmp_path: Path) -> str:
    partition_path = tmp_path / "t-0"
    partition_path.mkdir()
    return str(partition_path)


def directory(
    path: str, topic_id: TopicId | None = None, disk: Disk | None = None
) -> PartitionDirectory:
    return PartitionDirectory(
        disk or Disk(), TopicPartition("t", 0), path, topic_id, has_new_names=False
    )


def test_the_first_id_stays(path: str) -> None:
    place = directory(path)
    assert place.topic_id == ZERO_TOPIC_ID
    assert not place.is_of_other_topic(ID)
    place.assign_topic_id(ZERO_TOPIC_ID)
    place.assign_topic_id(ID)
    place.assign_topic_id(ID)
    assert directory(path).topic_id == ID
    assert place.is_of_other_topic(OTHER_ID)
    with pytest.raises(KafkaError, match="belongs to topic id"):
        place.assign_topic_id(OTHER_ID)


def test_no_id_is_written_once_the_log_has_left(path: str) -> None:
    tasks: list[Callable[[], None]] = []
    place = directory(path, disk=Disk(workers=workers_of(tasks.append)))
    place.assign_topic_id(ID)
    place.is_deleted = True
    tasks.pop()()
    assert list(Path(path).iterdir()) == []


def test_it_is_renamed_when_the_log_is_out_of_service_and_comes_back(path: str) -> None:
    place = directory(path)

    def abandon() -> None:
        assert place.names_lock.locked()
        place.is_deleted = True

    place.rename(path + "-delete", abandon)
    assert Path(path + "-delete").is_dir()
    assert (place.path, place.is_deleted) == (path + "-delete", True)
    place.take_back(path)
    assert Path(path).is_dir()
    assert (place.path, place.is_deleted) == (path, False)


def test_a_rename_that_fails_leaves_the_name(path: str) -> None:
    place = directory(path)
    Path(path).rmdir()
    with pytest.raises(StorageError, match=f"cannot delete t-0 in {path}"):
        place.rename(path + "-delete", lambda: None)
    assert place.path == path
    place.take_back(path)  # there is nothing to rename
    assert not place.is_deleted


def test_errors_name_the_log_directory(path: str) -> None:
    error = directory(path).failed("flush", OSError("gone"))
    assert str(error) == f"cannot flush t-0 in {path}: gone"
    assert error.log_directory == str(Path(path).parent)


# File and directory names, both ways.


def test_a_segment_file_has_twenty_digits() -> None:
    assert names.segment_file(203000, names.LOG) == "00000000000000203000.log"
    assert names.base_offset_of("00000000000000203000.timeindex") == 203000
    assert names.base_offset_of("00000000000000203000.log.swap") == 203000


@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", "123.log", "0000000000000020300x.log", ""]
)
def test_other_names_have_no_base_offset(name: str) -> None:
    assert names.base_offset_of(name) is None


def test_directories_are_parsed_with_their_mark() -> None:
    hexes = "0123456789abcdef" * 2
    assert names.parse_directory("my-topic-12") == (TopicPartition("my-topic", 12), "")
    for mark in ("-delete", "-future", "-stray"):
        assert names.parse_directory(f"my-topic-12.{hexes}{mark}") == (("my-topic", 12), mark)


@pytest.mark.parametrize("name", ["topic", "-1", "topic-", "topic-x", "lost+found", "t-1-delete"])
def test_other_directories_are_no_partitions(name: str) -> None:
    assert names.parse_directory(name) is None


def test_a_marked_name_is_never_too_long_and_is_parsed_again() -> None:
    name = names.marked_directory("x" * 249, 7, names.DELETE_DIRECTORY)
    assert len(name) == 255
    name_and_mark = names.parse_directory(name)
    assert name_and_mark is not None
    assert name_and_mark[0].partition == 7
    assert name_and_mark[1] == names.DELETE_DIRECTORY
    assert name != names.marked_directory("x" * 249, 7, names.DELETE_DIRECTORY)


# partition.metadata: the topic id of a directory.


TEXT = "version: 0\ntopic_id: E2s7sYeCSCazK2P7yKih0w"
"""The text of Kafka 3.9.1 (tests/golden/segments)."""
TOPIC_ID = topic_id_from_text("E2s7sYeCSCazK2P7yKih0w")


def test_the_bytes_are_kafka_s(tmp_path: Path) -> None:
    assert read_metadata(REAL_FILES, str(tmp_path)) is None
    MetadataWriter(REAL_FILES).write(str(tmp_path), TOPIC_ID)
    assert (tmp_path / "partition.metadata").read_text() == TEXT
    assert read_metadata(REAL_FILES, str(tmp_path)) == TOPIC_ID


def write_all(tmp_path: Path, writer: MetadataWriter, *directories: str) -> list[int]:
    """The files' numbers: equal for two names of one file."""
    for name in directories:
        (tmp_path / name).mkdir(parents=True)
        writer.write(str(tmp_path / name), TOPIC_ID)
    assert {(tmp_path / name / "partition.metadata").read_text() for name in directories} == {TEXT}
    return [(tmp_path / name / "partition.metadata").stat().st_ino for name in directories]


def test_partitions_of_a_topic_share_the_file_of_their_log_directory(tmp_path: Path) -> None:
    first, second, other = write_all(
        tmp_path, MetadataWriter(REAL_FILES), "a/t-0", "a/t-1", "b/t-2"
    )
    assert first == second != other


def test_another_topic_has_another_file(tmp_path: Path) -> None:
    writer = MetadataWriter(REAL_FILES)
    write_all(tmp_path, writer, "t-0")
    (tmp_path / "u-0").mkdir()
    writer.write(str(tmp_path / "u-0"), TopicId(bytes(range(16))))
    assert read_metadata(REAL_FILES, str(tmp_path / "t-0")) == TOPIC_ID
    assert read_metadata(REAL_FILES, str(tmp_path / "u-0")) == bytes(range(16))


def test_a_shared_file_that_is_gone_is_written_anew(tmp_path: Path) -> None:
    writer = MetadataWriter(REAL_FILES)
    write_all(tmp_path, writer, "t-0")
    (tmp_path / "t-0" / "partition.metadata").unlink()
    write_all(tmp_path, writer, "t-1", "t-2")


def test_a_file_system_without_links_gets_a_file_for_each(tmp_path: Path) -> None:
    class Unlinked(Files):
        def link(self, path: str, name: str) -> None:
            raise PermissionError(1, "Operation not permitted", path)

    assert len(set(write_all(tmp_path, MetadataWriter(Unlinked()), "t-0", "t-1"))) == 2


class NamingFiles(Files):
    """Notes the files that are opened to read."""

    def __init__(self) -> None:
        self.opened_paths: list[str] = []

    def open_to_read(self, path: str) -> int:
        self.opened_paths.append(path)
        return super().open_to_read(path)


def test_a_shared_file_is_read_once(tmp_path: Path) -> None:
    writer = MetadataWriter(REAL_FILES)
    write_all(tmp_path, writer, "t-0", "t-1", "t-2")
    other_id = TopicId(bytes(range(16)))
    for name in ("u-0", "u-1"):
        (tmp_path / name).mkdir()
        writer.write(str(tmp_path / name), other_id)
    files = NamingFiles()
    metadata = SharedMetadata(files)
    directories = [f"{tmp_path}/{name}" for name in ("t-0", "u-0", "t-1", "u-1", "t-2")]
    topic_ids = [metadata.read(directory) for directory in directories]
    assert topic_ids == [TOPIC_ID, other_id, TOPIC_ID, other_id, TOPIC_ID]
    assert files.opened_paths == [
        f"{tmp_path}/t-0/partition.metadata",
        f"{tmp_path}/u-0/partition.metadata",
    ]


def test_a_file_that_is_not_shared_is_left_to_whoever_asks_for_it(tmp_path: Path) -> None:
    write_all(tmp_path, MetadataWriter(REAL_FILES), "t-0")
    files = NamingFiles()
    metadata = SharedMetadata(files)
    assert metadata.read(f"{tmp_path}/t-0") is None
    assert metadata.read(f"{tmp_path}/nothing-0") is None
    assert files.opened_paths == []


def test_a_damaged_shared_file_is_no_topic_id(tmp_path: Path) -> None:
    write_all(tmp_path, MetadataWriter(REAL_FILES), "t-0", "t-1")
    (tmp_path / "t-0" / "partition.metadata").write_text("version: 1")
    metadata = SharedMetadata(REAL_FILES)
    assert [metadata.read(f"{tmp_path}/t-{index}") for index in (0, 1)] == [None, None]
    with pytest.raises(CorruptionError):
        read_metadata(REAL_FILES, f"{tmp_path}/t-1")


def test_after_a_power_cut_a_shared_file_is_whole(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path))
    writer = MetadataWriter(files)
    for name in ("t-0", "t-1", "t-2"):
        files.make_directory(f"{tmp_path}/{name}")
        writer.write(f"{tmp_path}/{name}", TOPIC_ID)
    files.sync_directory(f"{tmp_path}/t-1")
    files.sync_directory(str(tmp_path))
    files.power_cut()
    files.forget_pins()
    topic_ids = [read_metadata(REAL_FILES, f"{tmp_path}/t-{index}") for index in range(3)]
    assert topic_ids == [TOPIC_ID, TOPIC_ID, None]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 1\ntopic_id: E2s7sYeCSCazK2P7yKih0w",
        "version: 0\ntopic_id: short",
        "version: 0",
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    with pytest.raises(CorruptionError, match=r"partition\.metadata"):
        read_metadata(REAL_FILES, str(tmp_path))


def test_a_failure_has_its_cause_before_it_is_raised(path: str) -> None:
    """Compiled code loses `from`, and a disk that will fail again takes its directory offline."""
    refusal = OSError(errno.EIO, "Input/output error")
    failure = directory(path).failed("read", refusal)
    assert failure.__cause__ is refusal
    assert failure.is_lasting
