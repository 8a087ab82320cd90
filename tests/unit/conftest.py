"""Directories of unit tests: in memory, since these tests judge no disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.memory import directory_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """An empty directory."""
    with directory_in_memory(request) as directory:
        yield directory
