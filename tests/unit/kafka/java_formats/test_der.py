"""Values of DER are read as they stand; a length that does not fit is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.kafka.java_formats.der import read_oid, read_values


def test_values_stand_one_behind_the_other() -> None:
    data = bytes.fromhex("0c0161") + bytes.fromhex("13020062") + b"\x30\x82\x01\x00" + bytes(256)
    text, printable, sequence = read_values(data)
    assert (text.tag, text.content, text.encoded) == (0x0C, b"a", b"\x0c\x01a")
    assert printable.content == b"\0b"
    assert len(sequence.content) == 256


@pytest.mark.parametrize("data", [b"\x0c", b"\x0c\x02a", b"\x30\x82\x01", b"\x30\xff" + bytes(9)])
def test_a_length_beyond_the_bytes_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="DER value"):
        list(read_values(data))


@given(st.binary(max_size=64))
def test_bytes_are_values_or_an_error(data: bytes) -> None:
    try:
        values = list(read_values(data))
    except ValueError:
        return
    assert b"".join(value.encoded for value in values) == data


@pytest.mark.parametrize(
    ("encoded", "oid"),
    [
        ("550403", "2.5.4.3"),
        ("2a864886f70d010901", "1.2.840.113549.1.9.1"),
        ("0992268993f22c640119", "0.9.2342.19200300.100.1.25"),
        ("883703", "2.999.3"),
    ],
)
def test_object_identifiers(encoded: str, oid: str) -> None:
    assert read_oid(bytes.fromhex(encoded)) == oid
