"""The saved ZooKeeper session: kept, replaced, private, and ignored when broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.session_file import forget_session, load_session, save_session

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("session_id", [1, 2**62, -(2**62)])
def test_session_is_kept_and_replaced(tmp_path: Path, session_id: int) -> None:
    path = tmp_path / "session"
    save_session(path, 7, b"old")
    save_session(path, session_id, bytes(range(16)))
    assert load_session(path) == (session_id, bytes(range(16)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["session"]


def test_session_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "session"
    save_session(path, 7, b"x")
    forget_session(path)
    forget_session(path)
    assert load_session(path) is None


@pytest.mark.parametrize("data", [b"", b"1", b"x y", b"1 2 3", b"1 zz", b"\xff 00"])
def test_broken_file_is_no_session(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "session"
    path.write_bytes(data)
    assert load_session(path) is None
