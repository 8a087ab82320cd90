"""The committed offsets of a group, and those of open transactions."""

from __future__ import annotations

import pytest

from minibroker.broker.groups.offsets import CommittedOffset, OffsetStore
from minibroker.kafka.ids import ZERO_TOPIC_ID

HOUR_MS = 3_600_000


def committed(offset: int, record_offset: int = 0, **fields: object) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", 1000, record_offset=record_offset, **fields)  # type: ignore[arg-type]


def test_the_last_record_counts() -> None:
    store = OffsetStore()
    store.replay(("g", "t", 0), committed(5))
    store.replay(("g", "t", 0), committed(3))
    store.replay(("g", "u", 1), committed(7))
    store.replay(("h", "t", 0), committed(9))
    offset = store.get("g", "t", 0)
    assert offset is not None
    assert offset.offset == 3
    assert store.get("g", "t", 1) is None
    assert store.get("x", "t", 0) is None
    assert {topic: list(parts) for topic, parts in store.of_group("g").items()} == {
        "t": [0],
        "u": [1],
    }
    assert store.of_group("x") == {}
    assert list(store.group_ids()) == ["g", "h"]
    assert store.committed_count == 3


def test_a_tombstone_takes_the_offset_and_an_empty_group_with_it() -> None:
    store = OffsetStore()
    store.replay(("g", "t", 0), committed(5))
    store.replay(("g", "t", 1), committed(6))
    store.replay(("g", "t", 0), None)
    assert store.get("g", "t", 0) is None
    assert store.committed_count == 1
    store.replay(("g", "t", 1), None)
    store.replay(("g", "t", 1), None)
    assert list(store.group_ids()) == []
    assert store.committed_count == 0


def test_pending_offsets_show_only_as_pending() -> None:
    store = OffsetStore()
    store.replay(("g", "t", 0), committed(5))
    store.replay(("g", "t", 0), committed(9, 1), 77)
    store.replay(("h", "t", 1), committed(4, 2), 77)
    offset = store.get("g", "t", 0)
    assert offset is not None
    assert offset.offset == 5
    assert store.has_pending("g", "t", 0)
    assert not store.has_pending("g", "t", 1)
    assert store.has_pending_in("h")
    assert list(store.group_ids()) == ["g", "h"]


def test_offsets_of_a_topic() -> None:
    store = OffsetStore()
    store.replay(("g", "t", 0), committed(1))
    store.replay(("g", "t", 1), committed(1))
    store.replay(("g", "u", 0), committed(1))
    store.replay(("h", "t", 2), committed(1))
    store.replay(("g", "t", 0), committed(1, 1), 77)
    store.replay(("g", "t", 5), committed(1, 1), 77)
    assert store.partitions_of("g", "t") == [0, 1, 5]
    assert store.partitions_of("h", "u") == store.partitions_of("x", "t") == []
    places = [("t", 0), ("t", 1), ("u", 0), ("t", 5)]
    assert store.first_of("g", 9) == [("g", *place) for place in places]
    assert store.first_of("g", 1) == [("g", "t", 0)]
    assert store.first_of("x", 9) == []
    assert store.all_of("g", "t", 0) == [committed(1), committed(1, 1)]
    assert store.all_of("g", "t", 5) == [committed(1, 1)]
    assert store.all_of("x", "t", 0) == []


@pytest.mark.parametrize(
    ("expire_ms", "now_ms", "expected"),
    [
        (-1, HOUR_MS + 499, False),
        (-1, HOUR_MS + 500, True),
        (700, 699, False),  # an explicit time counts alone
        (700, 700, True),
        (10 * HOUR_MS, 5 * HOUR_MS, False),
    ],
)
def test_when_an_offset_expires(expire_ms: int, now_ms: int, expected: bool) -> None:
    offset = CommittedOffset(5, -1, "", 100, expire_ms, ZERO_TOPIC_ID)
    assert offset.is_expired(now_ms, 500, HOUR_MS) is expected
