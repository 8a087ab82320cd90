"""A map that keeps its bytes although its file is about to be cut.

Answers in flight are slices of maps of a segment. A touch of a map beyond the end of its file ends
the process (SIGBUS). So before a segment is cut, the bytes of such a map are copied into memory of
this process, which takes the place of the map at the same address: slices of it need not know. It
happens where a truncation meets an answer that a slow consumer has not taken yet.

Source: none. Kafka sends from the file: what was cut is missing there.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Final

_MAP_FIXED: Final = 0x10
"""On Linux and macOS; Python's `mmap` does not name it."""


class _Buffer(ctypes.Structure):
    """CPython's Py_buffer."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


def keep(mapped: mmap.mmap) -> None:
    """Make what `mapped` shows memory of this process; its file may be cut then.

    Nobody reads the map meanwhile: slices are read on the loop, which calls this. Raises OSError;
    the map is as it was then.
    """
    content = bytes(mapped)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    )
    buffer = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(mapped), ctypes.byref(buffer), 0)
    try:
        address = libc.mmap(
            buffer.buf,
            len(content),
            mmap.PROT_READ | mmap.PROT_WRITE,
            mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED,
            -1,
            0,
        )
        if address != buffer.buf:
            raise OSError(ctypes.get_errno(), f"no memory to keep {len(content)} bytes of a map")
        ctypes.memmove(address, content, len(content))
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
