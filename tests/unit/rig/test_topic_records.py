"""Records of a partition: over the limit of one read, from a moved start, in time."""

from __future__ import annotations

import pytest

from minibroker.rig import topic_records
from minibroker.rig.topic_records import records_of
from tests.unit.broker.partitions.conftest import World, world

__all__ = ["world"]


def test_reading_goes_on_where_one_read_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_records, "READ_BYTES", 100)
    world.create("t")
    for number in range(5):
        world.append(b"%d" % number * 40, b"x")
    world.manager.commit()
    found = list(records_of(world.partition(), "read_uncommitted"))
    assert [record.offset for record in found] == list(range(10))


def test_it_begins_at_the_log_start(world: World) -> None:
    world.create("t")
    world.append(b"a", b"b", b"c")
    world.manager.commit()
    world.partition().log.advance_log_start(2)
    assert [record.value for record in records_of(world.partition(), "read_committed")] == [b"c"]
