"""Directories of crash tests: on the disk where processes are killed, else in memory.

A power cut and a call that fails are simulated on real files (`tests.support.faulty_files`): it is
the simulation that decides what is left, whatever the files lie on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.memory import directory_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ON_DISK = {"test_kill", "test_kill_offsets", "test_topic_deletion"}


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """An empty directory."""
    if request.path.stem in ON_DISK:
        yield tmp_path
        return
    with directory_in_memory(request) as directory:
        yield directory
