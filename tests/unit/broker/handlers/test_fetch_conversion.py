"""Fetch v0 to v3 and what produces for it: formats by version, refusals, large answers, waiting."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers.reads import conversion
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.records.conversion import down_convert
from tests.support.in_process import batch_of
from tests.support.message_sets import magics, message, parse, plain
from tests.support.record_requests import asking, part, produce, result
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from minibroker.kafka.protocol.messages.fetch import FetchRequest
    from tests.support.in_process import InProcessBroker, RawClient

EMPTY = b""


async def fetched(client: RawClient, version: int, request: FetchRequest | None = None) -> Any:
    """The answer for the only partition."""
    (topic,) = (await client.call(request or asking(part()), version)).responses
    (partition,) = topic.partitions
    return partition


@pytest.mark.parametrize(
    ("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (9, 2), (12, 2)]
)
@pytest.mark.parametrize("stored_magic", [0, 2])
async def test_the_version_says_which_format_comes(
    client: RawClient, version: int, magic: int, stored_magic: int
) -> None:
    records = plain(b"a", b"b", magic=stored_magic) if stored_magic < 2 else batch_of(b"a", b"b")
    assert (await result(client, produce(records), 2 if stored_magic < 2 else 9)).error_code == 0
    partition = await fetched(client, version)
    assert partition.error_code == 0
    data = bytes(partition.records)
    assert magics(data) == ([2] if magic == 2 else [magic] * 2)
    if magic < 2:
        assert [(m.offset, m.value) for m in parse(data)] == [(0, b"a"), (1, b"b")]


@pytest.mark.parametrize("records", [b"", message(b"x")[:-1]])
async def test_nothing_to_append_is_no_error_before_version_3(
    client: RawClient, records: bytes
) -> None:
    answer = await result(client, produce(records), 2)
    assert (answer.error_code, answer.base_offset) == (0, -1)
    assert (await result(client, produce(records), 3)).error_code == ErrorCode.INVALID_RECORD
    assert (await result(client, produce(None), 2)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_conversion_can_be_forbidden(running: InProcessBroker) -> None:
    await running.create_topic("new", message_downconversion_enable="false")
    await running.create_topic(
        "old", message_downconversion_enable="false", message_format_version="0.10.2"
    )
    expected = {("new", 0): 35, ("new", 2): 35, ("new", 4): 0}
    expected |= {("old", 0): 35, ("old", 2): 0, ("old", 4): 0}
    async with await running.connect() as client:
        for topic in ("new", "old"):
            assert (await result(client, produce(message(b"x"), topic=topic), 2)).error_code == 0
        for (topic, version), code in expected.items():
            partition = await fetched(client, version, asking(part(), topic=topic))
            assert partition.error_code == code
            assert partition.high_watermark == (-1 if code else 1)
            assert bool(partition.records) is not bool(code)


async def test_zstd_is_for_version_10(running: InProcessBroker) -> None:
    await running.create_topic("zstd", compression_type="zstd")
    async with await running.connect() as client:
        assert (await result(client, produce(batch_of(b"x"), topic="zstd"))).error_code == 0
        assert (await result(client, produce(batch_of(b"x", codec="zstd")))).error_code == 0
        for version in (0, 3, 4, 9):
            partition = await fetched(client, version, asking(part(), topic="zstd"))
            assert partition.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert (await fetched(client, 10, asking(part(), topic="zstd"))).error_code == 0
        partition = await fetched(client, 3)
        assert partition.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert (await fetched(client, 4)).error_code == 0


async def test_much_is_converted_beside_the_loop(
    client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def watched(*arguments: Any) -> memoryview:
        threads.append(threading.current_thread())
        return down_convert(*arguments)

    monkeypatch.setattr(conversion, "down_convert", watched)
    values = [bytes([n]) * 50_000 for n in range(4)]
    for value in values:
        await result(client, produce(batch_of(value)))
    partition = await fetched(client, 2)
    assert [m.value for m in parse(bytes(partition.records))] == values
    await fetched(client, 2, asking(part(offset=3)))
    assert [thread is threading.main_thread() for thread in threads] == [False, True]


async def test_old_consumers_wait_as_others_do(running: InProcessBroker, client: RawClient) -> None:
    request = asking(part(), max_wait_ms=20_000)
    waiting = asyncio.create_task(fetched(client, 2, request))
    partition = running.partitions.find("t", 0)
    assert partition is not None
    await eventually(lambda: partition.waiters)
    async with await running.connect() as other:
        await result(other, produce(batch_of(b"came" * 30_000)))
    assert [m.value for m in parse(bytes((await waiting).records))] == [b"came" * 30_000]


@pytest.mark.parametrize("version", [0, 2, 4, 9])
async def test_a_wait_takes_no_place_of_a_task_and_ends_with_its_connection(
    running: InProcessBroker, version: int
) -> None:
    """Otherwise `queued.max.requests` old consumers would keep others from making a topic."""
    partition = running.partitions.get("t", 0)
    async with await running.connect() as client:
        client.send(asking(part(), max_wait_ms=60_000), version)
        await eventually(lambda: partition.waiters)
        await eventually(lambda: running.server.connections._tasks_running == 0)
    await eventually(lambda: not partition.waiters)


async def test_a_batch_larger_than_the_limit(client: RawClient) -> None:
    """Up to version 2 nothing comes, as from Kafka; version 3 gets the first batch whole."""
    await result(client, produce(batch_of(b"x" * 1000)))
    small = asking(part(max_bytes=100), max_bytes=100)
    assert bytes((await fetched(client, 2, small)).records) == EMPTY
    assert [m.value for m in parse(bytes((await fetched(client, 3, small)).records))] == [
        b"x" * 1000
    ]
