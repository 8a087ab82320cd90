"""The cache of topics of Produce's short way, and when it forgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.appends.routes import COMPACT_HEAD, ProduceRoutes
from tests.support.record_requests import id_of

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker


async def test_a_topic_is_found_by_its_name_or_id_as_the_version_has_it(
    running: InProcessBroker,
) -> None:
    routes = ProduceRoutes(running.partitions, running.broker.cluster)
    partition = running.partitions.get("t", 1)
    for version, topic in ((3, b"\0\x01t"), (9, b"\x02t"), (13, id_of(running))):
        assert routes.find(version, topic, 1) is partition
        assert routes.by_version[version] == {topic: {1: partition}}


async def test_nothing_is_remembered_of_a_partition_that_is_not_here(
    running: InProcessBroker,
) -> None:
    routes = ProduceRoutes(running.partitions, running.broker.cluster)
    for version, topic, index in ((9, b"\x02t", 9), (9, b"\x02x", 0), (13, bytes(16), 0)):
        assert routes.find(version, topic, index) is None
        assert not routes.by_version[version]


async def test_a_partition_that_comes_or_goes_empties_it(running: InProcessBroker) -> None:
    routes = ProduceRoutes(running.partitions, running.broker.cluster)
    routes.find(9, b"\x02t", 0)
    await running.create_topic("other")
    assert not routes.by_version[9]
    routes.find(9, b"\x02t", 0)
    await running.broker.cluster.delete_topic("other")
    assert not routes.by_version[9]


async def test_the_only_partition_of_a_request_is_found_by_all_that_names_it(
    running: InProcessBroker,
) -> None:
    routes = ProduceRoutes(running.partitions, running.broker.cluster)
    for version, topic in ((9, b"\x02t"), (13, id_of(running))):
        lead = topic + b"\x02" + (1).to_bytes(4)
        head = COMPACT_HEAD.pack(0, -1, 1000, 2) + lead
        route = (running.partitions.get("t", 1), -1, lead)
        assert routes.find_lone(version, head) == route
        assert routes.lone_by_version[version] == {head: route}
        for other in (
            COMPACT_HEAD.pack(0, -1, 1000, 2) + topic + b"\x02" + (9).to_bytes(4),
            COMPACT_HEAD.pack(0, -1, 1000, 2) + topic + b"\x03" + (1).to_bytes(4),
            COMPACT_HEAD.pack(0, -1, 1000, 3) + lead,
            COMPACT_HEAD.pack(0, 0, 1000, 2) + lead,
            COMPACT_HEAD.pack(2, 1, 1000, 2) + lead,
            COMPACT_HEAD.pack(0, 1, 1000, 2) + lead[-5:],
        ):
            assert routes.find_lone(version, other) is None
        assert len(routes.lone_by_version[version]) == 1
    await running.create_topic("other")
    assert not routes.lone_by_version[9]
    assert not routes.lone_by_version[13]
