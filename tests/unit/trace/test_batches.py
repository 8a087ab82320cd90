"""The summary of record batches in a message."""

from __future__ import annotations

import pytest

from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES, GZIP
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.record import Record
from minibroker.trace.batches import BATCHES_MAX, size_text, summarize
from tests.support.batches import batch
from tests.support.message_sets import message, wrapper

RECORDS = [Record(5, 1, b"k", b"v"), Record(6, 1, None, b"v" * 300)]


def test_a_batch_says_count_size_codec_and_producer() -> None:
    data = build_batch(
        RECORDS,
        base_offset=5,
        codec=CODEC_NAMES[GZIP],
        producer_id=7,
        producer_epoch=2,
        base_sequence=9,
        is_transactional=True,
    )
    summary = summarize(data)
    assert (summary.first_offset, summary.last_offset, summary.records) == (5, 6, 2)
    assert str(summary) == (
        f"2 records {len(data)} B gzip producer 7 epoch 2 sequence 9 in a transaction"
    )


@pytest.mark.parametrize(("is_commit", "word"), [(True, "commit"), (False, "abort")])
def test_a_marker_says_how_the_transaction_ended(is_commit: bool, word: str) -> None:
    data = build_marker(
        TransactionMarker(is_commit, 0), producer_id=7, producer_epoch=2, timestamp_ms=1
    )
    assert str(summarize(data)) == f"{word} of producer 7 epoch 2"
    assert str(summarize(bytes(batch(b"v")) + data)).endswith(word)


def test_a_damaged_marker_is_a_control_batch() -> None:
    data = build_marker(TransactionMarker(True, 0), producer_id=7, producer_epoch=2, timestamp_ms=1)
    data[-12:] = b"\xff" * 12
    assert str(summarize(data)) == "control of producer 7 epoch 2"


def test_messages_of_old_formats_are_counted() -> None:
    assert str(summarize(message(b"v") + message(b"w"))).startswith("2 records")
    assert str(summarize(wrapper(GZIP, message(b"v")))).startswith("messages")


def test_a_batch_that_is_cut_is_not_counted() -> None:
    whole = bytes(batch(b"v"))
    assert str(summarize(whole + whole[:30])) == f"over 1 record {len(whole) + 30} B"
    assert str(summarize(whole[:30])) == "30 B of no batch"
    assert str(summarize(b"\xff" * 100)) == "100 B of no batch"


def test_the_walk_along_many_messages_ends() -> None:
    summary = summarize(bytes(batch(b"v")) * (BATCHES_MAX + 5))
    assert (summary.batches, summary.is_cut) == (BATCHES_MAX, True)


def test_a_count_that_lies_is_no_negative_count() -> None:
    data = bytearray(batch(b"v"))
    data[57:61] = b"\xff\xff\xff\xff"
    assert summarize(data).records == 0


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(999, "999 B"), (2_100, "2.1 KB"), (999_960, "1.0 MB"), (3_400_000_000, "3.4 GB")],
)
def test_a_size_has_a_unit(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text
