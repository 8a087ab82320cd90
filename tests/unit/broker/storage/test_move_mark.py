"""The mark of a moved log says where the log starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_move import encode_mark, mark_path, read_mark


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
