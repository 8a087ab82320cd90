"""partition.metadata: the topic id of a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.partition_metadata import MetadataWriter, read_metadata
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicId, topic_id_from_text
from tests.support.faulty_files import FaultyFiles

if TYPE_CHECKING:
    from pathlib import Path

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
    found = [read_metadata(REAL_FILES, f"{tmp_path}/t-{index}") for index in range(3)]
    assert found == [TOPIC_ID, TOPIC_ID, None]


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
