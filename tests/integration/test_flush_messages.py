"""`flush.messages=1` with two producers: every acknowledged record can be read at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.records.batch import iterate_headers
from tests.support.in_process import InProcessBroker, RawClient, batch_of
from tests.support.record_requests import asking, first, part, produce
from tests.support.watched_files import WatchedFiles

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 5


async def produced(client: RawClient, value: bytes) -> int:
    """Return the offset of an acknowledged record."""
    answer = await client.call(produce(batch_of(value)), 9)
    result = answer.responses[0].partition_responses[0]
    assert result.error_code == 0
    return int(result.base_offset)


async def read_to(client: RawClient) -> int:
    """Return up to which offset (not included) a consumer gets records that does not wait."""
    records = first(await client.call(asking(part()), 11)).records
    return max((header.last_offset + 1 for _, header in iterate_headers(records)), default=0)


@pytest.mark.parametrize("begun", [1, 2], ids=["one by one", "side by side"])
async def test_a_consumer_sees_each_record_once_it_is_acknowledged(
    tmp_path: Path, begun: int
) -> None:
    files = WatchedFiles()
    async with InProcessBroker(tmp_path, files=files) as running:
        await running.create_topic("t", flush_messages="1")
        directory = running.partitions.get("t", 0).log.directory
        clients = [await running.connect() for _ in range(3)]
        reader = clients.pop()
        for turn in range(ROUNDS):
            files.hold(directory)
            sent = [
                asyncio.create_task(produced(client, b"%d" % turn)) for client in clients[:begun]
            ]
            assert await files.is_held()
            if begun == 1:
                sent.append(asyncio.create_task(produced(clients[1], b"behind")))
            assert await read_to(reader) <= 2 * turn
            files.release()
            for answered in asyncio.as_completed(sent):
                assert await is_readable_once(reader, answered)
        for client in (*clients, reader):
            await client.close()


async def is_readable_once(reader: RawClient, answered: asyncio.Future[int]) -> bool:
    """Return whether a record can be read as soon as it is acknowledged."""
    offset = await answered
    return await read_to(reader) > offset
