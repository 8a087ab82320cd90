"""DeleteRecords: where partitions start, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.handlers import delete_records
from minibroker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support.record_requests import asking, earliest, fill, first, part

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, ManualClock, RawClient

CHECK_MS = 1_000
DELAY_MS = 5_000


@pytest.fixture
def settings() -> dict[str, str]:
    return {
        "log.retention.check.interval.ms": str(CHECK_MS),
        "log.initial.task.delay.ms": str(CHECK_MS),
        "log.segment.delete.delay.ms": str(DELAY_MS),
    }


def request_for(offsets: dict[int, int], name: str = "t") -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=offset)
                    for index, offset in offsets.items()
                ],
            )
        ],
        timeout_ms=1000,
    )


async def delete(
    client: RawClient, offset: int, version: int = 2, *, name: str = "t", index: int = 0
) -> Any:
    answer = await client.call(request_for({index: offset}, name), version)
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("version", range(3))
async def test_the_partition_starts_there(client: RawClient, version: int) -> None:
    await fill(client, b"a", b"b", b"c")
    done = await delete(client, 2, version)
    assert (done.error_code, done.low_watermark) == (0, 2)
    assert await earliest(client) == 2
    found = first(await client.call(asking(part(offset=1)), 12))
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert first(await client.call(asking(part(offset=2)), 12)).log_start_offset == 2
    # Going back changes nothing and is no error.
    assert (await delete(client, 1, version)).low_watermark == 2


async def test_minus_one_is_the_high_watermark(client: RawClient) -> None:
    await fill(client, b"a", b"b", b"c")
    assert (await delete(client, -1)).low_watermark == 3
    assert await earliest(client) == 3


@pytest.mark.parametrize("offset", [4, -2])
async def test_offsets_that_do_not_exist(client: RawClient, offset: int) -> None:
    await fill(client, b"a", b"b", b"c")
    done = await delete(client, offset)
    assert (done.error_code, done.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert await earliest(client) == 0


@pytest.mark.parametrize(("name", "index"), [("nowhere", 0), ("t", 9), ("t", -1)])
async def test_places_that_do_not_exist(client: RawClient, name: str, index: int) -> None:
    done = await delete(client, 0, name=name, index=index)
    assert (done.error_code, done.low_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


async def test_a_topic_that_is_only_compacted_refuses(
    running: InProcessBroker, client: RawClient
) -> None:
    await running.create_topic("compacted", cleanup_policy="compact")
    await running.create_topic("both", cleanup_policy="compact,delete")
    assert (await delete(client, 0, name="compacted")).error_code == ErrorCode.POLICY_VIOLATION
    assert (await delete(client, 0, name="both")).error_code == 0


async def test_internal_topics_refuse(running: InProcessBroker, client: RawClient) -> None:
    await running.create_topic("__consumer_offsets", cleanup_policy="compact")
    done = await delete(client, 0, name="__consumer_offsets")
    assert done.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_a_partition_named_twice_goes_by_the_last(client: RawClient) -> None:
    await fill(client, b"a", b"b", b"c")
    request = request_for({0: 1})
    request.topics += request_for({0: 2}).topics
    answer = await client.call(request, 2)
    [topic] = answer.topics
    [result] = topic.partitions
    assert result.low_watermark == 2


async def test_the_files_below_it_go_with_the_next_check_and_after_the_delay(
    running: InProcessBroker, client: RawClient, clock: ManualClock
) -> None:
    log = running.partitions.get("t", 0).log
    for _ in range(5):
        await fill(client, b"x")
        log.roll()
    assert (await delete(client, 4)).low_watermark == 4
    old = [Path(segment.log_path) for segment in list(log.segments)[:4]]
    deleted = [path.with_suffix(".log.deleted") for path in old]
    assert all(path.exists() for path in old)
    clock.advance(CHECK_MS)
    assert log.segments.base_offsets == [4, 5]
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in deleted)
    clock.advance(DELAY_MS)
    running.broker.directory_workers.close()  # what it was asked to do is done then
    assert not any(path.exists() for path in deleted)


def test_one_error_for_all() -> None:
    answer = delete_records.error_response(
        request_for({0: 1, 1: 1}), 2, ErrorCode.UNKNOWN_SERVER_ERROR, None
    )
    assert [result.error_code for result in answer.topics[0].partitions] == [-1, -1]
