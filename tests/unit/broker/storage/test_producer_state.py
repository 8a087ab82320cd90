"""The producers of a partition: snapshots, expiry, origins; sequences are in tests/property."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minibroker.broker.storage.producer_state import (
    BATCHES_KEPT,
    EarlierBatches,
    EpochBatches,
    Origin,
    ProducerState,
    RecentBatch,
    parse_snapshot,
)
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.batch import BatchHeader, read_header
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.crc import crc32c
from tests.support import java
from tests.support.batches import TRANSACTIONAL, batch


def batches(first: int, last: int) -> tuple[RecentBatch, ...]:
    """Return batches of one record; each has its offset as its sequence."""
    return tuple(RecentBatch(number, number, 0, 0) for number in range(first, last + 1))


def test_batches_in_memory_come_last_and_five_count() -> None:
    earlier = EarlierBatches(20)
    earlier.note_read(10, 10, {1: EpochBatches(0, batches(15, 19))})
    assert earlier.of(1, 0, batches(19, 20)) == batches(16, 20)
    assert earlier.of(1, 0, batches(16, 20)) == batches(16, 20)


def test_batches_of_another_epoch_or_producer_do_not_count() -> None:
    earlier = EarlierBatches(20)
    earlier.note_read(10, 10, {1: EpochBatches(0, batches(15, 19))})
    assert earlier.of(1, 1, batches(20, 20)) == batches(20, 20)
    assert earlier.of(2, 0, batches(20, 20)) == batches(20, 20)


def test_earlier_batches_are_put_in_front() -> None:
    late = EpochBatches(1, batches(7, 8))
    assert late.behind(EpochBatches(1, batches(1, 5))) == EpochBatches(1, batches(3, 5) + late[1])
    assert late.behind(EpochBatches(0, batches(1, 5))) == late


def test_a_producer_is_read_once() -> None:
    earlier = EarlierBatches(20)
    assert earlier.may_hold_more(1, 0, batches(19, 19))
    earlier.note_read(15, 5, {1: EpochBatches(0, batches(18, 19))})
    assert earlier.may_hold_more(1, 0, batches(19, 19))
    earlier.note_read(10, 5, {1: EpochBatches(0, batches(15, 19))})
    assert not earlier.may_hold_more(1, 0, batches(19, 19))


def test_nothing_is_read_where_nothing_can_be() -> None:
    earlier = EarlierBatches(20)
    assert not earlier.may_hold_more(1, 0, batches(16, 20))  # five are there
    assert not earlier.may_hold_more(1, 0, batches(21, 22))  # it came after the snapshot
    assert not earlier.may_hold_more(1, 0, batches(0, 1))  # an epoch begins with 0
    earlier.note_read(0, 20, {})
    assert not earlier.may_hold_more(1, 0, batches(19, 19))  # the log has no more


COMMIT = TransactionMarker(True, 5)
ABORT = TransactionMarker(False, 5)
LONG_MAX = 2**63 - 1


class Log:
    """The producer state of a partition and the offset at which the next batch goes."""

    def __init__(self) -> None:
        self.state = ProducerState("topic-0")
        self.end_offset = 0

    def header(
        self,
        sequence: int,
        count: int = 1,
        *,
        producer: int = 1,
        epoch: int = 0,
        timestamp: int = 1000,
        transactional: bool = False,
    ) -> BatchHeader:
        data = batch(
            *[b"x"] * count,
            producer_id=producer,
            producer_epoch=epoch,
            sequence=sequence,
            base_offset=self.end_offset,
            timestamp_ms=timestamp,
            attributes=TRANSACTIONAL if transactional else 0,
        )
        return read_header(data)

    def send(
        self,
        sequence: int,
        count: int = 1,
        *,
        origin: Origin = "client",
        **fields: int | bool,
    ) -> int | str:
        """First offset of the batch (or of the one it repeats), or the name of the error."""
        header = self.header(sequence, count, **fields)  # type: ignore[arg-type]
        try:
            repeated = self.state.append(header, origin)
        except KafkaError as error:
            return error.code.name
        if repeated is not None:
            return repeated.first_offset
        self.end_offset = header.last_offset + 1
        return header.base_offset

    def end(
        self,
        marker: TransactionMarker,
        *,
        producer: int = 1,
        epoch: int = 0,
        origin: Origin = "coordinator",
    ) -> tuple[int, int, bool, int] | str | None:
        """(first offset, last offset, is aborted, last stable offset), or the name of the error."""
        data = build_marker(
            marker,
            producer_id=producer,
            producer_epoch=epoch,
            timestamp_ms=2000,
            base_offset=self.end_offset,
        )
        try:
            completed = self.state.append_marker(read_header(data), marker, origin)
        except KafkaError as error:
            return error.code.name
        self.end_offset += 1
        return None if completed is None else completed[1:]


def test_a_repetition_carries_the_first_ones_timestamp() -> None:
    log = Log()
    log.send(0, 2, timestamp=777)
    repeated = log.state.append(log.header(0, 2, timestamp=999))
    assert repeated == RecentBatch(1, 1, 1, 777)


def test_a_repetition_older_than_five_is_out_of_order() -> None:
    """Kafka answers this since 1.1: only 1.0 had DUPLICATE_SEQUENCE_NUMBER for it."""
    log = Log()
    for sequence in range(BATCHES_KEPT + 1):
        log.send(sequence)
    assert log.send(0) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(1) == 1


def test_a_newer_epoch_begins_with_sequence_0() -> None:
    log = Log()
    log.send(0, 2)
    assert log.send(2, epoch=1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.send(0, epoch=1) == 2
    assert log.send(0, 2, epoch=0) == "INVALID_PRODUCER_EPOCH"
    assert log.send(1, epoch=1) == 3


def test_messages_name_producer_partition_and_both_numbers() -> None:
    log = Log()
    log.send(0)
    with pytest.raises(KafkaError) as raised:
        log.state.append(log.header(7))
    detail = str(raised.value.detail)
    assert "producer 1 in topic-0, offset 1" in detail
    assert "is 7" in detail
    assert "is 0" in detail


def test_a_rollback_restores_the_order_of_open_transactions() -> None:
    log = Log()
    log.send(0, producer=1, transactional=True)
    log.send(0, producer=2, transactional=True)
    log.state.commit()
    log.end(COMMIT, producer=1)
    assert log.state.first_unstable_offset == 0
    log.state.rollback()
    log.end_offset = 2
    assert log.end(COMMIT, producer=2) == (1, 2, False, 0)


class CountingDict(dict[int, int]):
    """Counts the entries that are read one after the other."""

    read_count = 0

    def __iter__(self) -> Iterator[int]:
        for key in super().__iter__():
            self.read_count += 1
            yield key

    def items(self) -> Any:
        return ((key, self[key]) for key in self)

    def keys(self) -> Any:
        return iter(self)


def test_a_transaction_costs_the_same_beside_many_open_ones() -> None:
    log = Log()
    for producer in range(500):
        log.send(0, producer=producer, transactional=True)
    log.state.commit()
    open_ones = log.state._open = CountingDict(log.state._open)
    log.send(0, producer=1_000, transactional=True)
    log.end(COMMIT, producer=1_000)
    log.state.commit()
    log.state.on_high_watermark(log.end_offset)
    assert open_ones.read_count == 1  # the earliest open transaction


def test_a_stable_transaction_stays_stable_when_later_writes_fail() -> None:
    log = Log()
    log.send(0, transactional=True)
    log.end(COMMIT)
    log.state.commit()
    log.send(0, producer=2, transactional=True)
    log.state.on_high_watermark(2)
    log.state.rollback()
    assert log.state.first_unstable_offset is None


def test_the_first_unstable_offset() -> None:
    log = Log()
    assert log.state.first_unstable_offset is None
    log.send(0, 2)
    assert log.state.first_unstable_offset is None
    log.send(0, 2, producer=2, transactional=True)
    log.send(0, 2, producer=3, transactional=True)
    log.send(2, 1, producer=2, transactional=True)
    assert log.state.first_unstable_offset == 2
    assert log.end(ABORT, producer=2) == (2, 7, True, 4)
    assert log.state.first_unstable_offset == 2
    log.state.on_high_watermark(7)
    assert log.state.first_unstable_offset == 2
    log.state.on_high_watermark(8)
    assert log.state.first_unstable_offset == 4
    assert log.end(COMMIT, producer=3) == (4, 8, False, 9)
    log.state.on_high_watermark(9)
    assert log.state.first_unstable_offset is None


def test_a_marker_keeps_sequences_and_ends_one_transaction() -> None:
    log = Log()
    log.send(0, transactional=True)
    log.end(COMMIT)
    assert log.end(COMMIT) is None
    assert log.send(0, transactional=True) == 0
    assert log.send(1, transactional=True) == 3
    assert log.state.first_unstable_offset == 0


def test_markers_of_zombies() -> None:
    log = Log()
    log.send(0, epoch=2, transactional=True)
    assert log.end(ABORT, epoch=1) == "INVALID_PRODUCER_EPOCH"
    assert log.end(TransactionMarker(True, 7), epoch=2) == (0, 1, False, 2)
    assert log.end(TransactionMarker(True, 6), epoch=2) == "TRANSACTION_COORDINATOR_FENCED"


def test_a_marker_may_be_the_first_thing_seen_of_a_producer() -> None:
    log = Log()
    assert log.end(ABORT, epoch=3) is None
    assert log.state.producers[1].epoch == 3
    assert log.send(0, epoch=3) == 1


def test_replication_is_not_judged() -> None:
    log = Log()
    log.send(5, epoch=3, origin="replication")
    assert log.send(9, epoch=3, origin="replication") == 1
    assert log.send(1, epoch=2, origin="replication") == 2
    assert log.state.producers[1].epoch == 2
    assert log.end(TransactionMarker(True, 1), epoch=1, origin="replication") is None


def test_the_coordinator_is_judged_by_epoch_only() -> None:
    log = Log()
    assert log.send(-1, epoch=3, origin="coordinator") == 0
    assert log.send(-1, epoch=3, origin="coordinator") == 1
    assert log.send(-1, epoch=2, origin="coordinator") == "INVALID_PRODUCER_EPOCH"


def test_silent_producers_expire() -> None:
    log = Log()
    log.send(0, producer=1, timestamp=1000)
    log.send(0, producer=2, timestamp=1001)
    log.send(0, producer=3, timestamp=1000, transactional=True)
    for _ in log.state.remove_expired(1500, 500):
        pass
    assert set(log.state.producers) == {2, 3}
    assert log.send(9, producer=1) == 3


def test_a_producer_that_comes_back_between_two_steps_stays() -> None:
    log = Log()
    for producer in range(2_000):
        log.send(0, producer=producer, timestamp=1000)
    steps = log.state.remove_expired(1500, 500)
    next(steps)
    assert 0 < len(log.state.producers) < 2_000
    log.send(1, producer=1_999, timestamp=1400)
    for _ in steps:
        pass
    assert set(log.state.producers) == {1_999}


def test_the_snapshot_byte_for_byte() -> None:
    log = Log()
    log.send(7, 3, producer=4, epoch=2, timestamp=1234)
    log.send(0, 1, producer=2, timestamp=99, transactional=True)
    log.end(ABORT, producer=9)
    body = struct.pack(">i", 3)
    body += struct.pack(">qhiqiqiq", 2, 0, 0, 3, 0, 99, -1, 3)
    body += struct.pack(">qhiqiqiq", 4, 2, 9, 2, 2, 1234, -1, -1)
    body += struct.pack(">qhiqiqiq", 9, 0, -1, -1, 0, 2000, 5, -1)
    assert log.state.to_snapshot() == struct.pack(">hI", 1, crc32c(body)) + body


def test_state_comes_back_from_a_snapshot() -> None:
    """The last batch of every producer is in it: its repetition is known, those before are not."""
    log = Log()
    log.send(0, 2)
    log.send(2, 3)
    log.send(0, producer=5, transactional=True)
    restored = Log()
    restored.state.load_snapshot(log.state.to_snapshot(), 0, 0, LONG_MAX)
    restored.end_offset = log.end_offset
    assert restored.state.first_unstable_offset == 5
    assert restored.send(2, 3) == 2
    assert restored.send(0, 2) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert restored.send(5) == 6
    assert restored.end(COMMIT, producer=5) == (5, 7, False, 8)


def test_expired_producers_are_not_loaded() -> None:
    log = Log()
    log.send(0, producer=1, timestamp=1000)
    log.send(0, producer=2, timestamp=2000)
    log.state.load_snapshot(log.state.to_snapshot(), 0, 2000, 1000)
    assert set(log.state.producers) == {2}


def test_loading_replaces_everything() -> None:
    log = Log()
    empty = log.state.to_snapshot()
    log.send(0, transactional=True)
    log.state.load_snapshot(empty, 0, 0, LONG_MAX)
    log.state.rollback()
    assert log.state.producers == {}
    assert log.state.first_unstable_offset is None


def test_clear() -> None:
    log = Log()
    log.send(0, transactional=True)
    log.end(ABORT)
    log.state.clear()
    assert log.state.producers == {}
    assert log.state.first_unstable_offset is None


def test_broken_snapshots_change_nothing() -> None:
    log = Log()
    log.send(0)
    good = log.state.to_snapshot()
    for cut in range(len(good)):
        with pytest.raises(CorruptionError, match="producer snapshot"):
            log.state.load_snapshot(good[:cut], 0, 0, LONG_MAX)
    for position in range(len(good)):
        broken = bytearray(good)
        broken[position] ^= 0x40
        with pytest.raises(CorruptionError, match="producer snapshot"):
            parse_snapshot(bytes(broken))
    assert log.state.to_snapshot() == good


def test_a_snapshot_that_announces_more_than_it_holds() -> None:
    body = struct.pack(">i", 2) + bytes(46)
    with pytest.raises(CorruptionError, match="announces 2 entries in 56 bytes"):
        parse_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)


@pytest.mark.java
def test_kafka_reads_our_snapshot(tmp_path: Path) -> None:
    """DumpLogSegments of Apache Kafka 3.9.1 prints what we wrote."""
    log = Log()
    log.send(7, 3, producer=4, epoch=2, timestamp=1234)
    log.send(0, 1, producer=2, timestamp=99, transactional=True)
    log.end(ABORT, producer=9)
    path = tmp_path / f"{log.end_offset:020d}.snapshot"
    path.write_bytes(log.state.to_snapshot())
    printed = java.run_java(java.KAFKA_39, "kafka.tools.DumpLogSegments", "--files", str(path))
    for line in (
        "producerId: 2 producerEpoch: 0 coordinatorEpoch: -1 "
        "currentTxnFirstOffset: OptionalLong[3] lastTimestamp: 99 "
        "firstSequence: 0 lastSequence: 0 lastOffset: 3 offsetDelta: 0 timestamp: 99",
        "producerId: 4 producerEpoch: 2 coordinatorEpoch: -1 "
        "currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 1234 "
        "firstSequence: 7 lastSequence: 9 lastOffset: 2 offsetDelta: 2 timestamp: 1234",
        "producerId: 9 producerEpoch: 0 coordinatorEpoch: 5 "
        "currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 2000",
    ):
        assert line in printed, printed
