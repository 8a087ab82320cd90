"""Places of copied records come from acknowledgements of batches, and fit into a marker."""

from __future__ import annotations

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.kafka.sink.delivered_places import RANGES_MAX, Delivered, DeliveredPlaces
from minibroker.pipeline.kafka.sink.digest import Contents
from minibroker.pipeline.kafka.sink.marker import Marker, parse_marker

METADATA_MAX = 4096


def test_a_range_is_from_its_first_batch_to_its_last() -> None:
    places = DeliveredPlaces([TopicPartition("copy", 0), TopicPartition("copy", 3)])
    places.note_batch(TopicPartition("copy", 3), 105, 1)
    places.note_batch(TopicPartition("copy", 3), 100, 5)
    assert places.found == [Delivered(), Delivered(6, 100, 105)]


def test_a_batch_at_an_unknown_offset_makes_its_range_unknown() -> None:
    places = DeliveredPlaces([TopicPartition("copy", 0)])
    for first in (7, -1, 9):
        places.note_batch(TopicPartition("copy", 0), first, 2)
    assert places.found == [Delivered(6, -1, -1)]


def test_places_travel_in_the_marker() -> None:
    places = DeliveredPlaces([TopicPartition("copy", number) for number in range(RANGES_MAX)])
    places.found = [
        Delivered(499_999, 10**9 + number, 10**9 + number) for number in range(RANGES_MAX)
    ]
    marker = Marker("copy", 1, Contents(1, "0" * 32, "0" * 16), "r" * 36, 0, places.text())
    assert len(marker.metadata) < METADATA_MAX
    again = DeliveredPlaces([TopicPartition("copy", number) for number in range(RANGES_MAX)])
    again.read(parse_marker("copy", 1, marker.metadata).places)
    assert again.found == places.found
    again.read("")
    assert again.found == places.found
