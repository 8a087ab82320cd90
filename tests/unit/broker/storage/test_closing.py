"""Closing many logs: all are synced, several at a time, and one that fails spoils only its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.closing import FLUSHED_ALONE, close_logs
from minibroker.broker.storage.files import Files
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import TOPIC_ID, abandon, append, config, open_manager, values_of

if TYPE_CHECKING:
    from pathlib import Path

LOGS = 3 * FLUSHED_ALONE


class MeetingFiles(Files):
    """Every fsync of a `.log` waits until a second one has begun on another thread."""

    __slots__ = ("directories", "meeting")

    def __init__(self) -> None:
        self.meeting = threading.Barrier(2)
        self.directories: list[str] = []

    def sync_path(self, path: str) -> None:
        if path.endswith(".log"):
            self.meeting.wait(60)
        super().sync_path(path)

    def sync_directory(self, path: str) -> None:
        self.directories.append(path)
        super().sync_directory(path)


def test_logs_are_synced_several_at_a_time_and_their_parent_once(tmp_path: Path) -> None:
    files = MeetingFiles()
    manager = open_manager(str(tmp_path), files=files)
    logs = [manager.create_log("t", index, TOPIC_ID, config()) for index in range(LOGS)]
    for log in logs:
        append(log, b"a")
    files.directories.clear()
    assert close_logs(logs) == {}
    assert [log.recovery_point for log in logs] == [1] * LOGS
    assert not any(log.place.has_new_directory for log in logs)
    assert files.directories.count(str(tmp_path)) == 1
    assert files.directories.count(logs[0].directory) == 1
    abandon(manager)


@pytest.mark.parametrize("log_count", [1, LOGS])
def test_a_closed_log_survives_a_power_cut(tmp_path: Path, log_count: int) -> None:
    root = tmp_path / "d"
    root.mkdir()
    files = FaultyFiles(str(root))
    manager = open_manager(str(root), files=files)
    for index in range(log_count):
        append(manager.create_log("t", index, TOPIC_ID, config()), b"%d" % index)
    manager.close()
    files.power_cut()
    manager = open_manager(str(root), files=files)
    assert manager.was_clean
    values = [values_of(manager.logs[name]) for name in sorted(manager.logs)]
    assert values == [[b"%d" % index] for index in range(log_count)]
    abandon(manager)
    files.forget_pins()


def test_a_log_that_fails_is_named_and_the_others_are_closed(tmp_path: Path) -> None:
    class Refusing(Files):
        __slots__ = ()

        def sync_path(self, path: str) -> None:
            if "/t-1/" in path:
                raise OSError(5, "Input/output error")
            super().sync_path(path)

    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")
    manager = open_manager(good, bad, files=Refusing())
    for index in range(2 * LOGS):
        append(manager.create_log("t", index, TOPIC_ID, config()), b"a")
    failing = manager.logs["t", 1]  # type: ignore[index]
    failed = close_logs(manager.logs.values())
    assert list(failed) == [failing.log_directory]
    assert "cannot flush t-1" in str(failed[failing.log_directory])
    points = [log.recovery_point for log in manager.logs.values()]
    assert points.count(1) == 2 * LOGS - 1
    assert failing.recovery_point == 0
    abandon(manager)


def test_a_parent_that_cannot_be_synced_keeps_the_recovery_points(tmp_path: Path) -> None:
    class Refusing(Files):
        __slots__ = ()

        def sync_directory(self, path: str) -> None:
            if path == str(tmp_path) and refuses:
                raise OSError(5, "Input/output error")
            super().sync_directory(path)

    refuses = False
    manager = open_manager(str(tmp_path), files=Refusing())
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append(log, b"a")
    refuses = True
    assert list(close_logs([log])) == [str(tmp_path)]
    assert log.recovery_point == 0
    assert log.place.has_new_directory
    abandon(manager)
