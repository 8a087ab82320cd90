"""Keys, values and headers as a test writes them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from minibroker.testing.values import to_bytes, to_headers, to_timestamp


def test_values() -> None:
    assert [to_bytes(value) for value in ("ö", b"b", bytearray(b"c"), None, {"a": [1]})] == [
        b"\xc3\xb6",
        b"b",
        b"c",
        None,
        b'{"a": [1]}',
    ]
    with pytest.raises(TypeError, match=r"\[1\] is no key or value"):
        to_bytes([1])  # type: ignore[arg-type]


def test_headers_keep_their_order_and_may_repeat() -> None:
    assert to_headers({"a": "1", "b": None}) == (("a", b"1"), ("b", None))
    assert to_headers([("a", b"1"), ("a", "2")]) == (("a", b"1"), ("a", b"2"))
    assert to_headers(()) == ()


def test_timestamps() -> None:
    assert to_timestamp(datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)) == 1500
    assert (to_timestamp(7), to_timestamp(None)) == (7, None)
    for wrong in ("now", True, 1.5):
        with pytest.raises(TypeError, match="expected milliseconds"):
            to_timestamp(wrong)  # type: ignore[arg-type]
