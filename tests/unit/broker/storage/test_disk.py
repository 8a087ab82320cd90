"""The door to the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.storage.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path


def test_removing_an_absent_file_is_no_error(tmp_path: Path) -> None:
    Disk().remove(f"{tmp_path}/absent")
