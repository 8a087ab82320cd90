"""Fetch of many partitions: read and answered in slices, as if it were done at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.handlers import fetch as fetch_handler
from minibroker.broker.handlers.reads import fetch_pass
from minibroker.broker.server import handling
from tests.support.in_process import START_MS, batch_of
from tests.support.record_requests import asking, id_of, part, parts_of_answer, produce_values
from tests.support.waiting import eventually
from tests.unit.broker.handlers.short_way import answer_to
from tests.unit.broker.partitions.conftest import Claim

if TYPE_CHECKING:
    from minibroker.broker.handlers.reads.fetch_pass import FetchPass
    from minibroker.kafka.protocol.messages.fetch import FetchResponse
    from tests.support.in_process import InProcessBroker, RawClient

COUNT = 8


@pytest.fixture
def tiny_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every partition is a step, and every step a slice."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    for module in (fetch_handler, fetch_pass):
        monkeypatch.setattr(module, "STEP_PARTITIONS", 1)


@pytest.fixture
async def many(running: InProcessBroker, client: RawClient) -> str:
    """A topic in which every second partition has a batch, one of them a large one."""
    await running.create_topic("many", COUNT)
    for index in range(0, COUNT, 2):
        value = b"x" * (5000 if index == 4 else 50)
        await client.call(produce_values("many", value, index=index), 9)
    return "many"


@pytest.mark.parametrize("version", [4, 9, 10, 12, 13, 18])
async def test_the_answer_is_the_one_of_a_single_slice(
    running: InProcessBroker,
    client: RawClient,
    many: str,
    version: int,
    request: pytest.FixtureRequest,
) -> None:
    parts = [part(index, offset=index % 3 % 2) for index in range(COUNT + 2)]
    whole_fetch = asking(*parts, topic=many, topic_id=id_of(running, many), max_bytes=5200)
    at_once = await answer_to(client, whole_fetch, version)
    request.getfixturevalue("tiny_slices")
    assert await answer_to(client, whole_fetch, version) == at_once


@pytest.mark.pure("replaces fetch._respond_in_slices")
@pytest.mark.usefixtures("tiny_slices")
async def test_records_that_come_between_two_slices_are_news(
    running: InProcessBroker, client: RawClient, many: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [part(index, offset=1 - index % 2) for index in range(COUNT)]
    session_id = (await client.call(asking(*parts, topic=many, session=(0, 0)), 12)).session_id
    respond = fetch_handler._respond_in_slices

    async def append_before(fetch: FetchPass) -> FetchResponse:
        partition = running.partitions.get(many, 2)
        batch = memoryview(batch_of(b"new"))
        partition.append(batch, 1, START_MS, Claim(), origin="coordinator")
        running.partitions.commit()
        return await respond(fetch)

    with monkeypatch.context() as patched:
        patched.setattr(fetch_handler, "_respond_in_slices", append_before)
        answer = await client.call(asking(topic=many, session=(session_id, 1)), 12)
    assert parts_of_answer(answer) == {}
    assert set(
        parts_of_answer(await client.call(asking(topic=many, session=(session_id, 2)), 12))
    ) == {2}


@pytest.mark.parametrize("at_once_max", [1, COUNT])
@pytest.mark.usefixtures("tiny_slices")
async def test_a_wait_ends_with_records_and_with_its_connection(
    running: InProcessBroker,
    client: RawClient,
    many: str,
    at_once_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_handler, "AT_ONCE_MAX", at_once_max)
    parts = [part(index, offset=1 - index % 2) for index in range(COUNT)]
    request = asking(*parts, topic=many, max_wait_ms=60_000)
    watched = running.partitions.get(many, COUNT - 1)
    client.send(request, 12)
    await eventually(lambda: watched.waiters)
    # It takes no place of a task (`queued.max.requests`), or polls would keep others waiting.
    await eventually(lambda: not running.server.connections._tasks_running)
    async with await running.connect() as other:
        await other.call(produce_values(many, b"new", index=COUNT - 1), 9)
        assert parts_of_answer(await client.receive())[COUNT - 1][1] == 1
        parts[COUNT - 1].fetch_offset = 1
        other.send(request, 12)
        await eventually(lambda: watched.waiters)
    await eventually(lambda: not watched.waiters)


@pytest.mark.pure("replaces fetch._as_future")
@pytest.mark.usefixtures("tiny_slices")
async def test_no_wait_begins_for_a_client_that_left_between_two_slices(
    running: InProcessBroker, many: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_handler, "AT_ONCE_MAX", 1)
    may_go_on = asyncio.Event()
    run_rest, as_future = handling.run_rest, fetch_handler._as_future
    waits: list[Any] = []

    async def run_later(*arguments: Any) -> Any:
        await may_go_on.wait()
        return await run_rest(*arguments)

    def note_wait(answering: Any) -> Any:
        waits.append(as_future(answering))
        return waits[-1]

    monkeypatch.setattr(handling, "run_rest", run_later)
    monkeypatch.setattr(fetch_handler, "_as_future", note_wait)
    connections = running.server.connections
    async with await running.connect() as other:
        parts = [part(index, offset=1 - index % 2) for index in range(COUNT)]
        other.send(asking(*parts, topic=many, max_wait_ms=60_000), 12)
        await eventually(lambda: connections._tasks_running)
        old_count = len(connections)
    await eventually(lambda: len(connections) < old_count)
    may_go_on.set()
    await eventually(lambda: waits)
    await eventually(waits[0].cancelled)
