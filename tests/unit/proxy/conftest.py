"""Every test of this folder runs on both loops."""

from __future__ import annotations

from tests.support import loops

pytest_asyncio_loop_factories = loops.pytest_asyncio_loop_factories
