"""Places of copied records come from the reports of a few of them, and fit into a marker."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.kafka.sink.columns import columns, rows_of
from minibroker.pipeline.kafka.sink.delivered_places import RANGES_MAX, Delivered, DeliveredPlaces
from minibroker.pipeline.kafka.sink.digest import Contents
from minibroker.pipeline.kafka.sink.marker import Marker, parse_marker

METADATA_MAX = 4096


class Report(NamedTuple):
    number: int

    def offset(self) -> int:
        return self.number


def batch(partition: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(["copy"] * rows),
            "partition": pa.array([partition] * rows, pa.int32()),
            "value": pa.array([b"v"] * rows),
        }
    )


def delivered(places: DeliveredPlaces, records: pa.RecordBatch, first: int) -> list[Any]:
    """Deliver a batch at offsets from `first` on; return its rows."""
    rows = list(places.noting(records, rows_of(columns(records, None))))
    for index, row in enumerate(rows):
        if row[4] is not None:
            row[4](None, Report(first + index))
    return rows


def test_first_and_last_record_of_a_batch_report() -> None:
    places = DeliveredPlaces([TopicPartition("copy", 0), TopicPartition("copy", 3)])
    rows = delivered(places, batch(3, 5), 100)
    assert [row[4] is not None for row in rows] == [True, False, False, False, True]
    delivered(places, batch(3, 1), 105)
    assert places.found == [Delivered(), Delivered(6, 100, 105)]
    (row,) = places.noting(batch(0, 1), rows_of(columns(batch(0, 1), None)))
    row[4]("an error", Report(7))  # type: ignore[misc]
    assert places.found[0] == Delivered(1, -1, -1)


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
