"""The ordered segments: floor, higher, since."""

from __future__ import annotations

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.segment import Segment, Segments


def segments(*bases: int) -> Segments:
    found = Segments()
    for base in bases:
        found.add(Segment(Disk(), "/nowhere", base, created_ms=0))
    return found


def test_the_floor_is_the_greatest_base_offset_not_above() -> None:
    found = segments(200, 0, 100)
    assert found.base_offsets == [0, 100, 200]
    bases = {
        target: (segment := found.floor(target)) and segment.base_offset
        for target in (0, 99, 100, 999)
    }
    assert bases == {0: 0, 99: 0, 100: 100, 999: 200}
    assert segments(5).floor(4) is None


def test_neighbours() -> None:
    found = segments(0, 100, 200)
    assert (found.first.base_offset, found.last.base_offset, len(found)) == (0, 200, 3)
    higher = found.higher(100)
    assert higher is not None
    assert higher.base_offset == 200
    assert found.higher(200) is None
    assert [segment.base_offset for segment in found.since(150)] == [100, 200]
    assert [segment.base_offset for segment in segments(50, 60).since(10)] == [50, 60]


def test_one_per_base_offset() -> None:
    found = segments(0, 100)
    fresh = Segment(Disk(), "/nowhere", 100, created_ms=0)
    found.add(fresh)
    assert found.last is fresh
    assert len(found) == 2
    found.remove(0)
    assert [segment.base_offset for segment in found] == [100]
    assert [segment.base_offset for segment in reversed(found)] == [100]
