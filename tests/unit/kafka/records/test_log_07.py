"""Messages of Kafka 0.7: read, unpacked and refused, by bytes made by hand."""

from __future__ import annotations

import gzip
import struct

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records import log_07
from minibroker.kafka.records.compression import UnfoldsTooFarError
from minibroker.kafka.records.log_07 import read_message, values_of
from tests.support.logs_07 import GZIP, SNAPPY, message, packed

LENGTH_BYTES = 4
CODECS = (GZIP, SNAPPY)


def values(framed: bytes, *limits: int) -> list[bytes]:
    """Return the values of a message that stands behind its length."""
    assert struct.unpack_from(">i", framed)[0] == len(framed) - LENGTH_BYTES
    return values_of(read_message(framed[LENGTH_BYTES:]), *limits)


@pytest.mark.parametrize("payload", [b"", b"value", bytes(range(256))])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_plain_message_is_its_payload(magic: int, payload: bytes) -> None:
    assert values(message(payload, magic=magic)) == [payload]


def test_the_bytes_are_those_of_the_documented_format() -> None:
    crc_of_hi = bytes.fromhex("d8932aac")
    assert message(b"hi", magic=0) == b"\x00\x00\x00\x07\x00" + crc_of_hi + b"hi"
    assert message(b"hi") == b"\x00\x00\x00\x08\x01\x00" + crc_of_hi + b"hi"


def test_other_bits_of_the_attributes_say_nothing() -> None:
    assert values(message(b"v", attributes=0x7C)) == [b"v"]


@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_message_has_the_values_inside(codec: int) -> None:
    inside = [message(b"a", magic=0), message(b""), message(b"b" * 1000)]
    assert values(packed(codec, *inside)) == [b"a", b"", b"b" * 1000]
    assert values(packed(codec)) == []


def test_levels_are_unpacked_in_order() -> None:
    inner = packed(SNAPPY, message(b"2"), packed(GZIP, message(b"3")))
    assert values(packed(GZIP, message(b"1"), inner, message(b"4"))) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\x00\x00\x00\x00", "has 4 bytes, expected 5 at least"),
        (b"\x01\x00\x00\x00\x00", "of magic 1 has 5 bytes, expected 6"),
        (message(b"v", magic=2)[LENGTH_BYTES:], "has magic 2, expected 0 or 1"),
        (message(b"v", magic=-1)[LENGTH_BYTES:], "has magic 255, expected 0 or 1"),
        (message(b"v", attributes=3)[LENGTH_BYTES:], "has codec 3, expected 0, 1 or 2"),
        (message(b"v", crc=7)[LENGTH_BYTES:], "has CRC 0x00000007, its payload has 0x"),
    ],
)
def test_a_message_that_cannot_be_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(CorruptionError, match=sentence):
        read_message(content)


@pytest.mark.parametrize(
    ("framed", "sentence"),
    [
        (packed(GZIP, message(b"a"), b"\x00\x00"), "in gzip is cut at byte 11"),
        (packed(GZIP, message(b"a")[:-1]), "in gzip is cut at byte 0"),
        (packed(SNAPPY, b"\xff\xff\xff\xff" + bytes(9)), "in snappy is cut at byte 0"),
        (packed(SNAPPY, b"\x7f\xff\xff\xff" + bytes(9)), "in snappy is cut at byte 0"),
        (packed(GZIP, message(b"a", crc=1)), "has CRC 0x00000001"),
        (message(b"no gzip", attributes=GZIP), "gzip data is malformed"),
        (message(b"\xff" * 20, attributes=SNAPPY), "snappy block is malformed"),
    ],
)
def test_damage_inside_is_refused(framed: bytes, sentence: str) -> None:
    with pytest.raises(CorruptionError, match=sentence):
        values(framed)


def test_a_message_unfolds_to_a_bounded_size() -> None:
    bomb = message(gzip.compress(bytes(10_000_000)), attributes=GZIP)
    with pytest.raises(UnfoldsTooFarError):
        values(bomb, 1_000_000)


def test_all_levels_share_the_bound() -> None:
    inner = packed(GZIP, message(bytes(600)))
    assert len(values(packed(SNAPPY, inner, inner), 2_000)) == 2
    with pytest.raises(UnfoldsTooFarError):
        values(packed(SNAPPY, inner, inner), 1_000)


def test_the_depth_is_bounded() -> None:
    framed = message(b"v")
    for _ in range(log_07.DEPTH_MAX):
        framed = packed(GZIP, framed)
    assert values(framed) == [b"v"]
    with pytest.raises(CorruptionError, match="in one another more than 8 times"):
        values(packed(GZIP, framed))


def test_the_count_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_07, "VALUES_MAX", 3)
    assert len(values(packed(GZIP, *[message(b"")] * 3))) == 3
    with pytest.raises(CorruptionError, match="more than 3 values"):
        values(packed(GZIP, *[message(b"")] * 4))
