"""One log directory: opened, claimed, checkpointed, released; and why it may be refused."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.log_directory import (
    LogDirectory,
    MetaProperties,
    check_properties,
    decode_offsets,
    decode_properties,
    encode_offsets,
    encode_properties,
    java_date,
    read_offsets,
    read_properties,
    stored_broker_id,
    write_properties,
)
from minibroker.kafka.errors import CorruptionError, StorageError, SyncError
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from pathlib import Path


OFFSETS = {TopicPartition("payments", 0): 1500, TopicPartition("a.b_c-d", 12): 0}


def test_the_bytes_are_kafka_s() -> None:
    assert encode_offsets(OFFSETS) == b"0\n2\npayments 0 1500\na.b_c-d 12 0\n"
    assert encode_offsets({}) == b"0\n0\n"


def test_a_written_file_is_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    assert read_offsets(REAL_FILES, path) == {}
    REAL_FILES.write_atomically(path, encode_offsets(OFFSETS))
    assert read_offsets(REAL_FILES, path) == OFFSETS


def test_the_checkpoints_of_a_directory_share_names() -> None:
    names_by_text: dict[str, TopicPartition] = {}
    first = decode_offsets(encode_offsets(OFFSETS), "path", names_by_text)
    second = decode_offsets(b"0\n2\na.b_c-d 12 7 \nother 1 0\n", "path", names_by_text)
    assert first == OFFSETS
    assert second == {TopicPartition("a.b_c-d", 12): 7, TopicPartition("other", 1): 0}
    assert next(iter(second)) is list(first)[1]


def test_an_empty_file_holds_nothing() -> None:
    assert decode_offsets(b"", "path") == {}


@pytest.mark.parametrize(
    "content",
    [b"1\n0\n", b"0\n2\nt 0 5\n", b"0\n1\nt 0\n", b"0\n1\nt x 5\n", b"0\n", b"0\n1\n\xff 0 0 0\n"],
)
def test_a_damaged_file_is_named(content: bytes) -> None:
    with pytest.raises(CorruptionError, match="the/path"):
        decode_offsets(content, "the/path")


MINE = MetaProperties(3, "eefzwkngRlefhjYRimzJ9g")


def test_the_bytes_of_meta_properties_are_kafka_s() -> None:
    assert encode_properties(MINE, 1_795_225_152_000) == (
        b"#\n#Sat Nov 21 01:39:12 UTC 2026\n"
        b"broker.id=3\nversion=0\ncluster.id=eefzwkngRlefhjYRimzJ9g\n"
    )


def test_meta_properties_of_kraft_are_kafka_s(tmp_path: Path) -> None:
    of_node = MetaProperties(7, "vPeOCWypqUOSepEvx0cbog", "3XVgGEvBWq-RuKTPBlzbHw", 1)
    assert encode_properties(of_node, 1_795_225_152_000) == (
        b"#\n#Sat Nov 21 01:39:12 UTC 2026\n"
        b"node.id=7\ndirectory.id=3XVgGEvBWq-RuKTPBlzbHw\nversion=1\n"
        b"cluster.id=vPeOCWypqUOSepEvx0cbog\n"
    )
    write_properties(REAL_FILES, str(tmp_path), of_node, 0)
    assert read_properties(REAL_FILES, str(tmp_path)) == of_node


@given(st.integers(0, 253_402_300_799))
def test_dates_are_java_s(seconds: int) -> None:
    expected = datetime.fromtimestamp(seconds, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    assert java_date(seconds * 1000 + 999) == expected


def test_meta_properties_a_written_file_is_read_back(tmp_path: Path) -> None:
    assert read_properties(REAL_FILES, str(tmp_path)) is None
    given_id = MetaProperties(0, "c", "d")
    write_properties(REAL_FILES, str(tmp_path), given_id, 0)
    assert read_properties(REAL_FILES, str(tmp_path)) == given_id


def test_java_s_other_spellings_are_read() -> None:
    content = b"! comment\r\n broker.id : 5\ncluster.id = a\\=b\\:\\u0063\n\nunknown=1\n"
    assert decode_properties(content, "path") == MetaProperties(5, "a=b:c")
    assert decode_properties(b"version=1\nnode.id=7\n", "path") == MetaProperties(7, None, None, 1)


@pytest.mark.parametrize(
    "content", [b"version=2\n", b"version=0\nbroker.id=zero\n", b"cluster.id=\\u12\n"]
)
def test_meta_properties_a_damaged_file_is_named(content: bytes) -> None:
    with pytest.raises(CorruptionError, match="the/path"):
        decode_properties(content, "the/path")


def test_identity_is_compared() -> None:
    check_properties(MINE, broker_id=3, cluster_id=MINE.cluster_id, directory="d")
    check_properties(MetaProperties(None, None), broker_id=3, cluster_id="x", directory="d")
    with pytest.raises(StorageError, match="belongs to cluster eefz"):
        check_properties(MINE, broker_id=3, cluster_id="x", directory="d")
    with pytest.raises(StorageError, match=r"set broker\.id=3"):
        check_properties(MINE, broker_id=4, cluster_id=MINE.cluster_id, directory="d")


def test_the_first_directory_with_an_id_says_whose_they_are(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    directories = [str(tmp_path / name) for name in ("none", "a", "b", "c")]
    assert stored_broker_id(REAL_FILES, directories) is None
    (tmp_path / "a" / "meta.properties").write_text("version=9\n")
    write_properties(REAL_FILES, directories[2], MetaProperties(None, "cluster"), 0)
    write_properties(REAL_FILES, directories[3], MetaProperties(1001, "cluster"), 0)
    assert stored_broker_id(REAL_FILES, directories) == 1001


LOG_DIRECTORY_OFFSETS = {TopicPartition("t", 0): 5}


class CountingFiles(Files):
    """Counts atomic writes."""

    __slots__ = ("writes",)

    def __init__(self) -> None:
        self.writes = 0

    def write_atomically(self, path: str, content: bytes) -> None:
        self.writes += 1
        super().write_atomically(path, content)


class ForbiddenFiles(Files):
    """A directory that may be listed and not written."""

    __slots__ = ()

    def is_usable_directory(self, path: str) -> bool:
        return False


def test_open_makes_it_and_takes_the_marker(tmp_path: Path) -> None:
    directory = LogDirectory(REAL_FILES, f"{tmp_path}/new/dir")
    directory.open()
    directory.take_marker()
    assert (directory.was_clean, directory.properties) == (False, None)
    directory.claim(1, "c", 0)
    directory.mark_clean()
    directory.release()
    again = LogDirectory(REAL_FILES, f"{tmp_path}/new/dir")
    again.open()
    again.take_marker()
    assert again.was_clean
    assert again.properties is not None
    assert (again.properties.broker_id, again.properties.cluster_id) == (1, "c")
    assert not REAL_FILES.exists(f"{again.path}/{names.CLEAN_SHUTDOWN}")
    again.release()


def test_a_marker_that_may_come_back_is_the_directory_s_failure(tmp_path: Path) -> None:
    class Unsynced(Files):
        def sync_directory(self, path: str) -> None:
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(SyncError) as caught:
        LogDirectory(Unsynced(), str(tmp_path)).sync()
    assert caught.value.log_directory == str(tmp_path)
    assert caught.value.is_lasting


def test_a_checkpoint_is_written_when_it_says_something_new(tmp_path: Path) -> None:
    files = CountingFiles()
    directory = LogDirectory(files, str(tmp_path))
    for _ in range(3):
        directory.write_checkpoint(names.RECOVERY_POINTS, LOG_DIRECTORY_OFFSETS)
    assert files.writes == 1
    directory.write_checkpoint(names.RECOVERY_POINTS, {TopicPartition("t", 0): 6})
    assert files.writes == 2
    assert directory.read_checkpoint(names.RECOVERY_POINTS) == {TopicPartition("t", 0): 6}


def test_a_damaged_checkpoint_says_nothing(tmp_path: Path) -> None:
    (tmp_path / names.HIGH_WATERMARKS).write_text("rubbish")
    assert LogDirectory(REAL_FILES, str(tmp_path)).read_checkpoint(names.HIGH_WATERMARKS) == {}


def test_without_permission_it_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="permission denied"):
        LogDirectory(ForbiddenFiles(), str(tmp_path)).open()


def test_a_damaged_meta_properties_gives_the_lock_back(tmp_path: Path) -> None:
    (tmp_path / names.META_PROPERTIES).write_text("version=9\n")
    for _ in range(2):
        with pytest.raises(StorageError, match="version '9', expected 0 or 1"):
            LogDirectory(REAL_FILES, str(tmp_path)).open()
