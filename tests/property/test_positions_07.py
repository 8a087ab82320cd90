"""Positions of any log of Kafka 0.7: each finds the record that a consumer of 0.7 would read next.

The model is the list of messages with the sums of their sizes. In a damaged log, every byte up to
the end is in one place, and the messages before the damage are as they were.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from minibroker.tools.import_07.logs import BrokerDirectory, LogNotes, messages_of, partition_logs
from minibroker.tools.import_07.table import imported_partition, open_table, writing_table
from tests.support.logs_07 import GZIP, SNAPPY, message, packed, write_log

if TYPE_CHECKING:
    from minibroker.tools.import_07.table import ImportedPartition


class ModelMessage(NamedTuple):
    """A message as it is in the log, and the values in it."""

    framed: bytes
    values: tuple[bytes, ...]


def plain(value: bytes, magic: int) -> ModelMessage:
    return ModelMessage(message(value, magic=magic), (value,))


def wrapped(codec: int, inside: list[ModelMessage]) -> ModelMessage:
    values = tuple(value for each in inside for value in each.values)
    return ModelMessage(packed(codec, *(each.framed for each in inside)), values)


PLAIN = st.builds(plain, st.binary(max_size=40), st.sampled_from((0, 1)))
MESSAGES = st.recursive(
    PLAIN,
    lambda inner: st.builds(wrapped, st.sampled_from((GZIP, SNAPPY)), st.lists(inner, max_size=3)),
    max_leaves=6,
)
LOGS = st.lists(st.lists(MESSAGES, max_size=5), min_size=1, max_size=4)
"""Messages of each segment."""


def write_table(directory: Path, segments: list[list[ModelMessage]]) -> ImportedPartition:
    """Write log and table; return the partition. Values in the log are compared with the model."""
    write_log(directory, "t-0", *([each.framed for each in segment] for segment in segments))
    (log,) = partition_logs([BrokerDirectory(0, str(directory))])
    notes, values, end = LogNotes(), list[bytes](), 0
    with writing_table(directory / "table") as table:
        table.begin_partition()
        for message_at in messages_of(log, notes):
            inside = message_at.values(notes)
            table.add(message_at.position, len(values), len(inside))
            values += inside
            end = message_at.end
        partition = imported_partition(log, end, ("t", 0), (0, len(values)))
        table.end_partition(partition)
    assert values == [value for segment in segments for each in segment for value in each.values]
    return partition


@given(LOGS)
def test_each_position_finds_its_record(segments: list[list[ModelMessage]]) -> None:
    segments = [segment for segment in segments if segment] or [[]]
    with tempfile.TemporaryDirectory() as name:
        partition = write_table(Path(name), segments)
        with open_table(Path(name) / "table") as table:
            position = offset = 0
            for each in (each for segment in segments for each in segment):
                place = table.place_of(partition, position)
                assert (place.kind, place.offset) == ("message", offset)
                for inside in (position + 1, position + len(each.framed) - 1):
                    around = table.place_of(partition, inside)
                    assert (around.kind, around.offset) == ("inside", offset)
                position += len(each.framed)
                offset += len(each.values)
            place = table.place_of(partition, position)
            assert (place.kind, place.offset) == ("end", offset)


@given(LOGS, st.data())
def test_damage_hides_no_other_part_of_a_log(
    segments: list[list[ModelMessage]], data: st.DataObject
) -> None:
    content = b"".join(each.framed for segment in segments for each in segment) or message(b"")
    at = data.draw(st.integers(0, len(content) - 1))
    bad_bytes = data.draw(st.binary(min_size=1, max_size=12))
    damaged = content[:at] + bad_bytes + content[at + len(bad_bytes) :]
    with tempfile.TemporaryDirectory() as name:
        write_log(Path(name), "t-0", [damaged])
        (log,) = partition_logs([BrokerDirectory(0, name)])
        notes, position, values = Skipping(), 0, list[bytes]()
        for message_at in messages_of(log, notes):
            assert message_at.position == position
            position = message_at.end
            values += message_at.values(notes)
    assert position + notes.torn_bytes == len(damaged)
    intact, end = list[bytes](), 0
    for each in (each for segment in segments for each in segment):
        end += len(each.framed)
        if end <= at:
            intact += each.values
    assert values[: len(intact)] == intact


class Skipping(LogNotes):
    """Notes that leave everything out."""

    torn_bytes = 0

    def torn(self, path: Path, at: int, size_bytes: int) -> None:
        self.torn_bytes += size_bytes

    def damaged(self, path: Path, at: int, reason: str) -> None:
        return None
