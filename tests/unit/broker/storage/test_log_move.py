"""One log on its way into another directory: what is copied, and when the rest is small enough."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from minibroker.broker.storage import log_move, recovery
from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.log_move import LogMove
from minibroker.broker.storage.move_mark import encode_mark, mark_path, read_mark
from minibroker.kafka.errors import StorageError
from tests.support.evidence import MARKED
from tests.support.logs import TOPIC_ID, abandon, append, open_manager, values_of
from tests.unit.broker.storage.moved_log import Move, expected


def test_a_mark_says_where_the_log_starts(tmp_path: Path) -> None:
    directory = str(tmp_path)
    REAL_FILES.write_atomically(mark_path(directory), encode_mark(12))
    assert read_mark(REAL_FILES, directory) == 12


@pytest.mark.parametrize("content", [b"", b"\0\0", b"-3", b"12 apples", None])
def test_a_mark_that_says_nothing_is_no_start(tmp_path: Path, content: bytes | None) -> None:
    """A power cut may keep its name only."""
    if content is not None:
        (tmp_path / "moved-here").write_bytes(content)
    assert read_mark(REAL_FILES, str(tmp_path)) == -1


@pytest.fixture
def moving(tmp_path: Path) -> Move:
    return Move(tmp_path)


def test_the_log_is_the_same_in_its_new_place(moving: Move, tmp_path: Path) -> None:
    old_files = {path.name: path.read_bytes() for path in (tmp_path / "a" / "t-0").glob("*.log")}
    assert moving.rounds() >= 1
    log = moving.finish()
    assert log.directory == str(tmp_path / "b" / "t-0")
    assert values_of(log) == expected(10)
    assert {path.name: path.read_bytes() for path in Path(log.directory).glob("*.log")} == old_files
    assert log.place.topic_id == TOPIC_ID
    assert list((tmp_path / "a").glob("t-0*")) == []
    assert moving.manager.get("t", 0) is log
    moving.manager.close()
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    (again,) = manager.logs.values()
    assert values_of(again) == expected(10)
    assert append(again, b"v10") == 10
    manager.close()


def test_records_written_meanwhile_are_moved_too(moving: Move) -> None:
    while (task := moving.move.next_round()) is not None:
        moving.append(1)
        task()
    moving.append(2)
    moving.move.sync()()
    moving.append(2)
    end = moving.log.log_end_offset
    assert values_of(moving.finish()) == expected(end)
    moving.manager.close()


def test_a_large_rest_needs_another_round(moving: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_move, "FINISH_BYTES", 100)
    moving.rounds()
    moving.append(8)
    assert moving.move.finish() is None
    moving.rounds()
    assert values_of(moving.finish()) == expected(18)
    moving.manager.close()


def test_rounds_are_bounded(moving: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_move, "ROUND_BYTES", 200)
    monkeypatch.setattr(log_move, "FINISH_BYTES", 0)
    old_size = 0
    while (task := moving.move.next_round()) is not None:
        task()
        assert 0 < moving.move.size_bytes - old_size <= 200
        old_size = moving.move.size_bytes
    assert old_size == moving.log.size_bytes
    assert moving.move.end_offset == moving.log.log_end_offset
    moving.manager.close()


def test_segments_that_go_meanwhile_are_not_brought(moving: Move) -> None:
    moving.rounds()
    segments = list(moving.log.segments)[:2]
    moving.log.advance_log_start(list(moving.log.segments)[2].base_offset)
    moving.log.remove_segments(segments)
    start = moving.log.log_start_offset
    moving.rounds()
    log = moving.finish()
    assert log.log_start_offset == start
    assert values_of(log, start) == expected(10, start)
    names = {path.name for path in Path(log.directory).glob("*.log")}
    assert len(names) == len(list(log.segments))
    moving.manager.close()


def test_a_log_that_is_cut_meanwhile_is_copied_anew(moving: Move) -> None:
    moving.rounds()
    moving.log.truncate_to(5)
    others = [value[::-1] for value in expected(12)[5:]]  # more than was cut
    for value in others:
        append(moving.log, value)
    moving.rounds()
    assert values_of(moving.finish()) == [*expected(5), *others]
    moving.manager.close()


def test_the_lag_counts_uncopied_offsets(moving: Move) -> None:
    assert moving.move.end_offset == 0
    moving.rounds()
    moving.move.finish()
    assert moving.move.end_offset == 10
    moving.manager.close()


def test_a_directory_that_refuses_is_named(moving: Move, tmp_path: Path) -> None:
    (tmp_path / "c").write_text("")
    with pytest.raises(StorageError, match=r"cannot move t-0 to .*/c") as caught:
        LogMove(moving.log, str(tmp_path / "c"))
    assert caught.value.log_directory == str(tmp_path / "c")
    moving.manager.close()


def test_a_move_that_a_stop_interrupted_is_known_and_its_copy_removed(
    moving: Move, tmp_path: Path
) -> None:
    moving.rounds()
    moving.manager.close()
    assert len(list((tmp_path / "b").glob("*-future"))) == 1
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    assert manager.take_futures() == {moving.log.name: str(tmp_path / "b")}
    assert manager.take_futures() == {}
    assert list((tmp_path / "b").glob("t-0*")) == []
    assert [values_of(log) for log in manager.logs.values()] == [expected(10)]
    manager.close()


def test_an_old_log_that_cannot_be_removed_does_not_undo_the_move(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The new one is served, and who runs the task hears of the old one's disk."""

    class Refusing(Files):
        def replace(self, old: str, new: str) -> None:
            if new.endswith("-delete"):
                raise OSError(errno.EIO, "Input/output error")
            super().replace(old, new)

    moving = Move(tmp_path, Refusing())
    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    log, settle = moving.manager.complete_move(moving.move, recovery_point)
    assert moving.manager.get("t", 0) is log
    assert append(log, b"v10") == 10
    assert values_of(log) == expected(11)
    assert f"remove {tmp_path}/a/t-0 by hand" in caplog.text
    with pytest.raises(StorageError) as caught:
        settle()
    assert caught.value.log_directory == str(tmp_path / "a")
    assert moving.manager.fail_directory(str(tmp_path / "a")) == []
    assert values_of(log) == expected(11)
    moving.manager.close()


def test_a_copy_that_cannot_be_opened_is_a_copy_again(
    moving: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise StorageError("cannot load")

    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    with monkeypatch.context() as patched:
        patched.setattr(recovery, "load_log", refuse)
        with pytest.raises(StorageError, match="cannot load"):
            moving.manager.complete_move(moving.move, recovery_point)
    assert moving.manager.get("t", 0) is moving.log
    assert Path(moving.move.directory).is_dir()
    append(moving.log, b"v10")
    assert values_of(moving.log) == expected(11)
    moving.manager.close()


def test_an_old_log_stays_where_the_new_one_could_not_be_synced(tmp_path: Path) -> None:
    """Also where somebody else's error took the new one's directory offline before."""

    class Dying(Files):
        is_dead = False

        def sync(self, fd: int) -> None:  # type: ignore[override]
            if self.is_dead:
                raise OSError(errno.EIO, "Input/output error")
            super().sync(fd)

    files = Dying()
    moving = Move(tmp_path, files)
    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    _, settle = moving.manager.complete_move(moving.move, recovery_point)
    moving.manager.fail_directory(str(tmp_path / "b"))
    files.is_dead = True
    with pytest.raises(StorageError, match="cannot move t-0"):
        settle()
    (old,) = (tmp_path / "a").glob("t-0.*-delete")
    assert len(list(old.glob("*.log"))) == len(list(moving.log.segments))
    abandon(moving.manager)


def test_a_move_does_not_end_in_a_directory_that_failed(moving: Move, tmp_path: Path) -> None:
    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    moving.manager.fail_directory(str(tmp_path / "b"))
    with pytest.raises(StorageError, match="is offline"):
        moving.manager.complete_move(moving.move, recovery_point)
    assert moving.manager.get("t", 0) is moving.log
    assert append(moving.log, b"v10") == 10
    moving.manager.close()


class DyingFiles(Files):
    """One directory's disk does not read and sync any more."""

    dead = "none"

    def open_to_read(self, path: str) -> int:
        if path.startswith(self.dead):
            raise OSError(errno.EIO, "Input/output error")
        return super().open_to_read(path)

    def sync_directory(self, path: str) -> None:
        if path.startswith(self.dead):
            raise OSError(errno.EIO, "Input/output error")
        super().sync_directory(path)


def test_a_disk_that_cannot_be_read_is_the_one_that_is_left(tmp_path: Path) -> None:
    """Moved away from a disk that dies: the error is not the other one's."""
    files = DyingFiles()
    moving = Move(tmp_path, files)
    copy = moving.move.next_round()
    assert copy is not None
    files.dead = moving.log.log_directory
    with pytest.raises(StorageError) as caught:
        copy()
    assert caught.value.log_directory == moving.log.log_directory
    assert caught.value.is_lasting
    with pytest.raises(StorageError) as caught:
        moving.move.sync()()
    assert caught.value.log_directory == moving.log.log_directory
    abandon(moving.manager)


def test_a_disk_that_dies_at_the_end_is_the_one_that_is_left(tmp_path: Path) -> None:
    files = DyingFiles()
    moving = Move(tmp_path, files)
    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    log, settle = moving.manager.complete_move(moving.move, recovery_point)
    files.dead = str(tmp_path / "a")
    with pytest.raises(StorageError) as caught:
        settle()
    assert caught.value.log_directory == files.dead
    assert values_of(log) == expected(10)
    abandon(moving.manager)


def test_a_log_that_is_deleted_before_its_move_settled_goes_with_the_old_one(
    moving: Move, tmp_path: Path
) -> None:
    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    _, settle = moving.manager.complete_move(moving.move, recovery_point)
    remove = moving.manager.delete("t", 0, MARKED)
    assert remove is not None
    remove()
    settle()
    assert [list((tmp_path / directory).glob("t-0*")) for directory in ("a", "b")] == [[], []]
    moving.manager.close()
