"""Directories of property tests: in memory, since these tests judge no disk."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from tests.support.memory import memory

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def temporary_directories_in_memory() -> Iterator[None]:
    """Put files of `tempfile` into memory: a rule of hypothesis takes no fixture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", memory())
        yield
