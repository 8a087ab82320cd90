"""The loop's thread waits for no fsync, under any request: an audit of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.files import REAL_FILES
from minibroker.kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support.cold_files import ColdFiles
from tests.support.in_process import START_MS, InProcessBroker, ManualClock, RawClient, batch_of
from tests.support.record_requests import asking, first, part, produce
from tests.support.watched_files import WatchedFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

CHECKPOINT_MS = 60_000
MAX_TIMESTAMP = -3
SYNC_MS = 10_000
ALLOWED = {
    # Appends: the system's memory takes the bytes. A file is opened once.
    *("pwritev", "open", "size_at"),
    # Reads of what is in memory: small ones, and maps of the others. A new log has no id yet.
    *("pread", "map", "open_to_read", "read_all"),
    # Changes of names: a topic's directories, segments that retention takes.
    *("make_directory", "replace", "list_files"),
    "close",
}
"""Calls of the loop's thread while the broker serves.

There is no fsync, no removal, no new file but an append's, no read of another file's content.
"""


class Rig:
    """A broker, what its loop calls, and its clock."""

    def __init__(self, running: InProcessBroker, files: WatchedFiles, clock: ManualClock) -> None:
        self.running = running
        self.files = files
        self.clock = clock

    def forbidden(self) -> list[tuple[str, str]]:
        """Return the calls of the loop's thread since the last look that may wait for the disk."""
        calls, self.files.calls = self.files.calls, []
        return [(call.name, call.path) for call in calls if call.name not in ALLOWED]

    async def settle(self) -> None:
        """Wait until the workers have done all tasks so far."""
        path = self.running.broker.logs.directories[0].path
        done = self.running.broker.workers.files.of(path)
        future = self.running.broker.failure.get_loop().create_future()
        done.run_then(lambda: None, future.set_result)
        await future


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    files, clock = WatchedFiles(), ManualClock()
    async with InProcessBroker(tmp_path, clock=clock, files=files) as running:
        files.calls.clear()  # the start serves nobody yet
        yield Rig(running, files, clock)


async def send(client: RawClient, value: bytes, sequence: int = -1) -> None:
    header = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
    batch = batch_of(value, **(header if sequence >= 0 else {}))
    answer = await client.call(produce(batch), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def test_appends_rolls_fetches_syncs_and_retention_wait_for_no_disk(rig: Rig) -> None:
    await rig.running.create_topic(
        "t", segment_bytes="1000", flush_messages="1", retention_bytes="2000"
    )
    async with await rig.running.connect() as client:
        for sequence in range(30):
            await send(client, bytes(100), sequence)  # a snapshot of the producer at every roll
        assert len(rig.running.partitions.get("t", 0).log.segments) > 3
        assert first(await client.call(asking(part()), 11)).records
        for elapsed_ms in (SYNC_MS, CHECKPOINT_MS, 10 * CHECKPOINT_MS):
            rig.clock.advance(elapsed_ms)
            await rig.settle()
        assert rig.running.partitions.get("t", 0).log.log_start_offset > 0
    assert rig.forbidden() == []


async def test_a_topic_that_is_made_again_waits_for_no_disk(rig: Rig) -> None:
    """Its name was in the checkpoints: the worker removed it from them at the deletion."""
    await rig.running.create_topic("t")
    async with await rig.running.connect() as client:
        await send(client, b"old")
        rig.clock.advance(CHECKPOINT_MS)
        await rig.settle()
        (directory,) = rig.running.broker.logs.directories
        checkpoint = directory.path + "/recovery-point-offset-checkpoint"
        assert b"\nt 0 " in rig.files.read_all(checkpoint)
        await rig.running.broker.cluster.delete_topic("t")
        assert b"\nt 0 " not in rig.files.read_all(checkpoint)
        await rig.running.create_topic("t")
        await send(client, b"new")
    assert rig.forbidden() == []


@pytest.fixture
async def restarted(tmp_path: Path) -> AsyncIterator[Rig]:
    """A broker that finds topic "t" of a producer, in several segments, and has looked at none."""
    async with InProcessBroker(tmp_path) as old_run:
        await old_run.create_topic("t", segment_bytes="1000")
        async with await old_run.connect() as client:
            for sequence in range(30):
                await send(client, bytes(100), sequence)
    files, clock = ColdFiles(), ManualClock()
    async with InProcessBroker(tmp_path, clock=clock, files=files) as running:
        files.calls.clear()
        log = running.partitions.get("t", 0).log
        assert len(log.segments) > 3
        files.drop(log.directory)
        yield Rig(running, files, clock)


READS = ("pread", "map", "open", "open_to_read", "read_all", "list_files", "size_of")


def reads(rig: Rig) -> list[tuple[str, str]]:
    """Reads of a file of topic "t" on the loop's thread since the last look; but for those of the
    transaction index, of which most segments have none.
    """
    calls, rig.files.calls = rig.files.calls, []
    return [
        (call.name, call.path)
        for call in calls
        if call.name in READS and "/t-0" in call.path and not call.path.endswith(".txnindex")
    ]


async def test_the_first_append_of_a_producer_waits_for_no_snapshot(restarted: Rig) -> None:
    async with await restarted.running.connect() as client:
        await send(client, b"next", 30)
        await send(client, b"next", 31)
        assert [call for call in reads(restarted) if call[1].endswith(".snapshot")] == []
        assert ("list_files", restarted.running.partitions.get("t", 0).log.directory) not in reads(
            restarted
        )
    (entry,) = restarted.running.partitions.get("t", 0).producers().values()
    assert entry.last_sequence == 31


async def test_a_repeated_batch_is_known_to_the_first_append(restarted: Rig) -> None:
    log = restarted.running.partitions.get("t", 0).log
    async with await restarted.running.connect() as client:
        await send(client, bytes(100), 29)
    assert log.log_end_offset == 30


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_the_first_fetch_waits_for_no_disk(restarted: Rig, isolation_level: int) -> None:
    request = asking(part())
    request.isolation_level = isolation_level
    async with await restarted.running.connect() as client:
        answer = first(await client.call(request, 11))
    assert answer.records
    assert answer.last_stable_offset == 30
    assert reads(restarted) == []


@pytest.mark.parametrize(
    ("timestamp", "offset"), [(START_MS, 0), (START_MS + 1, -1), (MAX_TIMESTAMP, 0)]
)
async def test_a_look_up_by_time_waits_for_no_disk(
    restarted: Rig, timestamp: int, offset: int
) -> None:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1,
        topics=[
            ListOffsetsTopic(
                name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
            )
        ],
    )
    async with await restarted.running.connect() as client:
        answer = await client.call(request, 7)
    partition = answer.topics[0].partitions[0]
    assert (partition.error_code, partition.offset) == (0, offset)
    assert reads(restarted) == []


async def test_a_look_up_in_a_segment_without_indexes_waits_for_no_disk(restarted: Rig) -> None:
    """They are made again, on the worker."""
    segment = restarted.running.partitions.get("t", 0).log.segments.first
    paths = [segment.path(suffix) for suffix in (".index", ".timeindex")]
    for path in paths:
        REAL_FILES.write_atomically(path, b"odd")
    async with await restarted.running.connect() as client:
        answer = first(await client.call(asking(part(offset=1)), 11))
    assert answer.records
    assert reads(restarted) == []
    assert [REAL_FILES.size_at(path) for path in paths] == [0, 12]


async def test_producers_are_described_without_a_wait_for_the_disk(restarted: Rig) -> None:
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    async with await restarted.running.connect() as client:
        answer = await client.call(request, 0)
    (producer,) = answer.topics[0].partitions[0].active_producers
    assert (producer.producer_id, producer.last_sequence) == (7, 29)
    assert reads(restarted) == []


async def test_a_sync_reads_the_producers_on_the_worker(restarted: Rig) -> None:
    """Nobody asked for them so far: a producer without an id appends, and the log is synced."""
    log = restarted.running.partitions.get("t", 0).log
    async with await restarted.running.connect() as client:
        await send(client, b"plain")
    reads(restarted)
    restarted.clock.advance(SYNC_MS)
    await restarted.settle()
    assert log.recovery_point == 31
    assert f"{31:020d}.snapshot" in REAL_FILES.list_files(log.directory)
    assert [call for call in reads(restarted) if call[1].endswith(".snapshot")] == []
