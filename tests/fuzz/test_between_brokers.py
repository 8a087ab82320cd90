"""Hostile requests between brokers, to a live broker that is the controller of two.

Anybody may send them on a listener without an authorizer, as with Kafka, and a request with newer
epochs is obeyed. But each is answered or ends its connection, nothing is logged as a failure of
ours, a request that is fenced changes nothing, and no topic comes of it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random
from struct import pack, unpack
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.handlers.registry import ONLY_WITH_ZOOKEEPER, supported_versions
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import load_messages
from minibroker.kafka.protocol.header import response_header_version
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.kafka.protocol.messages.produce import PartitionProduceResponse
from minibroker.kafka.protocol.primitives import Reader
from tests.fuzz.between_brokers import VERSIONS, HostileRequests
from tests.support.cluster import add_broker, add_topic_of_kafka
from tests.support.in_process import InProcessBroker, ManualClock, batch_of, request_frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FRAMES = 120
"""Frames for one broker: after more of them no epoch would be newer than its own."""
SEEDS = range(4)
FENCED = {ErrorCode.STALE_BROKER_EPOCH, ErrorCode.STALE_CONTROLLER_EPOCH}
EPOCH = 7


class Attacked:
    """A broker of two, with records in two topics."""

    def __init__(self, running: InProcessBroker) -> None:
        self.running = running
        self.cluster = running.broker.cluster
        self._data = Path(running.broker.config.log_dirs[0])
        self.reads = 0
        """Begins and ends of reads of the tree. What an earlier request made the broker read may
        come while a later request is answered."""
        follower = self.cluster._follower
        refresh = follower._refresh

        async def counted(things: list[str]) -> None:
            self.reads += 1
            try:
                await refresh(things)
            finally:
                self.reads += 1

        follower._refresh = counted  # type: ignore[method-assign]

    def values_by_field(self) -> dict[str, list[Any]]:
        """Return name of a field → values that fit."""
        ours, others = self.cluster.this_broker.epoch, self.cluster.image.brokers[2].epoch
        topics = self.cluster.image.topics
        return {
            "topic_name": ["t", "u"],
            "topic": ["t", "u"],
            "name": ["t", "u"],
            "topic_id": [topic.topic_id for topic in topics.values()],
            "partition_index": [0],
            "partition": [0],
            "partitions": [[0]],
            "partition_indexes": [[0], [0, 0]],
            "replicas": [[0, 2], [0], [2, 0, 0]],
            "isr": [[0, 2], [2], [0, 0]],
            "new_isr": [[0, 2], [2]],
            "replica_id": [2, 2, 0, -1, 9],
            "replica_epoch": [others, -1],
            "broker_id": [2, 2, 0],
            "id": [0, 2],
            "leader": [0, 2, -1, -2],
            "leader_epoch": [0, 1, 2, 3, -2],
            "current_leader_epoch": [0, 1, -1],
            "last_fetched_epoch": [0, -1],
            "fetch_offset": [0, 1],
            "partition_epoch": [0, 1, 5],
            "zk_version": [0, 1, 5],
            "controller_id": [0, 2],
            "controller_epoch": [EPOCH, EPOCH, EPOCH + 1, 0],
            "broker_epoch": [ours, others, -1],
            "session_epoch": [-1],
            "partition_max_bytes": [1 << 20],
            "max_bytes": [1 << 20],
            "host": ["localhost"],
            "host_name": ["localhost"],
            "port": [9092],
            "listener": ["PLAINTEXT"],
        }

    def state(self) -> object:
        """Return all that a fenced request must leave as it is."""
        topics = self.cluster.image.topics
        replicas = [
            (name, index, partition.role, partition.log_end_offset if partition.has_log else -1)
            for name in ("t", "u", "unknown", "")
            for index in range(-1, 8)
            if (partition := self.running.partitions.replica(name, index)) is not None
        ]
        directories = sorted(path.name for path in self._data.iterdir() if path.is_dir())
        image = self.cluster.image
        return repr(topics), replicas, directories, image.controller_id, image.controller_epoch


@pytest.fixture
async def attacked(tmp_path: Path) -> AsyncIterator[Attacked]:
    """Broker 0, the controller. Broker 2 is registered; both have replicas of `t`."""
    clock = ManualClock()
    home = SharedTree(tmp_path / "metadata.db", clock)
    settings = {"controlled.shutdown.enable": "false", "auto.create.topics.enable": "false"}
    async with InProcessBroker(tmp_path, settings, clock=clock, tree=home.session()) as running:
        served = supported_versions(with_zookeeper=True)
        running.broker.services.supported_apis.update(
            {key: served[key] for key in ONLY_WITH_ZOOKEEPER}
        )
        cluster = running.broker.cluster
        await add_broker(cluster, cluster.tree, 2)
        await add_topic_of_kafka(cluster, cluster.tree, "t", [0, 2], leader=0)
        await cluster.create_topic("u", assignment={0: [0]})
        for topic in ("t", "u"):
            partition = running.partitions.get(topic, 0)
            records = memoryview(batch_of(b"a", b"b"))
            partition.append(records, 1, clock.now_ms(), PartitionProduceResponse())
        running.partitions.commit()
        yield Attacked(running)


async def answer_of(running: InProcessBroker, api_key: int, version: int, frame: bytes) -> Any:
    """Return the answer to a frame on a connection of its own, None where the broker closes it."""
    async with await running.connect() as client:
        client.writer.write(frame)
        try:
            raw = await client.receive_frame()
        except ConnectionError:
            return None
        assert unpack(">i", raw[:4]) == (1,)
        reader = Reader(memoryview(raw), 4 + response_header_version(api_key, version))
        answer = load_messages(api_key)[1].read(reader, version)
        assert reader.remaining == 0
        return answer


@pytest.mark.parametrize("seed", SEEDS)
async def test_hostile_requests_are_answered_and_break_nothing(
    attacked: Attacked, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    running = attacked.running
    requests = HostileRequests(Random(seed), attacked.values_by_field())
    answered = fenced = 0
    for _ in range(FRAMES):
        api_key, version, frame = requests.next(1)
        first_state, reads = attacked.state(), attacked.reads
        answer = await answer_of(running, api_key, version, frame)
        answered += answer is not None
        is_alone = reads % 2 == 0 and attacked.reads == reads  # nothing else changed the image
        if is_alone and answer is not None and getattr(answer, "error_code", 0) in FENCED:
            fenced += 1
            assert attacked.state() == first_state
        assert attacked.cluster.image.topics.keys() <= {"t", "u"}
        # That controller was never there: otherwise all later requests would be fenced.
        attacked.cluster.requests.epoch = min(attacked.cluster.requests.epoch, EPOCH)
        image = attacked.cluster.image
        image.controller_epoch = min(image.controller_epoch, EPOCH)
    assert answered > FRAMES // 2
    assert fenced > 3
    async with await running.connect() as client:
        metadata = await client.call(MetadataRequest(topics=None), 9)
    assert {topic.name for topic in metadata.topics} <= {"t", "u"}
    failures = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert not failures
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("api_key", sorted(VERSIONS))
async def test_a_list_that_is_not_there_ends_the_connection(
    attacked: Attacked, api_key: int
) -> None:
    """Its length is a thousand million; no memory is taken for it."""
    body = b"\x00" * 40 + pack(">i", 10**9) * 3 + b"\xff\xff\xff\xff\x07" * 3
    head = pack(">hhih", api_key, VERSIONS[api_key][0], 1, -1)
    frame = pack(">i", len(head) + len(body)) + head + body
    await answer_of(attacked.running, api_key, VERSIONS[api_key][0], frame)
    metadata = request_frame(MetadataRequest(topics=None), 9)
    assert await answer_of(attacked.running, 3, 9, metadata) is not None
