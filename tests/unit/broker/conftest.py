"""Fixtures of the broker's unit tests: storage that a test leaves open is closed behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.open_storage import storage_closed

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _closed_storage() -> Iterator[None]:
    with storage_closed():
        yield
