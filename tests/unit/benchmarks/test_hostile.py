"""Hostile requests are what they claim to be."""

from __future__ import annotations

import gzip
import struct

from benchmarks import hostile
from minibroker.kafka.records.batch import read_header


def test_a_small_batch_claims_many_records_at_one_offset() -> None:
    batch = hostile.unfolding_batch(130_000)
    assert len(batch) < 1_500
    header = read_header(batch)
    assert (header.count, header.last_offset_delta) == (130_000, 129_999)
    assert len(gzip.decompress(batch[61:])) == 130_000 * 7


def test_every_frame_has_its_size_in_front() -> None:
    for attack in hostile.attacks():
        frames = attack.frames
        while frames:
            (size,) = struct.unpack_from(">i", frames)
            assert 0 < size <= len(frames) - 4, attack.label
            frames = frames[4 + size :]
