"""The coordinators are made when they are needed, and resumed where there is something to do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path

SMALL = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


async def test_a_broker_without_groups_makes_none(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, SMALL) as running:
        coordinators = running.broker.coordinators
        coordinators.resume()
        assert coordinators._groups is None
        assert coordinators._transactions is None
        coordinators.release_waiting()
        await coordinators.close()


async def test_the_first_request_makes_a_coordinator_and_the_next_start_resumes_it(
    tmp_path: Path,
) -> None:
    for key_type, name in ((0, "_groups"), (1, "_transactions")):
        directory = tmp_path / name
        directory.mkdir()
        async with (
            InProcessBroker(directory, SMALL) as running,
            await running.connect() as client,
        ):
            request = FindCoordinatorRequest(key="x", key_type=key_type)
            assert (await client.call(request, 1)).error_code == 0
        async with InProcessBroker(directory, SMALL) as running:
            coordinators = running.broker.coordinators
            coordinators.resume()
            assert getattr(coordinators, name) is not None
            assert coordinators.groups is coordinators.groups
            assert coordinators.transactions is coordinators.transactions


async def test_a_later_leader_resumes_them(tmp_path: Path) -> None:
    """A broker that led nothing of the journals when it started, in a cluster say."""
    async with InProcessBroker(tmp_path, SMALL) as running:
        coordinators = running.broker.coordinators
        await asyncio.sleep(0)  # `start` comes right after the broker's
        for topic, name in (
            ("__consumer_offsets", "_groups"),
            ("__transaction_state", "_transactions"),
        ):
            assert getattr(coordinators, name) is None
            await running.create_topic(topic)
            assert getattr(coordinators, name).journal.active_indexes() == [0]
