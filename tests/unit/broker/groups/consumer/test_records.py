"""Records as bytes: one that Kafka 4.4.0 wrote, and what tombstones name."""

from __future__ import annotations

from minibroker.broker.groups.consumer import records
from minibroker.broker.groups.consumer.member import ClassicFacts, Member, with_epoch
from minibroker.broker.groups.consumer.subscriptions import ResolvedRegex
from minibroker.broker.groups.records import decode_record

TOPIC = b"t" * 16


def test_a_member_of_the_consumer_protocol_is_stored_as_kafka_stores_it() -> None:
    """Recorded from Kafka 4.4.0: that it is no classic member is written, as a tagged null."""
    member = Member(
        "first",
        rack_id="rack",
        client_id="wire",
        client_host="/127.0.0.1",
        topic_names=frozenset({"topic"}),
        rebalance_timeout_ms=60_000,
    )
    key, value = records.member_record("group", member)
    assert key == b"\0\5\0\5group\0\5first"
    assert value == (
        b"\0\0\0\5rack\5wire\x0b/127.0.0.1\2\6topic\1" + b"\0\0\xea\x60" + b"\0\1\0\1\0"
    )


def test_a_classic_member_keeps_its_protocols() -> None:
    member = Member("c", classic=ClassicFacts(7, (("range", b"x"),)))
    entry = decode_record(*records.member_record("g", member))
    assert entry is not None
    stored = entry.value.classic_member_metadata
    assert stored.session_timeout_ms == 7
    assert [(protocol.name, protocol.metadata) for protocol in stored.supported_protocols] == [
        ("range", b"x")
    ]


def test_every_record_says_what_it_is() -> None:
    member = Member("m", member_epoch=3, assigned=with_epoch({TOPIC: (0, 1)}, 2))
    group_records = [
        records.epoch_record("g", 3, -5),
        records.partition_metadata_tombstone("g"),
        records.member_record("g", member),
        records.target_epoch_record("g", 3, 17),
        records.target_record("g", "m", {TOPIC: (0,)}),
        records.current_record("g", member),
        records.regex_record("g", "x", ResolvedRegex(frozenset("ba"), 4, 17)),
        records.regex_tombstone("g", "x"),
    ]
    entries = [decode_record(key, value) for key, value in group_records]
    assert [entry.kind for entry in entries if entry] == [3, 4, 5, 6, 7, 8, 16, 16]
    assert {entry.key.group_id for entry in entries if entry} == {"g"}
    current = entries[5]
    assert current is not None
    assert current.value.assigned_partitions[0].assignment_epochs == [2, 2]
    regex = entries[6]
    assert regex is not None
    assert regex.value.topics == ["a", "b"]


def test_a_member_goes_in_three_tombstones() -> None:
    tombstones = records.member_tombstones("g", "m")
    assert [(key[1], value) for key, value in tombstones] == [(8, None), (7, None), (5, None)]
