"""Surviving records: rule by rule, batch in, batch out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.compaction.survivors import (
    ENTRY_BYTES,
    REMOVED,
    CleanedTransactions,
    LastRecord,
    OffsetMap,
    Survivors,
)
from minibroker.broker.storage.txn_index import AbortedTransaction
from minibroker.kafka.records.batch import (
    DELETE_HORIZON_FLAG,
    BatchHeader,
    crc_is_valid,
    read_header,
)
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.control import TransactionMarker, build_marker, read_marker
from minibroker.kafka.records.conversion import read_records
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record, decode_records
from tests.support.compaction import keyed

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_the_last_offset_of_a_key_counts() -> None:
    offsets = OffsetMap(1 << 20, 0.9)
    offsets.put(b"a", 1)
    offsets.put(b"b", 2)
    offsets.put(b"a", 3)
    assert (offsets.get(b"a"), offsets.get(b"b"), offsets.get(b"c")) == (3, 2, -1)
    assert len(offsets) == 2


def test_long_keys_are_told_apart_from_each_other_and_from_their_digests() -> None:
    offsets = OffsetMap(1 << 20, 0.9)
    long_keys = [b"x" * length for length in range(20, 40)]
    for offset, key in enumerate(long_keys):
        offsets.put(key, offset)
    assert [offsets.get(key) for key in long_keys] == list(range(20))
    for digest in list(offsets._offsets):
        if digest not in long_keys:
            assert offsets.get(digest) == -1


def test_it_is_full_at_its_share_of_the_memory() -> None:
    offsets = OffsetMap(10 * ENTRY_BYTES, 0.5)
    for number in range(4):
        offsets.put(b"%d" % number, number)
        assert not offsets.is_full
    offsets.put(b"4", 4)
    assert offsets.is_full
    assert offsets.utilization == 1.0
    offsets.clear()
    assert not offsets.is_full
    assert (len(offsets), offsets.latest_offset) == (0, -1)


def test_a_buffer_that_holds_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"log\.cleaner\.dedupe\.buffer\.size=100"):
        OffsetMap(100, 0.9)


def test_a_full_one_stays_within_its_memory() -> None:
    memory_bytes = 4 << 20
    offsets = OffsetMap(memory_bytes, 1.0)
    number = 0
    while not offsets.is_full:
        offsets.put(b"%030d" % number, 1 << 40 | number)
        number += 1
    table = offsets._offsets
    used = sys.getsizeof(table) + sum(
        sys.getsizeof(key) + sys.getsizeof(offset) for key, offset in table.items()
    )
    assert used <= memory_bytes


ABORT = TransactionMarker(is_commit=False, coordinator_epoch=0)
COMMIT = TransactionMarker(is_commit=True, coordinator_epoch=0)


def data(offset: int, producer_id: int = 1, *, is_transactional: bool = True) -> BatchHeader:
    header = read_header(
        keyed((b"k", b"v"), producer_id=producer_id, sequence=0, is_transactional=is_transactional)
    )
    header.base_offset = offset
    return header


def control(offset: int, marker: TransactionMarker, producer_id: int = 1) -> BatchHeader:
    built = build_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp_ms=0)
    header = read_header(built)
    header.base_offset = offset
    return header


def test_records_of_an_aborted_transaction_are_known_from_its_first_on() -> None:
    walk = CleanedTransactions()
    aborted = AbortedTransaction(1, 5, 7, 8)
    walk.expect([aborted])
    assert not walk.note_batch(data(4))  # an earlier one of the same producer was committed
    assert not walk.note_control(control(4, COMMIT), COMMIT)
    assert walk.note_batch(data(5))
    assert not walk.note_batch(data(6, is_transactional=False))
    assert not walk.note_control(control(7, ABORT), ABORT)
    assert walk.kept_aborts == [aborted]
    assert not walk.note_batch(data(8))


def test_a_marker_without_data_before_it_may_go() -> None:
    walk = CleanedTransactions()
    walk.expect([AbortedTransaction(2, 3, 9, 10)])
    assert walk.note_control(control(1, COMMIT), COMMIT)
    assert walk.note_control(control(9, ABORT, producer_id=2), ABORT)
    assert walk.kept_aborts == []


def test_an_entry_named_twice_counts_once() -> None:
    """A transaction that spans two segments overlaps both of them."""
    walk = CleanedTransactions()
    aborted = AbortedTransaction(1, 0, 9, 10)
    walk.expect([aborted])
    assert walk.note_batch(data(0))
    walk.expect([aborted])
    assert walk.note_batch(data(5))
    assert not walk.note_control(control(9, ABORT), ABORT)
    assert walk.kept_aborts == [aborted]
    assert not walk.note_batch(data(10))


def test_an_empty_control_batch_may_go_and_other_kinds_stay() -> None:
    walk = CleanedTransactions()
    header = control(1, COMMIT)
    assert not walk.note_control(header, None)
    header.count = 0
    assert walk.note_control(header, None)


NOW_MS = 1_700_000_000_000
RETENTION_MS = 60_000
HORIZON_MS = NOW_MS + RETENTION_MS


def survivors(
    last_offsets: Mapping[bytes, int],
    *,
    latest: int = 1000,
    end_offset: int = 5000,
    now_ms: int = NOW_MS,
    last_records: dict[int, LastRecord] | None = None,
    aborted: list[AbortedTransaction] | None = None,
) -> Survivors:
    offsets = OffsetMap(1 << 20, 0.9)
    for key, offset in last_offsets.items():
        offsets.put(key, offset)
    offsets.latest_offset = latest
    transactions = CleanedTransactions()
    transactions.expect(aborted or [])
    return Survivors(
        offsets,
        transactions,
        last_records or {},
        end_offset=end_offset,
        now_ms=now_ms,
        delete_retention_ms=RETENTION_MS,
    )


def batch(*records: Record, **fields: object) -> bytes:
    base = records[0].offset
    return bytes(build_batch(records, base_offset=base, keep_offsets=True, **fields))  # type: ignore[arg-type]


def record(offset: int, key: bytes | None, value: bytes | None = b"v", time: int = 0) -> Record:
    return Record(offset, NOW_MS - 1000 + (time or offset), key, value)


def left_of(rules: Survivors, whole: bytes, *, keeps_old_tombstones: bool = True) -> bytes | None:
    survivor = rules.of_batch(
        whole, 0, read_header(whole), keeps_old_tombstones=keeps_old_tombstones
    )
    return None if survivor is None else bytes(survivor)


def check(survivor: bytes | None) -> tuple[BatchHeader, list[Record]]:
    assert survivor
    header = read_header(survivor)
    assert crc_is_valid(survivor, 0, header.size_bytes)
    assert header.size_bytes == len(survivor)
    return header, decode_records(survivor)


def test_a_batch_that_loses_nothing_is_left_as_it_is() -> None:
    whole = batch(record(10, b"a"), record(11, b"b"))
    rules = survivors({b"a": 10, b"b": 11})
    assert left_of(rules, whole) is None
    assert (rules.read_count, rules.kept_count) == (2, 2)


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_overwritten_records_go_and_the_numbers_of_the_batch_stay(codec: str) -> None:
    records = [record(10, b"a"), record(11, b"b", time=7), record(12, b"c", time=5)]
    whole = batch(*records, codec=codec, leader_epoch=3)
    header, remaining = check(left_of(survivors({b"a": 90, b"b": 11, b"c": 99}), whole))
    assert remaining == [records[1]]
    assert (header.base_offset, header.last_offset, header.count) == (10, 12, 1)
    assert header.base_timestamp == header.max_timestamp == records[1].timestamp
    assert (header.leader_epoch, header.codec) == (3, CODEC_NAMES.index(codec))
    assert not header.attributes & DELETE_HORIZON_FLAG


def test_producer_and_sequence_of_the_batch_stay() -> None:
    whole = batch(
        record(10, b"a"),
        record(11, b"b"),
        producer_id=5,
        producer_epoch=2,
        base_sequence=40,
        is_transactional=True,
    )
    header, remaining = check(left_of(survivors({b"a": 50, b"b": 11}), whole))
    assert [record.key for record in remaining] == [b"b"]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, 40)
    assert header.last_sequence == 41
    assert header.is_transactional


def test_headers_of_records_survive() -> None:
    rich = Record(11, NOW_MS, b"b", b"v", (("h", b"1"), ("h", None)))
    _, remaining = check(left_of(survivors({b"a": 50, b"b": 11}), batch(record(10, b"a"), rich)))
    assert remaining == [rich]


def test_nothing_left_is_nothing() -> None:
    assert left_of(survivors({b"a": 50}), batch(record(10, b"a"))) == REMOVED


def test_records_behind_the_map_stay() -> None:
    """The map was full: records it has not seen are the next round's."""
    whole = batch(record(10, b"a"), record(11, None), record(12, b"a"))
    _, remaining = check(left_of(survivors({b"a": 50}, latest=10), whole))
    assert [record.offset for record in remaining] == [11, 12]


def test_records_without_a_key_go() -> None:
    rules = survivors({b"b": 11})
    _, remaining = check(left_of(rules, batch(record(10, None), record(11, b"b"))))
    assert [record.offset for record in remaining] == [11]
    assert rules.invalid_count == 1


def test_an_empty_key_is_a_key() -> None:
    assert left_of(survivors({b"": 10}), batch(record(10, b""))) is None


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_a_tombstone_gets_its_delete_horizon_when_it_is_first_met(codec: str) -> None:
    records = [record(10, b"a", None), record(11, b"b")]
    header, remaining = check(
        left_of(survivors({b"a": 10, b"b": 11}), batch(*records, codec=codec))
    )
    assert remaining == records, "timestamps are those they had"
    assert header.attributes & DELETE_HORIZON_FLAG
    assert header.base_timestamp == HORIZON_MS
    assert header.max_timestamp == records[1].timestamp


def test_a_tombstone_goes_when_its_horizon_is_over_and_not_before() -> None:
    offsets = {b"a": 10, b"b": 11}
    dated = left_of(survivors(offsets), batch(record(10, b"a", None), record(11, b"b")))
    assert dated
    assert left_of(survivors(offsets, now_ms=HORIZON_MS - 1), dated) is None
    header, remaining = check(left_of(survivors(offsets, now_ms=HORIZON_MS), dated))
    assert [record.key for record in remaining] == [b"b"]
    assert header.base_timestamp == HORIZON_MS, "the horizon stays with its batch"
    assert remaining[0].timestamp == record(11, b"b").timestamp


def test_the_horizon_is_not_put_off_by_later_rounds() -> None:
    offsets = {b"a": 10, b"b": 11}
    dated = left_of(survivors(offsets), batch(record(10, b"a", None), record(11, b"b")))
    assert dated
    later = survivors({b"a": 10, b"b": 99}, now_ms=NOW_MS + 10)
    header, remaining = check(left_of(later, dated))
    assert header.base_timestamp == HORIZON_MS
    assert [record.key for record in remaining] == [b"a"]


def test_append_time_stays_that_of_the_batch() -> None:
    records = [record(10, b"a", None), record(11, b"b"), record(12, b"c")]
    whole = batch(*records, append_time_ms=NOW_MS)
    header, remaining = check(left_of(survivors({b"a": 10, b"b": 11, b"c": 99}), whole))
    assert header.is_append_time
    assert header.max_timestamp == NOW_MS
    assert [record.timestamp for record in remaining] == [NOW_MS, NOW_MS]
    assert header.base_timestamp == HORIZON_MS


def test_the_last_batch_of_an_active_producer_stays_empty() -> None:
    fields = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 7}
    whole = batch(record(10, b"a"), record(11, b"a"), codec="lz4", **fields)
    last = {5: LastRecord(11, 1)}
    header, remaining = check(left_of(survivors({b"a": 50}, last_records=last), whole))
    assert remaining == []
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 11, 8)
    assert (header.count, header.codec, header.base_timestamp) == (0, 0, -1)
    assert header.max_timestamp == read_header(whole).max_timestamp
    again = left_of(
        survivors({b"a": 50}, last_records=last),
        bytes(left_of(survivors({b"a": 50}, last_records=last), whole) or b""),
    )
    assert again, "an empty batch stays as long as it is needed"
    assert left_of(survivors({b"a": 50}, last_records={5: LastRecord(99, 1)}), whole) == REMOVED
    assert left_of(survivors({b"a": 50}, last_records={6: LastRecord(11, 1)}), whole) == REMOVED


def test_the_last_batch_of_the_compacted_part_stays_empty() -> None:
    whole = batch(record(10, b"a"), record(11, b"a"))
    header, _ = check(left_of(survivors({b"a": 50}, end_offset=12), whole))
    assert (header.last_offset, header.count) == (11, 0)


def test_records_of_aborted_transactions_go_whatever_their_keys() -> None:
    fields = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}
    whole = batch(record(10, b"only"), **fields)
    aborted = [AbortedTransaction(5, 10, 20, 21)]
    assert left_of(survivors({}, aborted=aborted), whole) == REMOVED
    last = {5: LastRecord(10, 1)}
    header, _ = check(left_of(survivors({}, aborted=aborted, last_records=last), whole))
    assert (header.count, header.is_transactional) == (0, True)


def marker(offset: int, *, is_commit: bool = True) -> bytes:
    return bytes(
        build_marker(
            TransactionMarker(is_commit, 4),
            producer_id=5,
            producer_epoch=1,
            timestamp_ms=NOW_MS,
            base_offset=offset,
        )
    )


def test_a_marker_stays_while_data_of_its_transaction_is_there() -> None:
    fields = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}
    rules = survivors({b"a": 10})
    assert left_of(rules, batch(record(10, b"a"), **fields)) is None
    assert left_of(rules, marker(11)) is None


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_lonely_marker_gets_a_horizon_and_goes_after_it(is_commit: bool) -> None:
    dated = left_of(survivors({}), marker(11, is_commit=is_commit))
    header, _ = check(dated)
    assert dated
    assert header.attributes & DELETE_HORIZON_FLAG
    assert header.base_timestamp == HORIZON_MS
    assert header.max_timestamp == NOW_MS
    assert read_marker(dated) == TransactionMarker(is_commit, 4)
    assert left_of(survivors({}, now_ms=HORIZON_MS - 1), dated) is None
    assert left_of(survivors({}, now_ms=HORIZON_MS), dated) == REMOVED
    only_known_by_it = {5: LastRecord(-1, 1)}
    empty = left_of(survivors({}, now_ms=HORIZON_MS, last_records=only_known_by_it), dated)
    header, _ = check(empty)
    assert (header.is_control, header.count, header.producer_epoch) == (True, 0, 1)
    assert empty
    assert left_of(survivors({}), empty) == REMOVED


OLD_CODECS = [(magic, codec) for magic in (0, 1) for codec in (0, 1, 2, 3)]


@pytest.mark.parametrize(("magic", "codec"), OLD_CODECS)
def test_old_formats_keep_their_offsets(magic: int, codec: int) -> None:
    time = NOW_MS if magic else -1
    records = [Record(10 + n, time, b"%d" % n, b"v") for n in range(4)]
    whole = bytes(build_message_set(records, magic=magic, codec=codec))
    rules = survivors({b"0": 50, b"1": 11, b"2": 12, b"3": 60})
    content = _left_of_all(rules, whole)
    assert _read_all(content) == records[1:3]
    if codec:
        assert read_header(content).base_offset == 12, "a wrapper has its last inner offset"


@pytest.mark.parametrize(("magic", "codec"), OLD_CODECS)
def test_old_tombstones_go_by_the_age_of_their_segment(magic: int, codec: int) -> None:
    time = NOW_MS if magic else -1
    records = [Record(10, time, b"a", None), Record(11, time, b"b", b"v")]
    whole = bytes(build_message_set(records, magic=magic, codec=codec))
    offsets = {b"a": 10, b"b": 11}
    assert _left_of_all(survivors(offsets), whole) == whole
    content = _left_of_all(survivors(offsets), whole, keeps_old_tombstones=False)
    assert _read_all(content) == records[1:]


def test_old_append_time_stays() -> None:
    records = [Record(10 + n, NOW_MS - n, b"%d" % n, b"v") for n in range(3)]
    whole = bytes(build_message_set(records, magic=1, codec=1, append_time_ms=NOW_MS))
    content = _left_of_all(survivors({b"0": 50, b"1": 11, b"2": 12}), whole)
    assert read_header(content).is_append_time
    assert [(record.offset, record.timestamp) for record in _read_all(content)] == [
        (11, NOW_MS),
        (12, NOW_MS),
    ]


def test_the_last_old_message_of_the_compacted_part_stays() -> None:
    records = [Record(10, NOW_MS, None, b"a"), Record(11, NOW_MS, None, b"b")]
    whole = bytes(build_message_set(records, magic=1, codec=1))
    content = _left_of_all(survivors({}, end_offset=12), whole)
    assert _read_all(content) == records[1:]


def _left_of_all(rules: Survivors, whole: bytes, *, keeps_old_tombstones: bool = True) -> bytes:
    content = b""
    position = 0
    while position < len(whole):
        header = read_header(whole, position)
        verdict = rules.of_batch(whole, position, header, keeps_old_tombstones=keeps_old_tombstones)
        end = position + header.size_bytes
        content += whole[position:end] if verdict is None else bytes(verdict)
        position = end
    return content


def _read_all(content: bytes) -> list[Record]:
    records: list[Record] = []
    position = 0
    while position < len(content):
        header = read_header(content, position)
        records += read_records(content, position, header)
        position += header.size_bytes
    return records
