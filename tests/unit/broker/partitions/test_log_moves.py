"""AlterReplicaLogDirs at work: rounds on the worker, the exchange, and moves that end early."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.partitions.log_directories import LogMoves
from minibroker.broker.partitions.partition import Partition
from minibroker.broker.timers import Timers
from minibroker.broker.worker import Worker
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.ids import TopicPartition
from tests.support.in_process import batch_of
from tests.support.logs import values_of
from tests.unit.broker.partitions.conftest import World, partition_image

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NAME = TopicPartition("t", 0)


def batch_at(offset: int, value: bytes) -> memoryview:
    """Return a batch as a leader has it, at this offset."""
    records = bytearray(batch_of(value))
    records[0:8] = offset.to_bytes(8, "big")
    return memoryview(records)


class Rig(World):
    """Partition t-0 in the first of two directories."""

    def __init__(self, directory: Path) -> None:
        self.paths = [str(directory / "data"), str(directory / "other")]
        super().__init__(directory, more_directories=self.paths[1:])
        self.manager.is_started = True
        self.errors: list[Exception] = []
        self.worker = Worker(self.errors.append)
        self.worker.begin(asyncio.get_running_loop())
        self.rate = 1e12
        self.timers = Timers(self.clock)
        self.moves = LogMoves(
            logs=self.logs,
            partitions=self.manager,
            worker_of=lambda _path: self.worker,
            timers=self.timers,
            bytes_per_s=lambda: self.rate,
        )
        self.create("t")
        self.append(b"before")
        self.manager.commit()

    @property
    def directory(self) -> str:
        return self.replica().log.log_directory

    def replica(self, name: str = "t") -> Partition:
        """Return partition 0 of a topic, in any role."""
        partition = self.manager.replica(name, 0)
        assert partition is not None
        return partition

    async def settle(self) -> None:
        """Until the worker and the loop have nothing to do for any move."""
        for _ in range(20):
            done = asyncio.get_running_loop().create_future()
            self.worker.run_then(lambda: None, done.set_result)
            await asyncio.wait_for(done, 60)

    def refusal(self, name: TopicPartition, path: str) -> ErrorCode:
        with pytest.raises(KafkaError) as caught:
            self.moves.alter(name, path)
        return caught.value.code


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.worker.close()
    rig.timers.close()
    rig.logs.close()


async def test_a_partition_moves_while_it_is_served(rig: Rig) -> None:
    partition = rig.partition()
    rig.moves.alter(NAME, rig.paths[1])
    assert [name for name, _, _ in rig.moves.in_directory(rig.paths[1])] == [NAME]
    claim = rig.append(b"meanwhile")
    rig.manager.commit()
    await rig.settle()
    assert rig.directory == rig.paths[1]
    assert rig.partition() is partition
    assert (claim.error_code, claim.base_offset) == (0, 1)
    read = partition.read(0, 1000, isolation_level=0, min_one_batch=True)
    assert b"before" in bytes(read.records)
    assert b"meanwhile" in bytes(read.records)
    assert rig.append(b"after").base_offset == 2
    assert rig.moves.in_directory(rig.paths[1]) == []


async def test_where_it_is_already_nothing_moves(rig: Rig) -> None:
    rig.moves.alter(NAME, rig.paths[0])
    assert rig.moves.in_directory(rig.paths[0]) == []


async def test_back_before_it_arrived(rig: Rig) -> None:
    rig.moves.alter(NAME, rig.paths[1])
    rig.moves.alter(NAME, rig.paths[0])
    await rig.settle()
    assert rig.directory == rig.paths[0]
    assert rig.moves.in_directory(rig.paths[1]) == []


async def test_a_throttled_move_waits_for_the_clock(rig: Rig) -> None:
    for _ in range(3):
        rig.append(b"x" * 1_000_000)
    rig.manager.commit()
    rig.rate = 1 << 20
    rig.moves.alter(NAME, rig.paths[1])
    await rig.settle()
    assert rig.directory == rig.paths[0]
    rig.clock.advance(3_000)
    await rig.settle()
    assert rig.directory == rig.paths[1]


async def test_a_topic_that_is_deleted_ends_its_move(rig: Rig) -> None:
    rig.moves.alter(NAME, rig.paths[1])
    rig.delete("t")
    await rig.settle()
    assert rig.moves.in_directory(rig.paths[1]) == []
    assert rig.logs.logs == {}


async def test_a_directory_that_fails_ends_the_moves_into_it(rig: Rig) -> None:
    rig.moves.alter(NAME, rig.paths[1])
    rig.logs.fail_directory(rig.paths[1])
    await rig.settle()
    assert rig.directory == rig.paths[0]
    assert rig.moves.in_directory(rig.paths[1]) == []


async def test_a_disk_that_refuses_keeps_the_partition_where_it_is(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        rig.append(b"x" * 1_000_000)
    rig.manager.commit()
    rig.moves.alter(NAME, rig.paths[1])
    rig.fail_next_write()
    await rig.settle()
    assert rig.directory == rig.paths[0]
    assert "partition t-0 stays in" in caplog.text
    rig.moves.alter(NAME, rig.paths[1])
    await rig.settle()
    assert rig.directory == rig.paths[1]


async def test_impossible_moves_are_refused_as_by_kafka(rig: Rig) -> None:
    other = rig.paths[1]
    assert rig.refusal(NAME, other + "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    long = TopicPartition("n" * 214, 0)
    assert rig.refusal(long, other) == ErrorCode.INVALID_TOPIC_EXCEPTION
    unknown = TopicPartition("u", 0)
    assert rig.refusal(unknown, other) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    rig.create("elsewhere", partition_image(leader=7, isr=(7,), replicas=(7,)))
    assert rig.refusal(TopicPartition("elsewhere", 0), other) == ErrorCode.REPLICA_NOT_AVAILABLE
    rig.logs.fail_directory(other)
    assert rig.refusal(NAME, other) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_partition_to_come_is_made_where_it_was_wished(rig: Rig) -> None:
    for _ in range(2):
        rig.refusal(TopicPartition("u", 0), rig.paths[0])
    rig.create("filler")  # the other directory would be the emptier one
    rig.create("u")
    assert rig.partition("u").log.log_directory == rig.paths[0]


async def test_a_follower_moves_while_it_follows(rig: Rig) -> None:
    """Kafka moves any replica of the broker, whoever leads it."""
    rig.change("t", 0, partition_image(leader=7, epoch=1))
    follower = rig.replica()
    rig.moves.alter(NAME, rig.paths[1])
    rig.manager.append_as_follower(
        follower,
        batch_at(1, b"of the leader"),
        leader_high_watermark=1,
        leader_log_start_offset=0,
    )
    await rig.settle()
    assert rig.directory == rig.paths[1]
    assert rig.replica() is follower
    assert (follower.log_end_offset, follower.high_watermark) == (2, 1)
    rig.manager.append_as_follower(
        follower, batch_at(2, b"later"), leader_high_watermark=3, leader_log_start_offset=0
    )
    assert (follower.log_end_offset, follower.high_watermark) == (3, 3)
    assert values_of(follower.log) == [b"before", b"of the leader", b"later"]


async def test_a_follower_that_is_cut_during_its_move_has_what_its_leader_has(rig: Rig) -> None:
    rig.change("t", 0, partition_image(leader=7, epoch=1))
    follower = rig.replica()
    rig.moves.alter(NAME, rig.paths[1])
    rig.manager.truncate(follower, 0)
    rig.manager.append_as_follower(
        follower, batch_at(0, b"instead"), leader_high_watermark=1, leader_log_start_offset=0
    )
    await rig.settle()
    assert rig.directory == rig.paths[1]
    assert values_of(follower.log) == [b"instead"]


async def test_a_follower_whose_directory_failed_does_not_move(rig: Rig) -> None:
    rig.change("t", 0, partition_image(leader=7, epoch=1))
    rig.manager.take_offline(rig.logs.fail_directory(rig.paths[0]) or [])
    assert rig.refusal(NAME, rig.paths[1]) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_replica_to_come_is_made_where_it_was_wished(rig: Rig) -> None:
    """The topic is there, the replica is not: a reassignment is about to bring it."""
    rig.create("u", partition_image(leader=7, isr=(7,), replicas=(7,)))
    name = TopicPartition("u", 0)
    assert rig.refusal(name, rig.paths[0]) == ErrorCode.REPLICA_NOT_AVAILABLE
    rig.create("filler")  # the other directory would be the emptier one
    rig.change("u", 0, partition_image(leader=7, epoch=1, isr=(7,), replicas=(7, 0)))
    assert rig.replica("u").log.log_directory == rig.paths[0]


async def test_a_bug_in_the_exchange_takes_the_directory_offline(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The partition has the old log, the log manager the new one: neither can be served."""
    told: list[StorageError] = []
    rig.manager.on_storage_error = told.append

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Partition, "exchange_log", fail)
    rig.moves.alter(NAME, rig.paths[1])
    await rig.settle()
    assert [(error.log_directory, error.is_lasting) for error in told] == [(rig.paths[1], True)]
    assert "a bug" in caplog.text
    assert rig.moves.in_directory(rig.paths[1]) == []


async def test_a_move_that_a_stop_interrupted_begins_again(rig: Rig) -> None:
    rig.logs._futures[NAME] = rig.paths[1]
    rig.moves.resume()
    await rig.settle()
    assert rig.directory == rig.paths[1]
