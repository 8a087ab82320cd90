"""Log directories that fail, and partitions on their way into another one."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.log_directories import FailedDirectories, LogMoves
from minibroker.broker.partitions.partition import READ_UNCOMMITTED, Partition
from minibroker.broker.partitions.waiters import DelayedFetch, FetchPosition
from minibroker.broker.timers import Timers
from minibroker.broker.worker import Worker, Workers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.ids import TopicPartition
from tests.support.in_process import batch_of
from tests.support.logs import values_of
from tests.unit.broker.partitions.conftest import World, partition_image

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Rig(World):
    """Two directories with one partition of `t` each, and who is told what."""

    def __init__(
        self, directory: Path, *, essential: bool = False, has_other_disks: bool = False
    ) -> None:
        self.paths = [str(directory / "data"), str(directory / "other")]
        super().__init__(directory, more_directories=self.paths[1:])
        self.lost: list[TopicPartition] = []
        self.fatal: list[str] = []
        self.failed = FailedDirectories(
            logs=self.logs,
            partitions=self.manager,
            on_offline=self.lost.extend,
            on_fatal=self.fatal.append,
            essential=self.paths[0] if essential else None,
            has_other_disks=has_other_disks,
        )
        self.manager.on_storage_error = self.failed.note
        self.manager.is_started = True
        self.create("t", partition_image(), partition_image())

    def directory_of(self, index: int) -> str:
        return self.partition("t", index).log.log_directory

    def break_disk(self, index: int, code: int = errno.EIO) -> None:
        """The next write of this partition is refused."""
        error = StorageError(
            "refused", log_directory=self.directory_of(index), cause=OSError(code, "refused")
        )
        self.manager.appends.log_failed(self.partition("t", index), error)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def code_of(rig: Rig, index: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        rig.partition("t", index)
    return caught.value.code


def test_the_partitions_of_a_failed_directory_are_offline_and_the_others_served(rig: Rig) -> None:
    rig.break_disk(1)
    assert rig.lost == [TopicPartition("t", 1)]
    assert code_of(rig, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.append(b"v", index=0).base_offset == 0
    assert [view.is_offline for view in rig.manager.log_directories()] == [False, True]
    assert rig.fatal == []


def test_a_disk_that_is_full_stays(rig: Rig) -> None:
    rig.break_disk(1, errno.ENOSPC)
    assert rig.lost == []
    assert rig.append(b"v", index=1).base_offset == 0


@pytest.mark.parametrize(
    ("isr", "has_other_disks", "is_lost"),
    [((0, 1), True, True), ((0,), True, False), ((0, 1), False, False)],
)
def test_a_full_disk_leaves_its_partitions_to_another_replica_with_a_disk_of_its_own(
    tmp_path: Path, isr: tuple[int, ...], has_other_disks: bool, is_lost: bool
) -> None:
    rig = Rig(tmp_path, has_other_disks=has_other_disks)
    rig.create("r", partition_image(isr=isr, replicas=(0, 1)))
    name = TopicPartition("r", 0)
    directory = rig.partition("r", 0).log.log_directory
    error = StorageError("refused", log_directory=directory, cause=OSError(errno.ENOSPC, "full"))
    rig.manager.appends.log_failed(rig.partition("r", 0), error)
    assert (name in rig.lost) == is_lost
    assert [
        view.is_offline for view in rig.manager.log_directories() if view.path == directory
    ] == [is_lost]


def test_a_full_disk_of_a_follower_stays(tmp_path: Path) -> None:
    """It leaves the ISR, and comes back when there is room."""
    rig = Rig(tmp_path, has_other_disks=True)
    rig.create("r", partition_image(leader=1, isr=(0, 1), replicas=(0, 1)))
    partition = rig.manager.replica("r", 0)
    assert partition is not None
    error = StorageError(
        "refused", log_directory=partition.log.log_directory, cause=OSError(errno.ENOSPC, "full")
    )
    rig.manager.appends.log_failed(partition, error)
    assert rig.lost == []


def test_answers_about_unwritten_records_fail(rig: Rig) -> None:
    claim = rig.append(b"v", index=1)
    other_entry = rig.append(b"v", index=0)
    rig.break_disk(1)
    rig.manager.commit()
    assert claim.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (other_entry.error_code, other_entry.base_offset) == (ErrorCode.NONE, 0)


async def test_a_wait_for_a_lost_partition_is_answered(rig: Rig) -> None:
    position = FetchPosition(rig.partition("t", 1), 0, 1000, READ_UNCOMMITTED)
    waiter = DelayedFetch(asyncio.get_running_loop(), [position], 1, 60_000, lambda: "answered")
    rig.break_disk(1)
    assert waiter.future.result() == "answered"


def test_a_partition_does_not_come_back_with_a_new_epoch(rig: Rig) -> None:
    rig.break_disk(1)
    rig.change("t", 1, partition_image(epoch=1))
    assert code_of(rig, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.manager.lost == [TopicPartition("t", 1)]


def test_new_partitions_go_to_what_is_left_and_deleted_names_are_free_again(rig: Rig) -> None:
    rig.break_disk(1)
    rig.create("u", partition_image(), partition_image())
    assert {rig.partition("u", n).log.log_directory for n in (0, 1)} == {rig.directory_of(0)}
    rig.delete("t")
    rig.create("t", partition_image(), partition_image())
    assert rig.append(b"v", index=1).base_offset == 0


def test_without_any_directory_the_broker_ends(rig: Rig) -> None:
    rig.break_disk(1)
    rig.break_disk(0)
    assert len(rig.fatal) == 1
    assert "all log directories have failed" in rig.fatal[0]


def test_without_the_metadata_the_broker_ends(tmp_path: Path) -> None:
    rig = Rig(tmp_path, essential=True)
    rig.break_disk(0)
    assert len(rig.fatal) == 1
    assert "which holds the metadata" in rig.fatal[0]


def test_at_start_a_log_that_may_be_offline_is_not_begun_anew(rig: Rig) -> None:
    rig.logs.fail_directory(rig.paths[1])
    rig.manager.is_started = False
    rig.create("old")
    with pytest.raises(KafkaError) as caught:
        rig.partition("old")
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.fatal == []


NAME = TopicPartition("t", 0)


def batch_at(offset: int, value: bytes) -> memoryview:
    """Return a batch as a leader has it, at this offset."""
    records = bytearray(batch_of(value))
    records[0:8] = offset.to_bytes(8, "big")
    return memoryview(records)


class LogMovesRig(World):
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
            workers=Workers.by(self.worker).files,
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
async def log_moves_rig(tmp_path: Path) -> AsyncIterator[LogMovesRig]:
    log_moves_rig = LogMovesRig(tmp_path)
    yield log_moves_rig
    log_moves_rig.worker.close()
    log_moves_rig.timers.close()
    log_moves_rig.logs.close()


async def test_a_partition_moves_while_it_is_served(log_moves_rig: LogMovesRig) -> None:
    partition = log_moves_rig.partition()
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    assert [name for name, _, _ in log_moves_rig.moves.in_directory(log_moves_rig.paths[1])] == [
        NAME
    ]
    claim = log_moves_rig.append(b"meanwhile")
    log_moves_rig.manager.commit()
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[1]
    assert log_moves_rig.partition() is partition
    assert (claim.error_code, claim.base_offset) == (0, 1)
    content = partition.read(0, 1000, isolation_level=0)
    assert b"before" in bytes(content.records)
    assert b"meanwhile" in bytes(content.records)
    assert log_moves_rig.append(b"after").base_offset == 2
    assert log_moves_rig.moves.in_directory(log_moves_rig.paths[1]) == []


async def test_where_it_is_already_nothing_moves(log_moves_rig: LogMovesRig) -> None:
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[0])
    assert log_moves_rig.moves.in_directory(log_moves_rig.paths[0]) == []


async def test_back_before_it_arrived(log_moves_rig: LogMovesRig) -> None:
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[0])
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[0]
    assert log_moves_rig.moves.in_directory(log_moves_rig.paths[1]) == []


async def test_a_throttled_move_waits_for_the_clock(log_moves_rig: LogMovesRig) -> None:
    for _ in range(3):
        log_moves_rig.append(b"x" * 1_000_000)
    log_moves_rig.manager.commit()
    log_moves_rig.rate = 1 << 20
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[0]
    log_moves_rig.clock.advance(3_000)
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[1]


async def test_a_limit_that_is_raised_counts_for_a_move_that_waits(
    log_moves_rig: LogMovesRig,
) -> None:
    for _ in range(3):
        log_moves_rig.append(b"x" * 1_000_000)
    log_moves_rig.manager.commit()
    log_moves_rig.rate = 1_000
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    await log_moves_rig.settle()
    log_moves_rig.clock.advance(500_000)
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[0]
    log_moves_rig.rate = 1e12
    log_moves_rig.clock.advance(1_000)
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[1]


async def test_a_topic_that_is_deleted_ends_its_move(log_moves_rig: LogMovesRig) -> None:
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    log_moves_rig.delete("t")
    await log_moves_rig.settle()
    assert log_moves_rig.moves.in_directory(log_moves_rig.paths[1]) == []
    assert log_moves_rig.logs.logs == {}


async def test_a_topic_that_is_deleted_ends_its_move_that_waits(
    log_moves_rig: LogMovesRig,
) -> None:
    for _ in range(3):
        log_moves_rig.append(b"x" * 1_000_000)
    log_moves_rig.manager.commit()
    log_moves_rig.rate = 1
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    await log_moves_rig.settle()
    log_moves_rig.delete("t")
    log_moves_rig.clock.advance(1_000)
    await log_moves_rig.settle()
    assert log_moves_rig.moves.in_directory(log_moves_rig.paths[1]) == []
    assert not list(log_moves_rig.logs.disk.files.list_directories(log_moves_rig.paths[1]))


async def test_a_topic_that_is_made_again_during_its_move_moves_anew(
    log_moves_rig: LogMovesRig,
) -> None:
    """The copy of the earlier log is not done yet, and goes."""
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    log_moves_rig.delete("t")
    log_moves_rig.create("t")
    assert log_moves_rig.directory == log_moves_rig.paths[0]
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[1]
    assert log_moves_rig.moves.in_directory(log_moves_rig.paths[1]) == []


async def test_a_directory_that_fails_ends_the_moves_into_it(log_moves_rig: LogMovesRig) -> None:
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    log_moves_rig.logs.fail_directory(log_moves_rig.paths[1])
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[0]
    assert log_moves_rig.moves.in_directory(log_moves_rig.paths[1]) == []


async def test_a_directory_that_fails_in_the_last_step_of_a_move_ends_it(
    log_moves_rig: LogMovesRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch that the directory refuses is staged when the exchange begins."""
    rig = log_moves_rig
    lost: list[TopicPartition] = []
    failed = FailedDirectories(
        logs=rig.logs, partitions=rig.manager, on_offline=lost.extend, on_fatal=pytest.fail
    )
    rig.manager.on_storage_error = failed.note
    rig.files.fail_errno = errno.EIO
    claims = []
    end_move = LogMoves._end

    def end(*arguments: Any) -> None:
        claims.append(rig.append(b"refused"))
        rig.fail_next_write()
        end_move(*arguments)

    monkeypatch.setattr(LogMoves, "_end", end)
    rig.moves.alter(NAME, rig.paths[1])
    await rig.settle()
    assert [claim.error_code for claim in claims] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert lost == [NAME]
    assert rig.moves.in_directory(rig.paths[1]) == []
    assert rig.logs.logs == {}


async def test_a_disk_that_refuses_keeps_the_partition_where_it_is(
    log_moves_rig: LogMovesRig, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        log_moves_rig.append(b"x" * 1_000_000)
    log_moves_rig.manager.commit()
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    log_moves_rig.fail_next_write()
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[0]
    assert "partition t-0 stays in" in caplog.text
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[1]


async def test_impossible_moves_are_refused_as_by_kafka(log_moves_rig: LogMovesRig) -> None:
    other = log_moves_rig.paths[1]
    assert log_moves_rig.refusal(NAME, other + "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    long = TopicPartition("n" * 214, 0)
    assert log_moves_rig.refusal(long, other) == ErrorCode.INVALID_TOPIC_EXCEPTION
    unknown = TopicPartition("u", 0)
    assert log_moves_rig.refusal(unknown, other) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    log_moves_rig.create("elsewhere", partition_image(leader=7, isr=(7,), replicas=(7,)))
    assert (
        log_moves_rig.refusal(TopicPartition("elsewhere", 0), other)
        == ErrorCode.REPLICA_NOT_AVAILABLE
    )
    log_moves_rig.logs.fail_directory(other)
    assert log_moves_rig.refusal(NAME, other) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_partition_to_come_is_made_where_it_was_wished(log_moves_rig: LogMovesRig) -> None:
    for _ in range(2):
        log_moves_rig.refusal(TopicPartition("u", 0), log_moves_rig.paths[0])
    log_moves_rig.create("filler")  # the other directory would be the emptier one
    log_moves_rig.create("u")
    assert log_moves_rig.partition("u").log.log_directory == log_moves_rig.paths[0]


async def test_a_follower_moves_while_it_follows(log_moves_rig: LogMovesRig) -> None:
    """Kafka moves any replica of the broker, whoever leads it."""
    log_moves_rig.change("t", 0, partition_image(leader=7, epoch=1))
    follower = log_moves_rig.replica()
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    log_moves_rig.manager.append_as_follower(
        follower,
        batch_at(1, b"of the leader"),
        leader_high_watermark=1,
        leader_log_start_offset=0,
    )
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[1]
    assert log_moves_rig.replica() is follower
    assert (follower.log_end_offset, follower.high_watermark) == (2, 1)
    log_moves_rig.manager.append_as_follower(
        follower, batch_at(2, b"later"), leader_high_watermark=3, leader_log_start_offset=0
    )
    assert (follower.log_end_offset, follower.high_watermark) == (3, 3)
    assert values_of(follower.log) == [b"before", b"of the leader", b"later"]


async def test_a_follower_that_is_cut_during_its_move_has_what_its_leader_has(
    log_moves_rig: LogMovesRig,
) -> None:
    log_moves_rig.change("t", 0, partition_image(leader=7, epoch=1))
    follower = log_moves_rig.replica()
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    log_moves_rig.manager.truncate(follower, 0)
    log_moves_rig.manager.append_as_follower(
        follower, batch_at(0, b"instead"), leader_high_watermark=1, leader_log_start_offset=0
    )
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[1]
    assert values_of(follower.log) == [b"instead"]


async def test_a_follower_whose_directory_failed_does_not_move(log_moves_rig: LogMovesRig) -> None:
    log_moves_rig.change("t", 0, partition_image(leader=7, epoch=1))
    log_moves_rig.manager.take_offline(
        log_moves_rig.logs.fail_directory(log_moves_rig.paths[0]) or []
    )
    assert log_moves_rig.refusal(NAME, log_moves_rig.paths[1]) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_replica_to_come_is_made_where_it_was_wished(log_moves_rig: LogMovesRig) -> None:
    """The topic is there, the replica is not: a reassignment is about to bring it."""
    log_moves_rig.create("u", partition_image(leader=7, isr=(7,), replicas=(7,)))
    name = TopicPartition("u", 0)
    assert log_moves_rig.refusal(name, log_moves_rig.paths[0]) == ErrorCode.REPLICA_NOT_AVAILABLE
    log_moves_rig.create("filler")  # the other directory would be the emptier one
    log_moves_rig.change("u", 0, partition_image(leader=7, epoch=1, isr=(7,), replicas=(7, 0)))
    assert log_moves_rig.replica("u").log.log_directory == log_moves_rig.paths[0]


@pytest.mark.pure("replaces Partition.exchange_log")
async def test_a_bug_in_the_exchange_takes_the_directory_offline(
    log_moves_rig: LogMovesRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The partition has the old log, the log manager the new one: neither can be served."""
    outcomes: list[StorageError] = []
    log_moves_rig.manager.on_storage_error = outcomes.append

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Partition, "exchange_log", fail)
    log_moves_rig.moves.alter(NAME, log_moves_rig.paths[1])
    await log_moves_rig.settle()
    assert [(error.log_directory, error.is_lasting) for error in outcomes] == [
        (log_moves_rig.paths[1], True)
    ]
    assert "a bug" in caplog.text
    assert log_moves_rig.moves.in_directory(log_moves_rig.paths[1]) == []


async def test_a_move_that_a_stop_interrupted_begins_again(log_moves_rig: LogMovesRig) -> None:
    log_moves_rig.logs._futures[NAME] = log_moves_rig.paths[1]
    log_moves_rig.moves.resume()
    await log_moves_rig.settle()
    assert log_moves_rig.directory == log_moves_rig.paths[1]
