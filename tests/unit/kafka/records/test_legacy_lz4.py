"""The LZ4 frame of format 0: one byte of its header is wrong, on purpose."""

from __future__ import annotations

import lz4.frame
import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.legacy_lz4 import to_broken, to_sound, xxh32_of_few

DATA = b"the same again " * 100


def frame(*, with_size: bool) -> bytes:
    packed: bytes = lz4.frame.compress(DATA, block_linked=False, store_size=with_size)
    return packed


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"\x60\x40", 0x82 << 8),
        (b"\x04\x22\x4d\x18\x60\x40", 0x1A << 8),
    ],
)
def test_the_hash_of_few_bytes(data: bytes, value: int) -> None:
    """Published values, and the two bytes that Kafka 3.9.1 writes."""
    digest = xxh32_of_few(data)
    assert digest & 0xFF00 == value & 0xFF00
    if value > 0xFFFF:
        assert digest == value


def test_more_bytes_are_another_algorithm() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        xxh32_of_few(bytes(16))


@pytest.mark.parametrize("with_size", [False, True])
def test_a_frame_goes_there_and_back(with_size: bool) -> None:
    sound = frame(with_size=with_size)
    broken = to_broken(sound)
    assert broken != sound
    assert len(broken) == len(sound)
    with pytest.raises(RuntimeError, match="headerChecksum"):
        lz4.frame.decompress(broken)
    assert to_sound(broken) == to_sound(sound) == sound


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d", b"not a frame", frame(with_size=True)[:12]])
def test_malformed_frames(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="frame header"):
        to_sound(data)
