"""Simulated time keeps the order that sessions of ZooKeeper and connections keep."""

from __future__ import annotations

import asyncio

from tests.simulation.loop import SimulatedLoop


def test_calls_for_one_time_come_in_the_order_in_which_they_were_made() -> None:
    """A session says that it expired, then that it is renewed; bytes of a connection stay in
    order. Calls of another time, and calls that are cancelled, change nothing of that.
    """
    loop = SimulatedLoop()
    heard: list[int] = []
    for number in range(200):
        loop.call_at(1.0, heard.append, number)
        other = loop.call_at(0.5 + number % 7, asyncio.Event().set)
        if number % 3:
            other.cancel()
    loop.call_at(9.0, loop.stop)
    loop.run_forever()
    loop.close()
    assert heard == list(range(200))
