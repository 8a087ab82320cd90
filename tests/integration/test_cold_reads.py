"""A lagging consumer, or a coordinator that loads its journal, reads pages that are not in memory:
the loop never waits for them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.groups.offsets import CommittedOffset
from minibroker.broker.slices import run_all
from minibroker.kafka.records.batch import iterate_headers
from tests.support.cold_files import ColdFiles
from tests.support.evidence import MARKED
from tests.support.in_process import InProcessBroker, RawClient, batch_of
from tests.support.record_requests import asking, first, part, produce
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

VALUE_BYTES = 50_000
BATCHES = 40


@pytest.fixture
def files() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
async def running(tmp_path: Path, files: ColdFiles) -> AsyncIterator[InProcessBroker]:
    async with InProcessBroker(tmp_path, files=files) as running:
        try:
            yield running
        finally:
            files.release()


async def fill(running: InProcessBroker, client: RawClient, **configs: str) -> str:
    """Return the directory of a topic `t` with many large batches in several segments."""
    await running.create_topic("t", segment_bytes="500000", **configs)
    for _ in range(BATCHES):
        answer = await client.call(produce(batch_of(bytes(VALUE_BYTES))), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
    log = running.partitions.get("t", 0).log
    assert len(log.segments) > 3
    return log.directory


async def read_all(client: RawClient, max_bytes: int) -> list[int]:
    """Return base offsets of all batches of `t`, as a consumer reads them."""
    offsets: list[int] = []
    offset = 0
    while offset < BATCHES:
        place = part(offset=offset, max_bytes=max_bytes)
        records = first(await client.call(asking(place), 11)).records
        assert records
        for _, header in iterate_headers(memoryview(records)):
            offsets.append(header.base_offset)
            offset = header.last_offset + 1
    return offsets


@pytest.mark.parametrize("max_bytes", [10_000, 1 << 20], ids=["copied", "mapped"])
@pytest.mark.parametrize("is_restarted", [False, True], ids=["known", "restarted"])
async def test_a_lagging_consumer_gets_everything_and_the_loop_waits_for_no_disk(
    running: InProcessBroker, files: ColdFiles, *, max_bytes: int, is_restarted: bool
) -> None:
    async with await running.connect() as client:
        directory = await fill(running, client)
    if is_restarted:
        await running.stop()
        await running.__aenter__()
    async with await running.connect() as client:
        files.drop(directory)
        assert await read_all(client, max_bytes) == list(range(BATCHES))
    assert [call for call in files.waits if call.path.endswith((".log", "index"))] == []


async def test_reads_from_memory_do_not_wait_for_cold_reads(
    running: InProcessBroker, files: ColdFiles
) -> None:
    async with await running.connect() as lagging, await running.connect() as client:
        directory = await fill(running, client)
        await running.create_topic("u")
        files.drop(directory)
        files.hold(directory)
        cold = asyncio.create_task(read_all(lagging, 1 << 20))
        assert await files.is_held()
        answer = await client.call(produce(batch_of(b"v"), topic="u"), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert first(await client.call(asking(part(), topic="u"), 11)).records
        assert not cold.done()
        files.release()
        assert await cold == list(range(BATCHES))


async def test_a_cold_read_does_not_wait_for_the_other_work_of_its_directory(
    running: InProcessBroker, files: ColdFiles
) -> None:
    """Ten thousand new partitions give the worker ten thousand fsyncs at once."""
    path, may_go_on = running.broker.logs.directories[0].path, threading.Event()

    def work() -> None:
        assert may_go_on.wait(60)

    async with await running.connect() as client:
        directory = await fill(running, client)
        files.drop(directory)
        running.broker.workers.files.of(path).run_later(work)
        try:
            async with asyncio.timeout(30):
                assert await read_all(client, 1 << 20) == list(range(BATCHES))
        finally:
            may_go_on.set()


async def test_pages_that_are_dropped_again_and_again_end_in_a_read_that_waits(
    running: InProcessBroker, files: ColdFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await running.connect() as client:
        directory = await fill(running, client)
        files.drop(directory)
        monkeypatch.setattr(ColdFiles, "pread_resident", lambda *_: None)
        assert await read_all(client, 1 << 20) == list(range(BATCHES))


async def test_a_coordinator_loads_what_is_not_in_memory_and_the_loop_waits_for_no_disk(
    running: InProcessBroker, files: ColdFiles
) -> None:
    groups = running.broker.services.groups
    topic = await groups.journal.ensure_topic()
    await running.create_topic("t", 1)
    index = groups.journal.partition_of("g")
    commit = CommittedOffset(5, -1, "m" * 3_000, 0)
    for partition in range(200):
        commits = [(("g", "t", partition), commit)]
        shard = groups.shard("g")
        shard.commit_offsets("g", commits, run_all(shard.commit_batch(commits)))
    groups.journal.flush()
    files.drop(running.partitions.get(topic.name, index).log.directory)
    groups.journal.on_topic_deleted(topic, MARKED)
    groups.journal.on_topic_created(topic)
    await eventually(lambda: groups.journal.is_active(index))
    assert groups.shard("g").offsets.committed_count == 200
    assert files.waits == []
