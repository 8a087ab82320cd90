"""The methods of masks: each makes something else of each kind of value."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.operations.mask_methods import DROPPED, Method, number_of, unmarked
from minibroker.pipeline.operations.mask_rules import rules_of

SECRET = b"sixteen bytes or more"


def method(text: str) -> Method:
    (rule,) = rules_of([f"field={text}"])
    return Method(rule, SECRET)


def digest(value: bytes) -> str:
    return hmac.new(SECRET, value, hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        ("hash", "é", digest("é".encode())),
        ("hash", "\ud800", digest(b"\xed\xa0\x80")),
        ("hash", 17, int(digest(b"17")[:16], 16) >> 11),
        ("hash", True, None),
        ("email", "A@B.at", f"{digest(b'A')[:16]}@{digest(b'b.at')[:16]}.example"),
        ("email", "nobody", f"{digest(b'nobody')[:16]}@{digest(b'')[:16]}.example"),
        ("email", 3, 0),
        ("mask", "Äb-12 ß", "Xx-nn-x"),
        ("mask", 12, 0),
        ("last4", "4111 1111", "*****1111"),
        ("last4", "1111", "****"),
        ("last4", "", ""),
        ("last4", 4_111_222_233, 2233),
        ("last4", -41_110_007, 7),
        ("last4", 1111, 0),
        ("last4", 1.5, 0),
        ("first1", "Anna", "A***"),
        ("first2", 4711, 4700),
        ("first1", 1e300, 0),
        ("fixed:x", "a", "x"),
        ("fixed:x", 5, "x"),
        ("fixed:0", 5, 0),
        ("fixed:0", "a", "0"),
        ("fixed:true", 5, "true"),
        ("fixed:x", {"a": 1}, "x"),
        ("empty", "a", ""),
        ("empty", 5, 0),
        ("empty", True, False),
        ("empty", [1], []),
        ("empty", {"a": 1}, {}),
        ("null", {"a": 1}, None),
        ("null", 1, None),
        ("mask", {"a": ["B", 1, None, {"c": "d"}]}, {"a": ["X", 0, None, {"c": "x"}]}),
    ],
)
def test_a_value_becomes(name: str, value: Any, masked: Any) -> None:
    found = method(name).of(value)
    assert (found, type(found)) == (masked, type(masked))


@pytest.mark.parametrize("name", ["hash", "email", "mask", "last4", "first1", "fixed:x", "empty"])
def test_null_stays_null(name: str) -> None:
    assert method(name).of(None) is None
    assert method(name).of_bytes(None) is None


def test_drop_drops_everything() -> None:
    assert method("drop").of(None) is DROPPED
    assert method("drop").of({"a": 1}) is DROPPED
    assert method("drop").of_bytes(b"x") is None


@pytest.mark.parametrize(
    ("name", "masked"),
    [
        ("hash", digest(b"Ab1").encode()),
        ("mask", b"Xxn"),
        ("last2", b"*b1"),
        ("fixed:x", b"x"),
        ("empty", b""),
        ("null", None),
    ],
)
def test_whole_bytes_become(name: str, masked: bytes | None) -> None:
    """A key has the hash of a field with the same text."""
    assert method(name).of_bytes(b"Ab1") == masked


def test_bytes_that_are_no_text_have_a_hash_alone() -> None:
    assert method("hash").of_bytes(b"\xff") == digest(b"\xff").encode()
    with pytest.raises(PipelineError, match="it is not UTF-8, which last needs"):
        method("last4").of_bytes(b"\xff")


@pytest.mark.parametrize("text", ["0", "-0", "1.50", "1e5", "12345678901234567890.10", "1e999"])
def test_numbers_keep_their_digits(text: str) -> None:
    assert unmarked(json.dumps({"a": number_of(text)}).encode()) == f'{{"a": {text}}}'.encode()


def test_hashed_numbers_are_exact_in_a_double() -> None:
    for number in range(1000):
        found = method("hash").of(number)
        assert 0 <= found < 1 << 53
