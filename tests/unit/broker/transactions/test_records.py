"""The records of `__transaction_state`, byte for byte as Kafka's generated classes write them."""

from __future__ import annotations

import pytest

from minibroker.broker.transactions.records import decode, encode_key, encode_value
from minibroker.broker.transactions.state import TransactionMetadata, TransactionState
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicPartition

KEY = bytes.fromhex("0000 0003 74786e")  # version 0, string "txn"

ONGOING = TransactionMetadata(
    "txn",
    1_000,
    7,
    previous_producer_id=1_000,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({TopicPartition("b", 0), TopicPartition("a", 1), TopicPartition("a", 0)}),
    start_ms=11,
    last_update_ms=12,
)

VALUE_0 = bytes.fromhex(
    "0000 00000000000003e8 0007 0000ea60 01"
    "00000002 0001 61 00000002 00000000 00000001 0001 62 00000001 00000000"
    "000000000000000c 000000000000000b"
)


def test_a_key_is_version_0_and_the_id() -> None:
    assert encode_key("txn") == KEY


def test_value_version_0_has_no_tagged_fields() -> None:
    assert encode_value(ONGOING, 0) == VALUE_0
    assert decode(KEY, VALUE_0) == ("txn", ONGOING._replace(previous_producer_id=-1))


@pytest.mark.parametrize("broker_version", [1, 2])
def test_value_version_1_carries_producer_ids_and_the_clients_version(broker_version: int) -> None:
    metadata = ONGOING._replace(next_producer_id=2_000, client_version=2)
    value = encode_value(metadata, broker_version)
    assert value[:2] == b"\0\1"
    assert decode(KEY, value) == ("txn", metadata)


def test_the_partitions_of_an_empty_transaction_are_null() -> None:
    empty = TransactionMetadata("txn", 1_000, 0, timeout_ms=1)
    value = encode_value(empty, 0)
    assert value[17:21] == b"\xff\xff\xff\xff"
    assert decode(KEY, value) == ("txn", empty)


def test_a_tombstone_has_no_state() -> None:
    assert decode(KEY, None) == ("txn", None)


def test_records_of_unknown_versions_are_passed_over() -> None:
    assert decode(b"\0\1" + KEY[2:], VALUE_0) is None
    assert decode(KEY, b"\0\2" + VALUE_0[2:]) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, VALUE_0), (b"\0", VALUE_0), (KEY[:-1], VALUE_0), (KEY, VALUE_0[:-1]), (KEY, b"\0")],
)
def test_broken_records_are_named(key: bytes | None, value: bytes) -> None:
    with pytest.raises(CorruptionError, match="__transaction_state"):
        decode(key, value)


def test_a_state_that_does_not_exist_is_corrupt() -> None:
    with pytest.raises(CorruptionError, match="99"):
        decode(KEY, VALUE_0[:16] + b"\x63" + VALUE_0[17:])


def test_value_version_0_leaves_out_what_the_second_protocol_adds() -> None:
    """`transaction.version` was taken back from 2 to 0 while the id was in use."""
    metadata = ONGOING._replace(client_version=2, next_producer_id=2_000)
    assert encode_value(metadata, 0) == VALUE_0
