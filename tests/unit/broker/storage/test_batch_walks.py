"""The walks along a `.log`: along headers, and along batches that can be believed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.batch_walks import checked_batches, walk_headers
from minibroker.broker.storage.disk import Disk
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import assign
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record
from tests.support.logs import NewLog, append, batch

if TYPE_CHECKING:
    from minibroker.broker.storage.segment import Segment


def walk(path: Path, content: bytes, position: int = 0) -> list[tuple[int, int]]:
    """Return position and last offset of each batch that is found in a file of this content."""
    path.write_bytes(content)
    disk = Disk()
    walked = walk_headers(disk, str(path), position, len(content))
    offsets = [(at, header.last_offset) for at, header in walked]
    disk.close()
    return offsets


def test_small_and_large_batches_are_found(tmp_path: Path) -> None:
    content, expected = bytearray(), []
    for offset, size in enumerate((10, 70_000, 9_000, 1, 64 << 10, 5)):
        whole = batch(b"v" * size)
        assign(whole, 0, offset, 0)
        expected.append((len(content), offset))
        content += whole
    assert walk(tmp_path / "f", bytes(content)) == expected
    assert walk(tmp_path / "f", bytes(content), expected[2][0]) == expected[2:]
    assert walk(tmp_path / "f", bytes(content[:-1])) == expected[:-1]


def test_a_message_of_an_old_format_may_be_shorter_than_a_header(tmp_path: Path) -> None:
    records = [Record(offset, -1, None, b"") for offset in (3, 4)]
    content = bytes(build_message_set(records, magic=0, codec=0, base_offset=3))
    assert walk(tmp_path / "f", content) == [(0, 3), (len(content) // 2, 4)]


def test_an_unknown_magic_or_length_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorruptionError):
        walk(tmp_path / "f", bytes(100))


BATCHES = 5


@pytest.fixture
def segment(new_log: NewLog) -> Segment:
    """Five batches of one record, all of one size."""
    log = new_log()
    for number in range(BATCHES):
        append(log, b"value %d" % number)
    return log.active_segment


def offsets(segment: Segment, expected_offset: int = 0, *, trusted_below: int = 0) -> list[int]:
    end = Path(segment.log_path).stat().st_size
    batches = checked_batches(
        Disk(),
        segment.log_path,
        0,
        end,
        expected_offset=expected_offset,
        max_offset=segment.max_offset,
        trusted_below=trusted_below,
    )
    return [fields[0] for _, fields in batches]


def damage(segment: Segment, number: int) -> None:
    """Flip a bit in the last byte of this batch."""
    content = bytearray(Path(segment.log_path).read_bytes())
    content[len(content) // BATCHES * (number + 1) - 1] ^= 1
    Path(segment.log_path).write_bytes(content)


def test_sound_batches_are_given_to_the_end(segment: Segment) -> None:
    assert offsets(segment) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("number", range(BATCHES))
def test_a_flipped_bit_ends_it(segment: Segment, number: int) -> None:
    damage(segment, number)
    assert offsets(segment) == list(range(number))


@pytest.mark.parametrize("lost_bytes", [1, 30, 60, 74])
def test_a_torn_batch_is_not_given(segment: Segment, lost_bytes: int) -> None:
    content = Path(segment.log_path).read_bytes()
    Path(segment.log_path).write_bytes(content[:-lost_bytes])
    assert offsets(segment) == [0, 1, 2, 3]


def test_of_trusted_batches_only_the_header_is_looked_at(segment: Segment) -> None:
    damage(segment, 1)
    assert offsets(segment, trusted_below=2) == [0, 1, 2, 3, 4]


def test_an_offset_below_the_expected_one_ends_it(segment: Segment) -> None:
    assert offsets(segment, 1) == []


def test_a_message_of_an_old_format_has_another_checksum(new_log: NewLog) -> None:
    log = new_log(message_format_version="0.10.0")
    for number in range(BATCHES):
        append(log, b"value %d" % number)
    assert offsets(log.active_segment) == [0, 1, 2, 3, 4]
    damage(log.active_segment, 2)
    assert offsets(log.active_segment) == [0, 1]
