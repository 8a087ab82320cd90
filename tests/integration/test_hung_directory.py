"""One of two disks hangs: its own partitions wait, the other directory's are served as ever."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support.in_process import InProcessBroker, ManualClock, RawClient, batch_of
from tests.support.record_requests import produce
from tests.support.watched_files import WatchedFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CHECKPOINT_MS = 60_000
RETENTION_CHECK_MS = 300_000
CHANGES_OF_THE_LOOP = {"open", "pwritev", "size_at"}
"""Calls of an append: the system takes the bytes without the disk."""


class Rig:
    """A broker with the directories `quick` and `hung`, and a clock that the test moves."""

    def __init__(self, running: InProcessBroker, files: WatchedFiles, clock: ManualClock) -> None:
        self.running = running
        self.files = files
        self.clock = clock
        self.quick, self.hung = (directory.path for directory in running.broker.logs.directories)

    async def create(self, name: str, path: str, **configs: str) -> None:
        """Create a topic with one partition in this directory."""
        self.running.broker.logs.prefer(TopicPartition(name, 0), path)
        await self.running.create_topic(name, **configs)

    def checkpoint(self) -> str:
        """Return the recovery points of the quick directory on the disk, "" without any."""
        path = Path(self.quick, "recovery-point-offset-checkpoint")
        return path.read_text() if path.exists() else ""


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    files, clock = WatchedFiles(), ManualClock()
    settings = {"log.dirs": f"{tmp_path}/quick,{tmp_path}/hung"}
    async with InProcessBroker(tmp_path, settings, clock=clock, files=files) as running:
        try:
            yield Rig(running, files, clock)
        finally:
            files.release()


async def produced(client: RawClient, topic: str, value: bytes = b"v") -> int:
    """Return the error code of one record for `topic`."""
    answer = await client.call(produce(batch_of(value), topic=topic), 9)
    return int(answer.responses[0].partition_responses[0].error_code)


async def test_a_disk_that_hangs_stops_its_own_partitions_only(rig: Rig) -> None:
    running, files = rig.running, rig.files
    await rig.create("slow", rig.hung, flush_messages="1")
    await rig.create("synced", rig.quick, flush_messages="1")
    await rig.create("rolled", rig.quick, segment_bytes="200", retention_ms="1000")
    await rig.create("left", rig.quick)
    async with await running.connect() as client, await running.connect() as waiting:
        files.hold(rig.hung)
        files.calls.clear()
        stuck = asyncio.create_task(produced(waiting, "slow"))
        assert await files.is_held()

        assert await produced(client, "synced") == 0  # an fsync
        for _ in range(10):
            assert await produced(client, "rolled", b"x" * 90) == 0
        log = running.partitions.get("rolled", 0).log
        assert len(log.segments) > 1

        old_checkpoint = rig.checkpoint()
        rig.clock.advance(CHECKPOINT_MS)
        rig.clock.advance(RETENTION_CHECK_MS)
        assert log.log_start_offset > 0  # retention
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name="synced", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)]
                )
            ],
            timeout_ms=60_000,
        )
        answer = await client.call(request, 2)
        assert answer.topics[0].partitions[0].error_code == 0

        await rig.create("made", rig.quick)
        assert await produced(client, "made") == 0
        await running.broker.cluster.delete_topic("left")  # waits for its directory's worker
        assert rig.checkpoint() != old_checkpoint
        assert not stuck.done()
        assert files.calls_below(rig.hung) <= CHANGES_OF_THE_LOOP

        files.release()
        assert await stuck == 0


async def test_a_disk_that_hangs_does_not_hold_up_that_it_is_taken_offline(rig: Rig) -> None:
    """Some of its files are being made when it fails: the loop does not wait for them."""
    running, files = rig.running, rig.files
    await rig.create("slow", rig.hung)
    await rig.create("quick", rig.quick)
    async with await running.connect() as client:
        files.hold(rig.hung)
        assert await produced(client, "slow") == 0
        assert await files.is_held()
        lost = running.broker.logs.fail_directory(rig.hung)
        assert lost == [TopicPartition("slow", 0)]
        assert await produced(client, "quick") == 0
