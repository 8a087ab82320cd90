"""Numbers as Java reads them; each row was asked of Java 17."""

from __future__ import annotations

import math

import pytest

from minibroker.kafka.java_numbers import parse_double, parse_integer, trim


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.5", 0.5),
        ("0.5d", 0.5),
        ("0.5D", 0.5),
        ("1f", 1.0),
        ("1.F", 1.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("+1e3", 1000.0),
        ("-1E-3f", -0.001),
        ("0x1p-1", 0.5),
        ("0X1.8P1d", 3.0),
        ("0x.8p0", 0.5),
        ("-0x1.p3F", -8.0),
        ("0x1p99999", math.inf),
        ("1e400", math.inf),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        (" \t\x01 0.5 \n\0", 0.5),
    ],
)
def test_a_text_that_java_reads_is_a_double(text: str, number: float) -> None:
    assert parse_double(text) == number


def test_java_reads_nan_as_it_writes_it() -> None:
    assert math.isnan(parse_double("NaN"))
    assert math.isnan(parse_double("-NaN"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "d",
        "inf",
        "-inf",
        "infinity",
        "nan",
        "NAN",
        "1_0",
        "1dd",
        "1fd",
        "NaNd",
        "Infinityf",
        "0x1",
        "0x1.8",
        "0xp1",
        "1e",
        "1e+",
        "1 0",
        "\u0661",
        "\u20031",
        "\xa01",
    ],
)
def test_a_text_that_java_refuses_is_no_double(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_double(text)


@pytest.mark.parametrize(
    ("text", "bits", "number"),
    [
        ("5", 32, 5),
        ("+5", 32, 5),
        ("-2147483648", 32, -(2**31)),
        ("2147483648", 32, None),
        ("9223372036854775807", 64, 2**63 - 1),
        ("0" * 5000 + "7", 32, 7),
        ("9" * 5000, 64, None),
        ("\u0661\u0662", 32, 12),
        ("\U0001d7cf", 32, None),
        ("1_000", 32, None),
        ("+-1", 32, None),
        ("", 32, None),
        ("-", 32, None),
        (" 1", 32, None),
        ("\u00b2", 32, None),
    ],
)
def test_integers_are_read_as_java_reads_them(text: str, bits: int, number: int | None) -> None:
    assert parse_integer(text, bits) == number


def test_trimming_removes_what_java_removes() -> None:
    assert trim(" \t\x00\x1fa\u2003 \n") == "a\u2003"
