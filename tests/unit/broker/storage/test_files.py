"""One contract, two implementations: the real files and the faulty twin with no fault set."""

from __future__ import annotations

import contextlib
import errno
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.files import BUFFERS_MAX, Files
from minibroker.broker.storage.tail import ALWAYS_ASK, STAGED_BYTES_MAX, AppendInfo, Tail
from tests.support.faulty_files import FaultyFiles, PowerCut, keep_everything

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["real", "faulty"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    if request.param == "real":
        yield Files()
        return
    twin = FaultyFiles(str(tmp_path))
    yield twin
    twin.forget_pins()


def test_a_vectored_write_lands_at_its_position(files: Files, tmp_path: Path) -> None:
    fd = files.open(f"{tmp_path}/a", create=True)
    assert files.pwritev(fd, [b"ab", bytearray(b"cd"), memoryview(b"ef")], 3) == 6
    assert files.pread(fd, 100, 0) == b"\0\0\0abcdef"
    assert files.pread(fd, 2, 4) == b"bc"
    assert files.size_of(fd) == files.size_at(f"{tmp_path}/a") == 9
    files.close(fd)


def test_truncate_cuts_and_grows_with_zeros(files: Files, tmp_path: Path) -> None:
    fd = files.open(f"{tmp_path}/a", create=True)
    files.write_all(fd, [b"abcdef"], 0)
    files.truncate(fd, 2)
    assert files.pread(fd, 10, 0) == b"ab"
    files.truncate(fd, 4)
    assert files.pread(fd, 10, 0) == b"ab\0\0"
    files.close(fd)


def test_opening_an_absent_file_without_create_raises(files: Files, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.open(f"{tmp_path}/a")
    assert not files.exists(f"{tmp_path}/a")


def test_write_atomically_replaces_a_longer_file_and_leaves_no_temporary(
    files: Files, tmp_path: Path
) -> None:
    files.write_atomically(f"{tmp_path}/a", b"long content")
    files.write_atomically(f"{tmp_path}/a", b"short")
    assert files.read_all(f"{tmp_path}/a") == b"short"
    assert files.list_files(str(tmp_path)) == ["a"]


@pytest.mark.parametrize("written", [0, 1, 2, 3, 5, 6, 2048, 3999])
def test_the_rest_of_a_short_write_follows_where_it_ended(
    files: Files, tmp_path: Path, written: int
) -> None:
    buffers = [b"ab", b"c", memoryview(b"def")] * (2 * BUFFERS_MAX // 3)
    content = b"".join(buffers)
    fd = files.open(f"{tmp_path}/a", create=True)
    files.write_all(fd, [b"-" * 7 + content[:written]], 0)
    files.write_rest(fd, buffers, 7, written)
    assert files.read_all(f"{tmp_path}/a") == b"-" * 7 + content
    files.close(fd)


def test_a_link_is_a_second_name(files: Files, tmp_path: Path) -> None:
    files.write_atomically(f"{tmp_path}/a", b"content")
    files.link(f"{tmp_path}/a", f"{tmp_path}/b")
    with pytest.raises(FileExistsError):
        files.link(f"{tmp_path}/a", f"{tmp_path}/b")
    files.write_atomically(f"{tmp_path}/a", b"other")
    assert files.read_all(f"{tmp_path}/b") == b"content"


def test_a_map_shows_written_bytes(files: Files, tmp_path: Path) -> None:
    fd = files.open(f"{tmp_path}/a", create=True)
    files.write_all(fd, [bytes(range(256)) * 32], 0)
    mapped = files.map(fd, 4096, 4096)
    assert mapped[:256] == bytes(range(256))
    mapped.close()
    files.close(fd)


def test_names_are_listed_renamed_and_removed(files: Files, tmp_path: Path) -> None:
    files.make_directory(f"{tmp_path}/d")
    files.create(f"{tmp_path}/d/x")
    files.replace(f"{tmp_path}/d/x", f"{tmp_path}/d/y")
    files.replace(f"{tmp_path}/d", f"{tmp_path}/e")
    assert files.list_directories(str(tmp_path)) == ["e"]
    assert files.list_files(f"{tmp_path}/e") == ["y"]
    files.remove(f"{tmp_path}/e/y")
    files.remove_directory(f"{tmp_path}/e")
    assert list(files.walk_names(str(tmp_path))) == []


def test_a_lock_keeps_another_process_out_and_goes_with_its_handle(
    files: Files, tmp_path: Path
) -> None:
    other = (
        "import sys; from minibroker.broker.storage.files import Files; "
        "print(Files().lock(sys.argv[1]) is not None)"
    )
    lock = files.lock(f"{tmp_path}/.lock")
    assert lock is not None

    def can_lock() -> str:
        command = [sys.executable, "-c", other, f"{tmp_path}/.lock"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert can_lock() == "False"
    files.close(lock)
    assert can_lock() == "True"


def test_a_write_that_stays_short_is_an_error(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path))
    fd = files.open(f"{tmp_path}/a", create=True)
    files.short_at = files.call_count + 1
    assert files.write_all(fd, [b"abcd", b"efgh"], 0) == 8
    assert files.pread(fd, 10, 0) == b"abcdefgh"
    files.fail_at = files.call_count + 1
    with pytest.raises(OSError, match="No space left") as caught:
        files.write_all(fd, [b"x"], 8)
    assert caught.value.errno == errno.ENOSPC


def test_a_power_cut_keeps_synced_bytes_and_synced_names_only(tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    (tmp_path / "root").mkdir()
    files = FaultyFiles(root)
    fd = files.open(f"{root}/kept", create=True)
    files.write_all(fd, [b"synced"], 0)
    files.sync(fd)
    files.sync_directory(root)
    files.write_all(fd, [b"lost"], 6)
    files.create(f"{root}/nameless")
    files.replace(f"{root}/kept", f"{root}/renamed")
    files.power_cut(lambda unsynced: unsynced // 2)
    assert files.list_files(root) == ["kept"]
    assert files.read_all(f"{root}/kept") == b"syncedlo"


def test_after_a_power_cut_a_name_may_be_there_without_its_content(tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    (tmp_path / "root").mkdir()
    files = FaultyFiles(root)
    for name, is_synced in (("unsynced", False), ("synced", True)):
        fd = files.open(f"{root}/{name}.tmp", create=True)
        files.write_all(fd, [b"content"], 0)
        if is_synced:
            files.sync(fd)
        files.replace(f"{root}/{name}.tmp", f"{root}/{name}")
    files.create(f"{root}/late")
    files.power_cut(keep_names=lambda changes: changes - 1)
    assert sorted(files.list_files(root)) == ["synced", "unsynced"]
    assert files.read_all(f"{root}/unsynced") == b""
    assert files.read_all(f"{root}/synced") == b"content"


def test_an_atomically_replaced_file_always_has_content(tmp_path: Path) -> None:
    call, contents = 0, set[bytes]()
    while b"new" not in contents:
        call += 1
        root = tmp_path / str(call)
        root.mkdir()
        files = FaultyFiles(str(root))
        files.write_atomically(f"{root}/a", b"old")
        files.cut_at = files.call_count + call
        with contextlib.suppress(PowerCut):
            files.write_atomically(f"{root}/a", b"new")
        files.power_cut(keep_names=keep_everything)
        contents.add(files.read_all(f"{root}/a"))
        files.forget_pins()
    assert contents == {b"old", b"new"}


def test_a_cut_call_is_not_done(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path))
    files.cut_at = 1
    with pytest.raises(PowerCut):
        files.make_directory(f"{tmp_path}/d")
    assert not files.exists(f"{tmp_path}/d")


# Staged entries behind a log: order, room, and a failed write.


def stage(tail: Tail, size_bytes: int, count: int = 1) -> AppendInfo:
    """Stage `size_bytes` for `count` records."""
    first = tail.next_offset
    entry = AppendInfo(first, first + count - 1, -1, 0)
    tail.stage(memoryview(bytes(size_bytes)), entry, entry.last_offset, 1000)
    return entry


def test_offsets_follow_each_other_and_sizes_add_up() -> None:
    tail = Tail(7)
    stage(tail, 100, count=3)
    stage(tail, 50)
    assert tail.next_offset == 11
    assert tail.size_bytes == 150
    assert tail.batches == [(9, 1000, 100), (10, 1000, 50)]


def test_a_batch_may_be_counted_in_two_parts() -> None:
    tail = Tail(0)
    tail.stage(memoryview(bytes(100)), AppendInfo(0, 4, -1, 0), 4, -1, (2, 1000, 60))
    assert tail.batches == [(2, 1000, 60), (4, -1, 40)]
    assert tail.size_bytes == 100


def test_so_much_is_written_at_once() -> None:
    tail = Tail(0)
    entry = AppendInfo(0, 0, -1, 0)
    assert not tail.stage(memoryview(bytes(STAGED_BYTES_MAX)), entry, 0, 0)
    assert tail.stage(memoryview(b"x"), entry, 0, 0)


def test_nothing_fits_before_the_segment_was_looked_at() -> None:
    tail = Tail(0)
    assert not tail.fits(0, 0, 1)


def test_staged_batches_take_the_room_of_the_segment() -> None:
    tail = Tail(0)
    tail.set_room(200, 2, roll_after_ms=1000, max_offset=10)
    assert tail.fits(10, 1000, 200)
    assert not tail.fits(11, 1000, 200)
    assert not tail.fits(10, 1001, 200)
    assert not tail.fits(10, 1000, 201)
    stage(tail, 50)
    assert tail.fits(10, 1000, 150)
    assert not tail.fits(10, 1000, 151)
    stage(tail, 50)
    assert not tail.fits(10, 1000, 1)  # both entries of the index may be needed
    tail.note_written(1)
    assert tail.fits(10, 1000, 100)
    stage(tail, 50)
    assert not tail.fits(10, 1000, 1)


def test_a_segment_whose_age_is_not_known_is_looked_at_each_time() -> None:
    tail = Tail(0)
    tail.set_room(200, 2, roll_after_ms=ALWAYS_ASK, max_offset=10)
    assert not tail.fits(0, -1, 1)


def test_dropped_batches_are_not_written_and_their_offsets_are_free() -> None:
    tail = Tail(5)
    entries = [stage(tail, 10), stage(tail, 10)]
    tail.drop(5)
    assert [entry.is_written for entry in entries] == [False, False]
    assert tail.next_offset == 5
    assert tail.buffers == []
    assert tail.size_bytes == 0


def test_written_batches_stay_written() -> None:
    tail = Tail(5)
    entry = stage(tail, 10)
    tail.note_written(0)
    tail.drop(6)
    assert entry.is_written
