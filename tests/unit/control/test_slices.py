"""Others have their turn between two slices of a text, and a second text waits."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from minibroker.control import slices
from minibroker.control.families import families
from minibroker.control.slices import Slices
from minibroker.control.views import groups_of, requests_of, topics_of
from minibroker.rig.request_log import SeenRequest
from tests.support.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from minibroker.rig.node import Node
    from minibroker.testing import Broker

PARTITIONS = 31
LISTS: dict[str, tuple[Callable[[Node], Iterable[str]], int]] = {
    # A partition is counted for the cluster, and is in four families.
    "metrics": (lambda node: families(node.app), 5 * PARTITIONS),
    "topics": (lambda node: topics_of(node.app), PARTITIONS),
    "groups": (lambda node: groups_of(node.app), PARTITIONS),
    "requests": (lambda node: requests_of(node, {}), PARTITIONS),
}


@pytest.fixture
def busy_broker(kafka_broker: Broker) -> Broker:
    """A topic, a group and a client that make long lists."""
    kafka_broker.create_topic("wide", PARTITIONS)
    settings = {"bootstrap.servers": kafka_broker.bootstrap, "group.id": "g", "log_level": 0}
    consumer = Consumer(settings)
    commits = [TopicPartition("wide", index, 1) for index in range(PARTITIONS)]
    consumer.commit(offsets=commits, asynchronous=False)
    consumer.close()
    seen = SeenRequest("Produce", 9, "mine", "127.0.0.1", 0, 0.0, None)
    for _ in range(PARTITIONS):
        kafka_broker.call(lambda: kafka_broker._node.seen.note(seen))
    return kafka_broker


@pytest.mark.parametrize("name", list(LISTS))
def test_a_list_that_is_long_gives_way_at_each_of_its_lines(
    busy_broker: Broker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    pieces_of, count = LISTS[name]

    async def join(node: Node) -> int:
        turns = Turns()
        await Slices().join(pieces_of(node))
        return turns.stop()

    assert busy_broker.await_node(join) >= count


async def test_quick_work_is_done_in_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 60.0)
    turns = Turns()
    assert await Slices().join("ä" * 1000) == "ä".encode() * 1000
    assert turns.stop() == 2  # behind the first piece, and before it is sent


async def test_a_second_text_waits_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    begun: list[str] = []

    def pieces(name: str) -> Iterator[str]:
        for number in itertools.count():
            begun.append(name)
            yield f"{name}{number}"
            if number == 3:
                return

    joining = Slices()
    texts = await asyncio.gather(joining.join(pieces("a")), joining.join(pieces("b")))
    assert begun == ["a"] * 4 + ["b"] * 4
    assert texts == [b"a0a1a2a3", b"b0b1b2b3"]
