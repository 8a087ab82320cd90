"""Long lists are gathered in slices."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from minibroker.control import views

if TYPE_CHECKING:
    from minibroker.testing import Broker


def test_topics_come_in_slices(kafka_broker: Broker) -> None:
    for name in ("b", "a"):
        kafka_broker.create_topic(name, views.SLICE)

    async def look(_: object) -> tuple[list[str], bool]:
        gathering = asyncio.create_task(views.topics_of(kafka_broker._node.app))
        await asyncio.sleep(0)
        at_once = gathering.done()
        return [one["name"] for one in await gathering], at_once

    assert kafka_broker.await_node(look) == (["a", "b"], False)


def test_the_last_requests_oldest_first(kafka_broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415  beside its one use

    AdminClient({"bootstrap.servers": kafka_broker.bootstrap, "log_level": 0}).list_topics()
    node = kafka_broker._node
    lines = kafka_broker.call(lambda: views.requests_of(node, {})).splitlines()
    assert len(lines) >= 2
    assert b"ApiVersions" in lines[0]
    assert kafka_broker.call(lambda: views.requests_of(node, {"limit": "0"})) == b""
