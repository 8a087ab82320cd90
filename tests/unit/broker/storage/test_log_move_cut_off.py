"""A move that a kill or a power cut ends anywhere: a start finds the log once, and whole."""

from __future__ import annotations

from functools import partial
from itertools import count
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.log_manager import LogManager
from minibroker.broker.storage.log_move import LogMove
from minibroker.kafka.errors import StorageError
from tests.support.faulty_files import FaultyFiles, PowerCut
from tests.support.logs import TOPIC_ID, ManualClock, abandon, flush, open_manager, values_of
from tests.unit.broker.storage.moved_log import SMALL, Move, expected

if TYPE_CHECKING:
    from collections.abc import Callable


def place(root: Path) -> tuple[Path, FaultyFiles]:
    """Two log directories, `a` and `b`, of a disk that can lose its power."""
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
    return root, FaultyFiles(str(root))


def is_cut_off(files: FaultyFiles, cut_at: int, step: Callable[[], object]) -> bool:
    """Return whether the power went at the step's call number `cut_at`; if not, it is done."""
    files.cut_at = files.call_count + cut_at
    try:
        step()
    except PowerCut:
        return True
    finally:
        files.cut_at = -1
    return False


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_power_cut_after_a_move_takes_nothing_that_was_durable(
    tmp_path: Path, is_settled: bool
) -> None:
    """Neither before the new log is synced, whatever renames survive, nor when the old is gone."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    files = FaultyFiles(str(tmp_path))
    moving = Move(tmp_path, files)
    moving.rounds()
    for _ in range(5):
        moving.append(1)
    flush(moving.log)
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    _, settle = moving.manager.complete_move(moving.move, recovery_point)
    if is_settled:
        settle()
    else:
        files.sync_directory(str(tmp_path / "a"))  # the worst: only the old name is durable
    abandon(moving.manager)
    files.power_cut()
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"), files=files)
    (log,) = manager.logs.values()
    assert values_of(log) == expected(15)
    assert log.log_directory == str(tmp_path / ("b" if is_settled else "a"))
    assert log.place.topic_id == TOPIC_ID
    manager.close()


@pytest.mark.parametrize("is_kill", [False, True])
def test_the_exchange_of_two_logs_may_be_cut_off_anywhere(tmp_path: Path, is_kill: bool) -> None:
    """The worst of a power cut: what somebody else had synced meanwhile, the new place is durable.
    Then a start finds both, and takes the newer one.
    """
    for cut_at in count(1):
        root, files = place(tmp_path / str(cut_at))
        moving = Move(root, files)
        moving.rounds()
        flush(moving.log)
        recovery_point = moving.move.finish()
        assert recovery_point is not None
        exchange = partial(moving.manager.complete_move, moving.move, recovery_point)
        is_cut = is_cut_off(files, cut_at, exchange)
        abandon(moving.manager)
        if not is_kill:
            files.sync_directory(str(root / "b"))
            files.power_cut()
        manager = open_manager(str(root / "a"), str(root / "b"), files=files)
        assert values_of(manager.logs[moving.log.name]) == expected(10)
        abandon(manager)
        files.forget_pins()
        if not is_cut:
            break
    assert cut_at == 3, "two renames, and nothing that waits for the disk"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_two_logs_the_one_that_a_move_made_is_taken(tmp_path: Path, order: str) -> None:
    root, files = place(tmp_path)
    moving = Move(root, files)
    moving.rounds()
    moving.log.advance_log_start(2)
    flush(moving.log)
    moving.manager.checkpoint_now()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    moving.manager.complete_move(moving.move, recovery_point)
    abandon(moving.manager)
    files.sync_directory(str(root / "b"))
    files.power_cut()
    assert len(list(root.glob("?/t-0"))) == 2
    manager = open_manager(*(str(root / name) for name in order), files=files)
    (log,) = manager.logs.values()
    assert log.log_directory == str(root / "b")
    assert log.log_start_offset == 2
    assert [path.name for path in (root / "a").glob("t-0*")] == []
    manager.close()
    files.forget_pins()


def test_two_logs_of_which_none_was_moved_are_refused(tmp_path: Path) -> None:
    """A move that settled leaves no mark, and the next one none where it comes from."""
    moving = Move(tmp_path)
    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    log, settle = moving.manager.complete_move(moving.move, recovery_point)
    mark = Path(log.directory) / "moved-here"
    assert mark.exists()
    settle()
    assert not mark.exists()
    mark.touch()
    back = LogMove(log, str(tmp_path / "a"))
    back.sync()()
    assert not mark.exists()
    moving.manager.close()
    copytree(tmp_path / "b/t-0", tmp_path / "a/t-0")
    with pytest.raises(StorageError, match="is in two places"):
        open_manager(str(tmp_path / "a"), str(tmp_path / "b"))


@pytest.mark.parametrize("is_kill", [False, True])
def test_where_the_log_starts_outlives_a_move_that_is_cut_off(
    tmp_path: Path, is_kill: bool
) -> None:
    """Records that were deleted are not back, whichever of the two logs a start finds."""
    places = set()
    for cut_at in count(1):
        root, files = place(tmp_path / str(cut_at))
        moving = Move(root, files)
        moving.log.advance_log_start(1)
        flush(moving.log)
        moving.manager.checkpoint_now()
        moving.rounds()
        recovery_point = moving.move.finish()
        assert recovery_point is not None
        _, settle = moving.manager.complete_move(moving.move, recovery_point)
        is_cut = is_cut_off(files, cut_at, settle)
        if is_kill:
            (directory, _) = moving.manager.directories
            moving.manager._checkpoint([directory])  # it was told that the log has left
        abandon(moving.manager)
        if not is_kill:
            files.power_cut()
        for _ in range(2):
            manager = open_manager(str(root / "a"), str(root / "b"), files=files)
            log = manager.logs[moving.log.name]
            places.add(Path(log.log_directory).name)
            assert values_of(log) == expected(10, 1)
            abandon(manager)
        files.forget_pins()
        if not is_cut:
            break
    assert places == ({"b"} if is_kill else {"a", "b"})


@pytest.mark.parametrize("is_kill", [False, True])
def test_a_move_is_taken_back_whenever_the_broker_ends_again(tmp_path: Path, is_kill: bool) -> None:
    """The copy stays until the old log has its name for good: it is what tells of the move."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = str(tmp_path / "a"), str(tmp_path / "b")
    files = FaultyFiles(str(tmp_path))
    moving = Move(tmp_path, files)
    moving.rounds()
    flush(moving.log)
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    moving.manager.complete_move(moving.move, recovery_point)
    files.sync_directory(paths[0])
    abandon(moving.manager)
    files.power_cut()
    cut_at = 0
    is_cut = True
    while is_cut:
        cut_at += 1
        manager = LogManager(
            paths, clock=ManualClock(), config_of=lambda _: SMALL, disk=Disk(files)
        )
        manager.open()
        manager.claim(0, "test-cluster-id-000000")
        files.cut_at = files.call_count + cut_at
        try:
            manager.load()
        except PowerCut:
            abandon(manager)
            if not is_kill:
                files.power_cut()
        else:
            is_cut = False
    assert cut_at > 4
    assert values_of(manager.logs[moving.log.name]) == expected(10)
    files.cut_at = -1
    manager.close()


def test_an_old_log_is_kept_while_the_new_one_is_out_of_reach(tmp_path: Path) -> None:
    """The start that removes it is one that knows its partition."""
    moving = Move(tmp_path)
    moving.rounds()
    recovery_point = moving.move.finish()
    assert recovery_point is not None
    moving.manager.complete_move(moving.move, recovery_point)
    moving.manager.close()
    (tmp_path / "b").rename(tmp_path / "away")
    (tmp_path / "b").write_text("a disk that is gone")
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    assert len(list((tmp_path / "a").glob("t-0.*-delete"))) == 1
    manager.close()
    (tmp_path / "b").unlink()
    (tmp_path / "away").rename(tmp_path / "b")
    manager = open_manager(str(tmp_path / "a"), str(tmp_path / "b"))
    assert values_of(manager.logs[moving.log.name]) == expected(10)
    assert list((tmp_path / "a").glob("t-0*")) == []
    manager.close()


def test_a_power_cut_while_a_move_settles_leaves_one_log(tmp_path: Path) -> None:
    """A start refuses to choose between two; the power may go at every step."""
    for cut_at in count(1):
        root, files = place(tmp_path / str(cut_at))
        moving = Move(root, files)
        moving.rounds()
        flush(moving.log)
        recovery_point = moving.move.finish()
        assert recovery_point is not None
        _, settle = moving.manager.complete_move(moving.move, recovery_point)
        is_cut = is_cut_off(files, cut_at, settle)
        abandon(moving.manager)
        files.power_cut()
        manager = open_manager(str(root / "a"), str(root / "b"), files=files)
        assert values_of(manager.logs[moving.log.name]) == expected(10)
        abandon(manager)
        files.forget_pins()
        if not is_cut:
            break
    assert cut_at > 10
