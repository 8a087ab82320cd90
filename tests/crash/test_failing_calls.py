"""Any one system call fails, at any place: no promise is broken.

A broker's log gets appends of an idempotent producer, transactions that commit and abort, rolls,
syncs, checkpoints, retention, a stop and a start, with `flush.messages=1`. One of its calls (number
1, 2, 3, …) raises EIO, ENOSPC or EMFILE. Producers and the coordinator send again, like real ones.
Then the power goes. Every acknowledged record is there once, and no record of an aborted
transaction can be read.

CI takes a part of the calls with each error; `MINIBROKER_CRASHES=500` (`make crash`) takes all.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.image import MetadataImage, TopicImage
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.partitions.log_directories import FailedDirectories
from minibroker.broker.partitions.manager import PartitionManager
from minibroker.broker.storage import log_reads, retention
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_manager import LogManager
from minibroker.kafka.errors import KafkaError, MinibrokerError, StorageError
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.record import decode_records
from tests.support.check import broken_things
from tests.support.faulty_files import FaultyFiles
from tests.support.in_process import ManualClock, batch_of
from tests.support.logs import TOPIC_ID, abandon, marker_of
from tests.support.runners import workers_of
from tests.unit.broker.partitions.conftest import Claim, partition_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.storage.files import Files
    from minibroker.broker.storage.partition_log import PartitionLog

IS_WHOLE = int(os.environ.get("MINIBROKER_CRASHES", "0")) > 0
STEP = 1 if IS_WHOLE else 7
ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EMFILE": errno.EMFILE}
SETTINGS = {"flush.messages": "1", "segment.bytes": "500", "index.interval.bytes": "100"}
PLAIN, TRANSACTIONAL = 1, 2
TRIES = 3


class Node:
    """One run of a broker over the directory: logs, a partition, directories that go offline."""

    def __init__(self, path: Path, files: Files) -> None:
        """Start the broker. Raises StorageError if it cannot start."""
        self.clock = ManualClock()
        self.dynamic = DynamicConfig(BrokerConfig({"log.dirs": str(path)}))
        self.dynamic.set_topic("t", SETTINGS)
        topic = TopicImage("t", TOPIC_ID, [partition_image()])
        self.image = MetadataImage()
        self.image.topics["t"] = self.image.topic_by_id[TOPIC_ID] = topic
        disk = Disk(files, workers_of(self._work), after=lambda _delay_ms, task: self._work(task))
        self.logs = LogManager(
            [str(path)], clock=self.clock, config_of=self.dynamic.topic, disk=disk
        )
        self.manager = PartitionManager(
            broker_id=0,
            image=lambda: self.image,
            logs=self.logs,
            dynamic=self.dynamic,
            on_change=lambda: None,
        )
        self.is_over = False
        self._refused: list[StorageError] = []
        failed = FailedDirectories(
            logs=self.logs,
            partitions=self.manager,
            on_offline=lambda _lost: None,
            on_fatal=self._end,
        )
        self._note = failed.note
        self.manager.on_storage_error = failed.note
        try:
            self.logs.open()
            self.logs.claim(0, "a-cluster")
            self.logs.load()
        except StorageError:
            self.logs.release()
            raise
        self.manager.on_topic_created(topic)

    def _end(self, _reason: str) -> None:
        self.is_over = True

    def _work(self, task: Callable[[], None]) -> None:
        """Run a task like a worker: an error reaches the loop later, not the caller."""
        try:
            task()
        except StorageError as error:
            self._refused.append(error)
        except (MinibrokerError, OSError):
            return

    @property
    def partition(self) -> Partition:
        """Return the partition. Raises KafkaError if it is offline."""
        while self._refused:
            self._note(self._refused.pop(0))
        return self.manager.get("t", 0)

    def housekeeping(self) -> None:
        """Do the work of timers: a sync, checkpoints, retention."""
        try:
            log = self.partition.log
            task = log.durability.sync_task()
            if task is not None:
                task()
                task.apply()
            self.logs.checkpoint_now()
            log.advance_log_start(min(1, log.log_end_offset))
            retention.delete_old_segments(log, log.log_end_offset, self.clock.now_ms())
        except StorageError as error:
            self._note(error)
        except KafkaError:
            return  # offline


class Story:
    """The sent batches and their outcomes."""

    def __init__(self) -> None:
        self.node: Node | None = None
        self.sequences = {PLAIN: 0, TRANSACTIONAL: 0}
        self.is_stuck = False
        """True once a producer cannot write a batch: it sends none behind it."""
        self.values: list[bytes] = []
        self.acknowledged: list[bytes] = []
        self.outcomes: dict[bytes, bool] = {}
        """Value of a decided transaction → whether it was committed."""
        self.undecided: list[bytes] = []
        self.due: bool | None = None
        """The coordinator's decision while its marker is not written."""

    def send(self, value: bytes, producer: int = PLAIN) -> None:
        """Send a batch like a producer: again while the broker answers a disk error."""
        if self.is_stuck or self.due is not None:
            return
        self.values.append(value)
        if producer == TRANSACTIONAL:
            self.undecided.append(value)
        batch = batch_of(
            value,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences[producer],
            is_transactional=producer == TRANSACTIONAL,
        )
        if self._append(bytes(batch), "client"):
            self.acknowledged.append(value)
            self.sequences[producer] += 1
        else:
            self.is_stuck = True

    def _append(self, batch: bytes, origin: str) -> bool:
        assert self.node is not None
        for _ in range(TRIES):
            claim = Claim()
            try:
                self.node.partition.append(
                    memoryview(bytearray(batch)),
                    -1,
                    self.node.clock.now_ms(),
                    claim,
                    origin=origin,  # type: ignore[arg-type]
                )
            except KafkaError:
                self.node.manager.commit()
                continue
            self.node.manager.commit()
            flushing = self.node.manager.appends.flushing
            assert flushing is None or flushing.future.done()
            if not claim.error_code:
                return True
        return False

    def decide(self, *, is_commit: bool) -> None:
        """Decide like the coordinator, and write the marker now or later."""
        if self.due is None:
            self.due = is_commit
            self.outcomes.update(dict.fromkeys(self.undecided, is_commit))
            self.undecided = []
        self.write_marker()

    def write_marker(self) -> None:
        """Write the due marker, if the broker accepts it."""
        if self.due is None:
            return
        marker = marker_of(TRANSACTIONAL, is_commit=self.due, timestamp_ms=0)
        if self._append(bytes(marker), "coordinator"):
            self.due = None

    def live(self, path: Path, files: Files) -> None:
        """Run the broker twice, with all kinds of work.

        Raises StorageError if the second start fails.
        """
        self.node = Node(path, files)
        for number in range(4):
            self.send(b"plain %d " % number * 8)
        self.send(b"aborted 1 " * 9, TRANSACTIONAL)
        self.send(b"between " * 9)
        self.node.housekeeping()
        self.send(b"aborted 2 " * 9, TRANSACTIONAL)
        self.decide(is_commit=False)
        self.send(b"committed " * 9, TRANSACTIONAL)
        self.decide(is_commit=True)
        self.node.housekeeping()
        self.send(b"before the stop " * 5)
        if self.node.is_over:
            return
        self.node.logs.close()
        self.node = Node(path, files)
        self.write_marker()
        self.send(b"after the start " * 5)
        self.send(b"open " * 9, TRANSACTIONAL)
        self.send(b"last " * 9)


def visible(log: PartitionLog) -> tuple[list[bytes], list[bytes]]:
    """Return all values of the log, and those that a consumer of committed records gets."""
    values: list[bytes] = []
    committed: list[bytes] = []
    log.update_high_watermark(log.log_end_offset)
    start, end = log.log_start_offset, log.log_end_offset
    aborted = log_reads.aborted_transactions(log, start, end)
    offset = start
    while offset < end:
        records = log_reads.read(log, offset, 1 << 20, end_offset=end, min_one_batch=True).records
        for position, header in iterate_headers(records):
            offset = header.last_offset + 1
            if header.is_control:
                continue
            visible_values = [record.value or b"" for record in decode_records(records[position:])]
            values += visible_values
            is_aborted = header.is_transactional and any(
                transaction.producer_id == header.producer_id
                and transaction.first_offset <= header.base_offset <= transaction.last_offset
                for transaction in aborted
            )
            if not is_aborted and header.last_offset < log.last_stable_offset:
                committed += visible_values
    return values, committed


def check(path: Path, story: Story) -> None:
    """Check every promise, with a healthy disk again."""
    node = story.node = Node(path, REAL_FILES)
    assert broken_things(path, is_strict=False) == []
    if story.undecided:
        story.due = None
        story.decide(is_commit=False)  # the producer is gone, its transaction times out
    story.write_marker()
    assert story.due is None
    log = node.partition.log
    values, committed = visible(log)
    assert len(set(values)) == len(values), "a record is there twice"
    removed = story.acknowledged[:1] if log.log_start_offset else []  # retention took it
    lost = set(story.acknowledged) - set(values) - set(removed)
    assert not lost, f"{lost} were acknowledged"
    assert set(values) <= set(story.values)
    readable = {value for value, is_commit in story.outcomes.items() if is_commit}
    unreadable = set(story.outcomes) - readable
    assert not unreadable & set(committed), "a record of an aborted transaction can be read"
    assert set(values) - unreadable == set(committed), "a record cannot be read"
    abandon(node.logs)


async def live_and_fail(path: Path, call: int, error: int) -> bool:
    """Run one life in which this call fails, cut the power and check.

    Return False if the life ended before the call.
    """
    REAL_FILES.make_directory(str(path))
    files = FaultyFiles(str(path))
    files.counts_reads = True
    files.fail_at, files.fail_errno = call, error
    story = Story()
    try:
        story.live(path, files)
    except StorageError:
        assert files.call_count >= call  # the start was refused
    has_failed = files.call_count >= call
    files.fail_at, files.counts_reads = -1, False
    if story.node is not None:
        abandon(story.node.logs)
    files.power_cut()
    files.forget_pins()
    check(path, story)
    return has_failed


@pytest.mark.parametrize("error", ERRORS)
async def test_any_call_may_fail(tmp_path: Path, error: str) -> None:
    call = 1 + list(ERRORS).index(error)
    while await live_and_fail(tmp_path / str(call), call, ERRORS[error]):
        call += STEP
    assert call > 200


async def test_without_an_error_all_of_it_is_acknowledged(tmp_path: Path) -> None:
    """The script works without errors; a log that refuses everything would pass every check."""
    story = Story()
    path = tmp_path / "data"
    story.live(path, REAL_FILES)
    assert story.node is not None
    assert len(story.acknowledged) == len(story.values) == 12
    assert sorted(story.outcomes.values()) == [False, False, True]
    assert story.node.partition.log.log_start_offset > 0
    abandon(story.node.logs)
    check(path, story)
