"""A broker under mixed work until it kills itself at one of its steps.

The work: transactions over several partitions, committed and aborted; plain batches; DeleteRecords;
moves of logs between two log directories; topics that come, grow and go. A step is a call that
changes a file, on any thread, or the metadata tree (`topic_load`).

As a program it is a nursery: for each line `DIRECTORY SEED` on stdin it forks a broker. The broker
reports on stdout:

    begin|done create|grow NAME PARTITIONS
    begin|done delete NAME
    begin|done purge NAME INDEX OFFSET
    send TRANSACTION NAME INDEX VALUE        TRANSACTION 0: a record outside of transactions
    wrote NAME INDEX VALUE OFFSET
    ending|ended TRANSACTION commit|abort
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from typing import TYPE_CHECKING, Any

from minibroker.broker.app import Broker
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from minibroker.kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from minibroker.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from minibroker.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minibroker.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from minibroker.kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.crash.nursery import fork_for_each_line
from tests.crash.topic_load import CHANGES, Mortal, MortalFiles
from tests.support.in_process import RawClient, batch_of

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["a", "b", "c"]
LOG_DIRECTORIES = ["one", "two"]
TRANSACTIONAL_IDS = ["x", "y"]
ACTIONS_MAX = 25
STEPS_MAX = 80
ACTIONS = [
    *["transact"] * 6,
    *["plain"] * 4,
    *["purge"] * 4,
    *["move"] * 5,
    *["create", "create", "grow", "delete"],
]
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
}
TRANSACTION = 1
PLAIN = 0


def settings_of(directory: str | Path) -> dict[str, str]:
    """Return settings for the brokers that are killed and for those that check afterwards."""
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": ",".join(f"{directory}/{name}" for name in LOG_DIRECTORIES),
        "auto.create.topics.enable": "false",
        "log.segment.bytes": "600",
        "log.index.interval.bytes": "100",
        "log.segment.delete.delay.ms": "0",
        "transaction.state.log.num.partitions": "2",
    }


async def init_producer(client: RawClient, transactional_id: str) -> tuple[int, int]:
    """Return id and epoch of a producer. A transaction that was open is aborted."""
    find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id])
    while (await client.call(find, 4)).coordinators[0].error_code in NOT_YET:
        pass  # the topic of transactions is made
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    while (answer := await client.call(request, 4)).error_code in NOT_YET:
        pass
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


async def offset_of(client: RawClient, name: str, index: int, timestamp: int) -> int:
    """Return the first (-2) or last (-1) offset of a partition, as ListOffsets has it."""
    part = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=[part])])
    [partition] = (await client.call(request, 4)).topics[0].partitions
    assert partition.error_code == 0
    return int(partition.offset)


class Life:
    """One broker and its client."""

    def __init__(self, client: RawClient, chance: random.Random, directory: str) -> None:
        self.client = client
        self.chance = chance
        self.directory = directory
        self.partitions: dict[str, int] = {}
        """Topic → number of partitions."""
        self.producers: dict[str, tuple[int, int]] = {}
        self.sequences: dict[tuple[int, int, str, int], int] = {}
        """Producer id and epoch, topic and partition → the next sequence."""

    def report(self, *words: object) -> None:
        os.write(1, " ".join(map(str, words)).encode() + b"\n")

    async def turn(self, action: str) -> None:
        """Do one thing, if there is what it needs."""
        free = [name for name in NAMES if name not in self.partitions]
        if action == "create":
            if free:
                await self._create(self.chance.choice(free))
        elif self.partitions:
            name = self.chance.choice(list(self.partitions))
            await getattr(self, f"_{action}")(name)

    # Topics.

    async def _create(self, name: str) -> None:
        count = self.chance.randrange(1, 4)
        self.report("begin", "create", name, count)
        topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        answer = await self.client.call(CreateTopicsRequest(topics=[topic]), 4)
        assert [topic.error_code for topic in answer.topics] == [0]
        self.report("done", "create", name, count)
        self.partitions[name] = count

    async def _grow(self, name: str) -> None:
        count = self.partitions[name] + 1
        self.report("begin", "grow", name, count)
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=30_000)
        answer = await self.client.call(request, 1)
        assert [result.error_code for result in answer.results] == [0]
        self.report("done", "grow", name, count)
        self.partitions[name] = count

    async def _delete(self, name: str) -> None:
        self.report("begin", "delete", name)
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
        answer = await self.client.call(request, 4)
        assert [response.error_code for response in answer.responses] == [0]
        self.report("done", "delete", name)
        del self.partitions[name]
        self.sequences = {key: n for key, n in self.sequences.items() if key[2] != name}

    async def _move(self, name: str) -> None:
        index = self.chance.randrange(self.partitions[name])
        path = f"{self.directory}/{self.chance.choice(LOG_DIRECTORIES)}"
        topic = AlterReplicaLogDirTopic(name=name, partitions=[index])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])
        answer = await self.client.call(request, 2)
        assert answer.results[0].partitions[0].error_code == 0

    # Records.

    async def _purge(self, name: str) -> None:
        index = self.chance.randrange(self.partitions[name])
        first = await offset_of(self.client, name, index, -2)
        last = await offset_of(self.client, name, index, -1)
        offset = self.chance.randrange(first, last + 1)
        self.report("begin", "purge", name, index, offset)
        part = DeleteRecordsPartition(partition_index=index, offset=offset)
        topic = DeleteRecordsTopic(name=name, partitions=[part])
        answer = await self.client.call(DeleteRecordsRequest(topics=[topic], timeout_ms=30_000), 2)
        assert answer.topics[0].partitions[0].error_code == 0
        self.report("done", "purge", name, index, offset)

    async def _plain(self, name: str) -> None:
        index = self.chance.randrange(self.partitions[name])
        value = self._announce(PLAIN, name, index)
        await self._produce(name, index, value, batch_of(b"%d" % value), None)

    async def _transact(self, name: str) -> None:
        transactional_id = self.chance.choice(TRANSACTIONAL_IDS)
        producer = self.producers.get(transactional_id)
        if producer is None:
            producer = await init_producer(self.client, transactional_id)
            self.producers[transactional_id] = producer
        places = {(name, self.chance.randrange(self.partitions[name]))}
        other = self.chance.choice(list(self.partitions))
        places.add((other, self.chance.randrange(self.partitions[other])))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in places
            ],
        )
        while (codes := self._codes(await self.client.call(request, 3))) & NOT_YET:
            pass
        assert codes == {ErrorCode.NONE}
        number = self.chance.randrange(1, 1 << 60)
        for place in sorted(places):
            for _ in range(self.chance.randrange(1, 4)):
                await self._write(number, transactional_id, producer, *place)
        is_commit = self.chance.random() < 0.5
        ending = "commit" if is_commit else "abort"
        self.report("ending", number, ending)
        end = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=is_commit,
        )
        answer = await self.client.call(end, 3)
        assert answer.error_code == 0
        self.report("ended", number, ending)

    @staticmethod
    def _codes(answer: Any) -> set[ErrorCode]:
        return {
            ErrorCode(result.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        }

    async def _write(
        self, number: int, transactional_id: str, producer: tuple[int, int], name: str, index: int
    ) -> None:
        value = self._announce(number, name, index)
        key = (*producer, name, index)
        sequence = self.sequences.get(key, 0)
        self.sequences[key] = sequence + 1
        records = batch_of(
            b"%d" % value,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        await self._produce(name, index, value, records, transactional_id)

    def _announce(self, number: int, name: str, index: int) -> int:
        """Return the value of a record, after the report that it is about to be sent."""
        value = self.chance.randrange(1 << 60)
        self.report("send", number, name, index, value)
        return value

    async def _produce(
        self, name: str, index: int, value: int, records: bytearray, transactional_id: str | None
    ) -> None:
        data = PartitionProduceData(index=index, records=memoryview(records))
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=name, partition_data=[data])],
        )
        answer = await self.client.call(request, 9)
        [response] = answer.responses[0].partition_responses
        assert response.error_code == 0
        self.report("wrote", name, index, value, response.base_offset)


async def _live(directory: str, seed: int) -> None:
    """Work until the killing step; kill a broker that never reaches it at the end."""
    chance = random.Random(seed)
    mortal = Mortal()
    mortal.watch(MortalFiles, CHANGES)
    mortal.watch(EmbeddedTree, ("create", "delete", "flush", "multi", "set"))
    last_action = chance.randrange(-2, ACTIONS_MAX)
    if last_action < 0:
        mortal.arm(chance.randrange(1, STEPS_MAX))
    broker = Broker(BrokerConfig(settings_of(directory)), files=MortalFiles())
    await broker.start()
    client = RawClient(*await asyncio.open_connection(*broker.address), "load")
    life = Life(client, chance, directory)
    for name, topic in broker.cluster.image.topics.items():
        if name in NAMES:
            life.partitions[name] = len(topic.partitions)
    for number in range(ACTIONS_MAX):
        if number == last_action:
            mortal.arm(chance.randrange(1, STEPS_MAX))
        await life.turn(chance.choice(ACTIONS))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    fork_for_each_line(lambda directory, seed: asyncio.run(_live(directory, int(seed))))
