"""Deletion of a broker's data: its own files alone, and only where a broker has been."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.cli.errors import CommandError
from minibroker.verbs.background.data import delete_data

if TYPE_CHECKING:
    from pathlib import Path


def data_of_a_broker(directory: Path) -> Path:
    """Make a directory like one of a broker that was stopped."""
    for partition in ("orders-0", "orders-1", "gone-0.0123456789abcdef0123456789abcdef-delete"):
        (directory / partition).mkdir(parents=True)
        (directory / partition / "00000000000000000000.log").write_bytes(b"records")
    (directory / "new-0").mkdir()
    for name in (
        *("meta.properties", ".lock", ".kafka_cleanshutdown", "minibroker-metadata.db-wal"),
        *("minibroker-metadata.db", "cleaner-offset-checkpoint", "zookeeper-session"),
        "__cluster_metadata-0",  # of take-back
    ):
        (directory / name).write_text("x")
    return directory


def test_a_directory_of_a_broker_goes_whole(tmp_path: Path) -> None:
    data = data_of_a_broker(tmp_path / "d")
    assert delete_data([str(data), str(tmp_path / "absent")]) == []
    assert not data.exists()


def test_a_directory_of_several_brokers_goes_whole(tmp_path: Path) -> None:
    data = tmp_path / "d"
    for number in range(3):
        data_of_a_broker(data / f"broker-{number}")
    (data / "minibroker-cluster.db").write_text("x")
    assert delete_data([str(data)]) == []
    assert not data.exists()


def test_entries_that_no_broker_has_made_stay(tmp_path: Path) -> None:
    data = data_of_a_broker(tmp_path / "d")
    elsewhere = data_of_a_broker(tmp_path / "elsewhere")
    (data / "year-2024").mkdir()
    (data / "year-2024" / "photo.jpg").write_text("mine")
    (data / "linked-0").symlink_to(elsewhere / "orders-0")
    (data / "notes.txt").write_text("mine")
    foreign = [str(data / name) for name in ("linked-0", "notes.txt", "year-2024")]
    assert delete_data([str(data)]) == foreign
    assert (elsewhere / "orders-0" / "00000000000000000000.log").exists()
    assert (data / "year-2024" / "photo.jpg").exists()


def test_a_directory_without_the_mark_of_a_broker_is_refused(tmp_path: Path) -> None:
    data, other = data_of_a_broker(tmp_path / "d"), tmp_path / "home"
    (other / "orders-0").mkdir(parents=True)
    with pytest.raises(CommandError, match=r"home is no data directory, as it has no meta\.prop"):
        delete_data([str(data), str(other)])
    assert (data / "meta.properties").exists()
