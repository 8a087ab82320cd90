"""Decoders of keys and values, by Kafka's names."""

from __future__ import annotations

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.tools.decoders import Decoded, decode_text, field_decoder, fields
from minibroker.tools.log_records import LogRecord

RECORD = LogRecord(0, 0, b"k", None, (), -1, None, None)


def test_by_their_names_with_and_without_package() -> None:
    for name in (
        "LongDecoder",
        "org.apache.kafka.tools.api.LongDecoder",
        "kafka.serializer.LongDecoder",
    ):
        decode = field_decoder(name)
        assert decode is not None
        assert decode((-5).to_bytes(8, "big", signed=True)) == "-5"
    assert field_decoder("my.own.Decoder") is None


def test_text_numbers_and_bytes() -> None:
    assert decode_text(b"a\xff") == "a\ufffd"
    hexadecimal, number = field_decoder("DefaultDecoder"), field_decoder("IntegerDecoder")
    assert hexadecimal is not None
    assert number is not None
    assert hexadecimal(b"\x00\xff") == "00ff"
    assert number(b"\x00\x00\x01\x00\xff") == "256"
    with pytest.raises(CorruptionError, match="3 bytes where a number of 4 bytes"):
        number(b"\x00\x00\x01")


def test_null_is_nothing() -> None:
    assert fields(decode_text, decode_text)(RECORD) == Decoded("k", None)
