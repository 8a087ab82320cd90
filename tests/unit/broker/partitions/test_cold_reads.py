"""Readers wait until the workers of all directories have read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.partitions.cold_reads import ColdError, warm
from minibroker.broker.storage.disk import Disk
from minibroker.broker.worker import Workers
from tests.support.runners import HeldRunner

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_reader_waits_for_every_range(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    runner = HeldRunner()
    disk = Disk(workers=Workers.by(runner))
    cold = []
    for position, size in ((0, 4), (4, 3)):
        with disk.resident_only, pytest.raises(ColdError) as caught:
            disk.pread(str(path), size, position)
        cold.append(caught.value)
    waiting = asyncio.create_task(warm(cold))
    await asyncio.sleep(0)  # it begins
    assert len(runner.work) == 2
    for task, done in runner.work:
        assert not waiting.done()
        task()
        done(None)
    await asyncio.wait_for(waiting, 60)
    assert disk.handles.find(str(path)) is not None
    disk.close()
