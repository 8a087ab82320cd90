"""Faults of what one broker sends to others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from minibroker.broker.timers import Timers
from minibroker.kafka.protocol.api_keys import FETCH, METADATA
from minibroker.rig.clock import MovableClock
from minibroker.rig.faults import Fault, FaultSet
from minibroker.rig.peer_faults import PeerFaults


class Request:
    def __init__(self, key: int) -> None:
        self.API_KEY = key


class Line:
    """The faults of broker 0, and a way to other brokers that answers when it may."""

    def __init__(self) -> None:
        self.rules = FaultSet()
        self.clock = MovableClock()
        self.faults = PeerFaults(0, self.rules, Timers(self.clock))
        self.count = 0
        self.answered = asyncio.Event()
        self.answered.set()

    def add(self, fault: Fault) -> Fault:
        self.rules.add(fault)
        self.faults.note(fault)
        return fault

    def begin(self, receiver: int, key: int = METADATA) -> asyncio.Task[Any]:
        return asyncio.create_task(self.faults.call(receiver, Request(key), self._send))

    async def _send(self) -> str:
        self.count += 1
        await self.answered.wait()
        return "answer"


async def turns() -> None:
    """Let every task go on until it waits for the test."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_request_without_faults_is_answered() -> None:
    assert await Line().begin(1) == "answer"


async def test_a_cut_link_fails_and_the_others_do_not() -> None:
    line = Line()
    fault = line.add(Fault(broker="cut_off", peer=1))
    with pytest.raises(ConnectionError, match="the link to broker 1 is cut by a fault"):
        await line.begin(1)
    assert await line.begin(2) == "answer"
    assert (fault.hits, line.count) == (1, 1)


async def test_links_count_in_their_direction() -> None:
    line = Line()
    fault = Fault(broker="cut_off")
    fault.links = {(1, 0), (0, 2)}
    line.add(fault)
    assert await line.begin(1) == "answer"
    with pytest.raises(ConnectionError):
        await line.begin(2)


async def test_an_answer_on_its_way_is_lost_when_the_link_is_cut() -> None:
    line = Line()
    line.answered.clear()
    first, other = line.begin(1), line.begin(2)
    await turns()
    fault = line.add(Fault(broker="cut_off", peer=1))
    with pytest.raises(ConnectionError):
        await first
    assert fault.hits == 1
    line.answered.set()
    assert await other == "answer"


async def test_a_cancelled_request_is_given_up() -> None:
    line = Line()
    line.answered.clear()
    call = line.begin(1)
    await turns()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_slow_fetches_pass_with_the_clock() -> None:
    line = Line()
    fault = line.add(Fault(broker="slow_follower", delay_ms=60_000, peer=1))
    assert await line.begin(1) == "answer"  # it fetches nothing
    assert await line.begin(2, FETCH) == "answer"
    call = line.begin(1, FETCH)
    await turns()
    assert line.count == 2
    assert fault.hits == 1
    line.clock.move(60_000)
    assert await call == "answer"


async def test_a_paused_broker_sends_nothing_and_takes_no_answer() -> None:
    line = Line()
    line.answered.clear()
    under_way = line.begin(1)
    await turns()
    fault = line.add(Fault(broker="paused"))
    line.faults.hold(is_held=True)
    line.answered.set()
    new = line.begin(2)
    await turns()
    assert (line.count, fault.hits) == (1, 2)
    assert not under_way.done()
    line.faults.hold(is_held=False)
    assert (await under_way, await new) == ("answer", "answer")
