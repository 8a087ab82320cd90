"""The only door to the operating system's files: everything in `storage/` passes through `Files`.

One class, no state, so that tests put a faulty twin in its place (`tests/support/faulty_files.py`:
it fails on the n-th call, writes short, drops what was not synced). Paths are plain strings,
handles are file descriptors, positions and sizes are bytes. Every method raises OSError as the
system gives it; the callers (`partition_log`, `log_manager`) turn it into a StorageError that names
the partition.

The broker relies on this after a crash: bytes are durable after `sync`; a created, renamed or
removed name is durable after `sync_directory`; `replace` is atomic.
"""

from __future__ import annotations

# ruff: noqa: PTH102, PTH103, PTH105, PTH106, PTH108, PTH116, PTH208
import errno
import mmap
import os
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final

from minibroker.broker import system

Buffer = bytes | bytearray | memoryview
Map = mmap.mmap
"""A mapped piece of a file; `close` raises BufferError while a slice of it is in use."""

MAP_GRANULARITY: Final = mmap.ALLOCATIONGRANULARITY
"""A map begins at a multiple of this many bytes."""

BUFFERS_MAX: Final = 1024
"""Linux takes at most this many buffers in one vectored write (IOV_MAX)."""

PROBE_BYTES: Final = 128 << 10
"""Linux reads at least so much ahead."""
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0) if hasattr(os, "preadv") else 0
"""Linux alone tells whether a read would wait."""

_FILE_MODE: Final = 0o644
_DIRECTORY_MODE: Final = 0o755


def probed(size: int, position: int) -> Sequence[int]:
    """Return the places of a range of bytes that tell whether it is in memory: one in
    `PROBE_BYTES`, because the system reads and drops about as much at once, and the last one.
    """
    end = position + size
    return *range(position, end, PROBE_BYTES), end - 1


class Files:
    """The real files. Stateless: one instance serves every log of the process, on any thread."""

    __slots__ = ()

    close = staticmethod(os.close)
    can_map = hasattr(mmap, "MAP_SHARED")
    """True where files are mapped; else answers are bytes that `pread` returned. Windows neither
    cuts nor removes a file that is mapped."""
    can_send = hasattr(os, "sendfile") and _NOWAIT != 0
    """True where the system sends out of a file, and tells before whether that would wait for the
    disk."""
    pread = staticmethod(system.pread)
    """`pread(fd, size, position)` → bytes, shorter only at the end of the file."""
    pwritev = staticmethod(system.pwritev)
    """`pwritev(fd, buffers, position)` → bytes written; may be short."""
    truncate = staticmethod(os.ftruncate)
    """`truncate(fd, size)`: cuts, or grows with zeros that take no room."""
    sync = staticmethod(os.fsync)

    def open(self, path: str, *, create: bool = False) -> int:
        """Open for reading and writing; `create` makes an absent file (an existing one stays)."""
        flags = os.O_RDWR | system.OPEN_FLAGS | (os.O_CREAT if create else 0)
        return os.open(path, flags, _FILE_MODE)

    def open_to_read(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | system.OPEN_FLAGS)

    def size_of(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def size_at(self, path: str) -> int:
        return os.stat(path).st_size

    def last_change(self, path: str) -> tuple[int, int]:
        """Return the size of a file or directory, bytes, and the time of its last change, ns.

        That is the time of the inode, which no backup brings back, or of the content where the
        system has no such time.
        """
        status = os.stat(path)
        return status.st_size, max(status.st_ctime_ns, status.st_mtime_ns)

    def shared_file(self, path: str) -> tuple[int, ...] | None:
        """Return a key that all names of this file have, None where it has no other name.

        The times are in it for file systems that give two files one number.
        """
        status = os.stat(path)
        key = status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
        return key if status.st_nlink > 1 else None

    def modified_ms(self, path: str) -> int:
        """When the file was last written, milliseconds since the epoch."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Have the file show this as the time it was last written."""
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def pread_resident(self, fd: int, size: int, position: int) -> bytes | bytearray | None:
        """Return what `pread` returns if it is in memory, None where it would wait for the disk.

        Where the system cannot tell, it waits.
        """
        if not _NOWAIT:
            return self.pread(fd, size, position)
        buffer = bytearray(size)
        try:
            count = done = os.preadv(fd, [buffer], position, _NOWAIT)
            while count and done < size:  # no more comes at the end of the file
                rest = memoryview(buffer)[done:]
                count = os.preadv(fd, [rest], position + done, _NOWAIT)
                done += count
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return self.pread(fd, size, position)  # a file system that cannot tell
        return buffer if done == size else buffer[:done]

    def is_resident(self, fd: int, size: int, position: int) -> bool:
        """Return whether these bytes, which exist, are in memory: True where the system cannot
        tell, so that the reader waits.
        """
        if not _NOWAIT:
            return True
        places = probed(size, position)
        fds, buffers, flags = repeat(fd), repeat([bytearray(1)]), repeat(_NOWAIT)
        try:
            # A read of no byte is behind the end of the file, as are those that follow.
            all(map(os.preadv, fds, buffers, places, flags))
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
        return True

    def map(self, fd: int, position: int, size: int) -> mmap.mmap:
        """`size` bytes from `position` (a multiple of the page size), read-only, shared."""
        return mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ, offset=position)

    def send(self, socket_fd: int, fd: int, position: int, size: int) -> int:
        """Send `size` bytes from `position` of a file to a socket; return how many it took."""
        return os.sendfile(socket_fd, fd, position, size)

    def keep_map(self, mapped: Map) -> None:
        """Have a map keep its bytes, which are about to be cut from its file. On the loop."""
        from minibroker.broker.storage import kept_maps  # noqa: PLC0415  rarely, and ctypes is not free

        kept_maps.keep(mapped)

    def read_all(self, path: str) -> bytes:
        fd = self.open_to_read(path)
        try:
            size = self.size_of(fd)
            return self.pread(fd, size, 0) if size else b""
        finally:
            self.close(fd)

    def write_all(self, fd: int, buffers: Sequence[Buffer], position: int) -> int:
        """Write every byte of `buffers` (few enough for one call); returns how many.

        Raises OSError; ENOSPC also for a write that comes back short twice.
        """
        expected = sum(map(len, buffers))
        count = self.pwritev(fd, buffers, position)
        if count != expected:
            rest = memoryview(b"".join(buffers))[count:]
            if self.pwritev(fd, [rest], position + count) != len(rest):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return expected

    def write_rest(self, fd: int, buffers: Sequence[Buffer], position: int, count: int) -> None:
        """Finish what wrote only the first `count` bytes of `buffers` at `position`, however many
        buffers there are. Raises OSError; ENOSPC also for a write that comes back short twice.
        """
        first = 0
        while first < len(buffers) and count >= len(buffers[first]):
            count -= len(buffers[first])
            position += len(buffers[first])
            first += 1
        if count:
            rest = memoryview(buffers[first])[count:]
            position += self.write_all(fd, [rest], position + count) + count
            first += 1
        for start in range(first, len(buffers), BUFFERS_MAX):
            position += self.write_all(fd, buffers[start : start + BUFFERS_MAX], position)

    def create(self, path: str) -> None:
        """Create an empty file, where none is."""
        self.close(self.open(path, create=True))

    def write_atomically(self, path: str, content: bytes) -> None:
        """Replace the file's content as a whole: `<path>.tmp`, fsync, rename, fsync of the
        directory.

        After a crash the old content or the new one is there, never a mixture. A file system may
        make the new name durable before the content, so the fsync comes first. It takes
        milliseconds: not for the loop while clients wait.
        Source: Kafka CheckpointFile (same temporary name).
        """
        temporary = f"{path}.tmp"
        fd = self.open(temporary, create=True)
        try:
            self.truncate(fd, 0)
            if content:
                self.write_all(fd, [content], 0)
            self.sync(fd)
        finally:
            self.close(fd)
        self.replace(temporary, path)
        self.sync_directory(path.rpartition("/")[0] or ".")

    def sync_path(self, path: str) -> None:
        """fsync by name: the bytes are the file's, whichever handle wrote them. Opened to write,
        because Windows syncs no other handle."""
        fd = self.open(path)
        try:
            self.sync(fd)
        finally:
            self.close(fd)

    def sync_directory(self, path: str) -> None:
        """Make created, renamed and removed names in this directory durable."""
        system.sync_directory(path)

    def replace(self, old: str, new: str) -> None:
        os.replace(old, new)

    def link(self, path: str, name: str) -> None:
        """Give the file at `path` a second name, which is not taken yet."""
        os.link(path, name)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.mkdir(path, _DIRECTORY_MODE)

    def make_directories(self, path: str) -> None:
        os.makedirs(path, _DIRECTORY_MODE, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def is_usable_directory(self, path: str) -> bool:
        """Return whether this process may list, read and write in the directory."""
        return os.access(path, os.R_OK | os.W_OK | os.X_OK)

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)

    def list_files(self, path: str) -> list[str]:
        """Names of the plain files in a directory, in no order."""
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_file()]

    def list_directories(self, path: str) -> list[str]:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]

    def walk_names(self, path: str) -> Iterator[str]:
        """Yield every name in a directory, files and directories alike."""
        yield from os.listdir(path)

    def open_files_max(self) -> int:
        """Return how many files and sockets this process may hold open (the soft limit)."""
        return system.open_files_max()

    def room_bytes(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume that holds `path`."""
        return system.room_bytes(path)

    def lock(self, path: str) -> int | None:
        """Take the lock file for this process; its handle, or None where another process holds it.

        A POSIX record lock, as Java's FileChannel.tryLock takes it: a Kafka JVM and we exclude each
        other. It goes when the process ends, however it ends; and when *any* handle of the file is
        closed in this process, which is why nothing else opens it.
        """
        fd = self.open(path, create=True)
        if system.take_lock(fd, is_for_java=True):
            return fd
        self.close(fd)
        return None


REAL_FILES: Final = Files()
