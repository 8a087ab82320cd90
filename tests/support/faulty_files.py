"""`FaultyFiles`: files like `storage.files.Files` that fail, write short and lose power.

It works on real files below one root and remembers the durable state: the bytes of a file at its
last fsync, the names of a directory at its last fsync (on some file systems `fsync` of a file also
syncs its name; not here). `power_cut` restores that state. A disk may have more: `keep` is the
number of bytes, `keep_names` the number of changes of names. The two are independent, as on a file
system with a journal for names only: a file may have its new name and no content.

With nothing set it behaves exactly as `Files`: both run the same contract tests
(`tests/unit/broker/storage/test_files.py`).
"""

# ruff: noqa: PTH102, PTH105, PTH106, PTH108, PTH110, PTH116, PTH119, PTH120, PTH123
from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

from minibroker.broker.storage.files import Files

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable, Sequence

    from minibroker.broker.storage.files import Buffer


class PowerCut(BaseException):
    """The machine stopped at this call. A BaseException, so that nothing handles it."""


def keep_nothing(_unsynced: int) -> int:
    return 0


def keep_everything(unsynced: int) -> int:
    return unsynced


class FaultyFiles(Files):
    """Files below `root` with faults. Every call that changes something is counted in `call_count`.

    `cut_at`: the call of that number raises PowerCut instead of being done. `fail_at`: from that
    call on, `fail_count` calls raise OSError(`fail_errno`). `short_at`: that vectored write writes
    half. `counts_reads`: calls without a change are counted, too.
    """

    __slots__ = (
        "_changes",
        "_names",
        "_pins",
        "_synced",
        "call_count",
        "counts_reads",
        "cut_at",
        "fail_at",
        "fail_count",
        "fail_errno",
        "root",
        "short_at",
    )

    def __init__(self, root: str) -> None:
        self.root = root
        self.call_count = 0
        self.cut_at = self.fail_at = self.short_at = -1
        self.fail_count = 1
        self.counts_reads = False
        self.fail_errno = errno.ENOSPC
        self._synced: dict[int, bytes] = {}
        self._pins: dict[int, int] = {}
        # Directories, too, go by their number: one that is renamed keeps what is in it.
        self._names: dict[int, dict[str, int]] = {}
        # Names that changed since: (directory, name, number or None: gone), one list a call.
        self._changes: list[list[tuple[int, str, int | None]]] = []
        self._remember_all()

    # --- what is durable ------------------------------------------------------------------------

    def _remember_all(self) -> None:
        self.forget_pins()
        self._synced, self._names, self._changes = {}, {}, []
        for directory, _, _ in os.walk(self.root):
            self._note_names(directory)
        for inode in self._pins.keys() - self._names.keys():
            self._synced[inode] = self._content(inode)

    def _note_names(self, directory: str) -> None:
        """Note that a directory is synced: its names are durable, and new files as they are."""
        inodes: dict[str, int] = {}
        with os.scandir(directory) as entries:
            for entry in entries:
                inodes[entry.name] = self._inode(entry.path)
                if entry.is_dir():
                    self._names.setdefault(inodes[entry.name], {})
        number = self._inode(directory)
        self._names[number] = inodes
        for changes in self._changes:
            changes[:] = [change for change in changes if change[0] != number]

    def _note_change(self, *changes: tuple[str, int | None]) -> None:
        """Note a call that added or removed names (None): on the disk it is done entirely or not at
        all.
        """
        self._changes.append(
            [
                (self._inode(os.path.dirname(path)), os.path.basename(path), number)
                for path, number in changes
            ]
        )

    def _make_durable(self, call_count: int) -> None:
        """Make the first `call_count` changes of names durable."""
        for changes in self._changes[:call_count]:
            for directory, name, number in changes:
                if number is None:
                    self._names.setdefault(directory, {}).pop(name, None)
                else:
                    self._names.setdefault(directory, {})[name] = number

    def _inode(self, path: str) -> int:
        """Return the number of a file or directory, which is held open so that it is not reused."""
        inode = os.stat(path).st_ino
        if inode not in self._pins:
            self._pins[inode] = os.open(path, os.O_RDONLY)
            self._synced[inode] = b""
        return inode

    def _content(self, inode: int) -> bytes:
        pin = self._pins[inode]
        return os.pread(pin, os.fstat(pin).st_size, 0)

    def forget_pins(self) -> None:
        """Close the files and directories that are held open, as the end of this object does."""
        for pin in self._pins.values():
            os.close(pin)
        self._pins = {}

    def __del__(self) -> None:
        self.forget_pins()

    def power_cut(
        self,
        keep: Callable[[int], int] = keep_nothing,
        keep_names: Callable[[int], int] = keep_nothing,
    ) -> None:
        """Restore the durable state of the root.

        Of bytes appended behind a file's synced part the first `keep(how many)` survive: a torn
        write. Of the changes of names in directories without a later sync the first `keep_names(how
        many)` survive, in order.
        """
        self._changes = [changes for changes in self._changes if changes]
        self._make_durable(keep_names(len(self._changes)))
        survivors: list[tuple[str, bytes]] = []
        durable = [(self.root, self._inode(self.root))]
        for directory, number in durable:
            for name, inode in self._names[number].items():
                path = f"{directory}/{name}"
                if inode in self._names:
                    durable.append((path, inode))
                    continue
                synced, live = self._synced[inode], self._content(inode)
                if live.startswith(synced):
                    extra = len(live) - len(synced)
                    synced = live[: len(synced) + (keep(extra) if extra else 0)]
                survivors.append((path, synced))
        shutil.rmtree(self.root)
        for directory, _ in durable:
            os.mkdir(directory)
        for path, content in survivors:
            with open(path, "wb") as file:
                file.write(content)
        self.cut_at = self.fail_at = self.short_at = -1
        self._remember_all()

    # --- faults -----------------------------------------------------------------------------------

    def _count(self) -> None:
        self.call_count += 1
        if self.call_count == self.cut_at:
            raise PowerCut(self.call_count)
        if 0 <= self.call_count - self.fail_at < self.fail_count and self.fail_at > 0:
            raise OSError(self.fail_errno, os.strerror(self.fail_errno))

    # --- the calls that change nothing ----------------------------------------------------------

    def _count_read(self) -> None:
        if self.counts_reads:
            self._count()

    def open_to_read(self, path: str) -> int:
        self._count_read()
        return super().open_to_read(path)

    def pread(self, fd: int, size: int, position: int) -> bytes:  # type: ignore[override]
        self._count_read()
        return os.pread(fd, size, position)

    def map(self, fd: int, position: int, size: int) -> mmap.mmap:
        self._count_read()
        return super().map(fd, position, size)

    def size_at(self, path: str) -> int:
        self._count_read()
        return super().size_at(path)

    def last_change(self, path: str) -> tuple[int, int]:
        self._count_read()
        return super().last_change(path)

    def list_files(self, path: str) -> list[str]:
        self._count_read()
        return super().list_files(path)

    # --- the calls that change something --------------------------------------------------------

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> int:  # type: ignore[override]
        self._count()
        if self.call_count == self.short_at:
            joined = b"".join(buffers)
            return os.pwritev(fd, [joined[: len(joined) // 2]], position)
        return os.pwritev(fd, buffers, position)

    def truncate(self, fd: int, size: int) -> None:  # type: ignore[override]
        self._count()
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:  # type: ignore[override]
        self._count()
        inode = os.fstat(fd).st_ino
        if inode in self._pins:
            self._synced[inode] = self._content(inode)

    def open(self, path: str, *, create: bool = False) -> int:
        is_new = create and not os.path.exists(path)
        if is_new:
            self._count()
        else:
            self._count_read()
        fd = super().open(path, create=create)
        number = self._inode(path)
        if is_new:
            self._note_change((path, number))
        return fd

    def sync_directory(self, path: str) -> None:
        self._count()
        self._note_names(path)

    def replace(self, old: str, new: str) -> None:
        self._count()
        number = self._inode(old)
        os.replace(old, new)
        self._note_change((old, None), (new, number))

    def link(self, path: str, name: str) -> None:
        self._count()
        os.link(path, name)
        self._note_change((name, self._inode(name)))

    def remove(self, path: str) -> None:
        self._count()
        os.unlink(path)
        self._note_change((path, None))

    def make_directory(self, path: str) -> None:
        self._count()
        super().make_directory(path)
        number = self._inode(path)
        self._names[number] = {}
        self._note_change((path, number))

    def remove_directory(self, path: str) -> None:
        self._count()
        os.rmdir(path)
        self._note_change((path, None))
