"""A process with many open files, for the tests of clients."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def high_descriptor() -> Iterator[int]:
    """Yield a descriptor that is free, and more than select() takes."""
    descriptor = 2_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, descriptor + 100), hard))
    yield descriptor
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
