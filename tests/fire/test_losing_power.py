"""A process that loses power keeps what it has synced, and nothing that it has not."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.fire.losing_power import EXIT_CODE

if TYPE_CHECKING:
    from pathlib import Path

WORK = """
import sys
from tests.fire.losing_power import LosingFiles, lose_power
from tests.support.faulty_files import keep_nothing

root = sys.argv[1]
files = LosingFiles(root)
for name in ("synced", "named"):
    fd = files.open(f"{root}/{name}", create=True)
    files.pwritev(fd, [b"before"], 0)
    if name == "synced":
        files.sync(fd)
    files.sync_directory(root)
    files.pwritev(fd, [b" and after"], 6)
files.create(f"{root}/unnamed")
lose_power(files, keep_nothing, keep_nothing)
"""


def test_bytes_and_names_that_were_not_synced_are_gone_with_the_power(tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    ended = subprocess.run([sys.executable, "-c", WORK, str(root)], check=False)
    assert ended.returncode == EXIT_CODE
    assert {file.name: file.read_bytes() for file in root.iterdir()} == {
        "synced": b"before",
        "named": b"",
    }
