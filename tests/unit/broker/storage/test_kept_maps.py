"""A map outlives the end of its file, and is closed like any other."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from minibroker.broker.storage import kept_maps

SIZE = 5 * mmap.PAGESIZE + 77


def test_slices_of_a_kept_map_have_the_bytes_that_were_cut(tmp_path: Path) -> None:
    path = tmp_path / "f"
    content = os.urandom(SIZE)
    path.write_bytes(content)
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), SIZE, mmap.MAP_SHARED, mmap.PROT_READ)
        view = memoryview(mapped)[mmap.PAGESIZE :]
        kept_maps.keep(mapped)
        file.truncate(10)
        file.seek(10)
        file.write(b"new" * SIZE)
    assert bytes(view) == content[mmap.PAGESIZE :]
    view.release()
    mapped.close()
