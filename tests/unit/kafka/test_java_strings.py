"""Hash codes of strings, and addresses; the numbers are Java's own (jshell, Java 17)."""

from __future__ import annotations

import math
import tracemalloc
import uuid

import pytest

from minibroker.kafka.ids import (
    ZERO_TOPIC_ID,
    TopicId,
    TopicPartition,
    topic_id_from_text,
    topic_id_to_text,
)
from minibroker.kafka.java_numbers import parse_double, parse_integer, trim
from minibroker.kafka.java_strings import host_address, partition_for, small_set_order, string_hash


@pytest.mark.parametrize(("text", "code"), [("", 0), ("a", 97), ("range", 108280125)])
def test_string_hash_is_javas(text: str, code: int) -> None:
    assert string_hash(text) == code


def test_string_hash_counts_utf_16_units() -> None:
    """Beyond the basic plane a character is two units: "𝄞".hashCode() is 1772436."""
    assert string_hash("𝄞") == 0xD834 * 31 + 0xDD1E


def test_half_a_pair_is_a_unit() -> None:
    assert string_hash("\ud834") == 0xD834


@pytest.mark.parametrize(("key", "partition"), [("polygenelubricants", 0), ("a", 47), ("", 0)])
def test_partition_of_a_key_is_kafkas(key: str, partition: int) -> None:
    """The first one's hash code is the smallest int, whose absolute value is 0 in Kafka."""
    assert partition_for(key, 50) == partition


@pytest.mark.parametrize(
    ("host", "in_java"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42:8329", "2001:db8:0:0:0:ff00:42:8329"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("0:0:0:0:0:ffff:7f00:1", "127.0.0.1"),
        ("::127.0.0.1", "0:0:0:0:0:0:7f00:1"),
    ],
)
def test_addresses_are_written_as_java_writes_them(host: str, in_java: str) -> None:
    assert host_address(host) == in_java


def test_a_small_set_is_in_the_order_of_its_places() -> None:
    """jshell: new HashSet<>(List.of("SCRAM-SHA-256", "PLAIN", "SCRAM-SHA-512", "PLAIN"))."""
    order = small_set_order(["SCRAM-SHA-256", "PLAIN", "SCRAM-SHA-512", "PLAIN"])
    assert order == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]


def test_long_texts_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for number in range(200):
            string_hash(f"{number}" + "x" * 2_000)
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()


# Numbers as Java reads them; each row was asked of Java 17.


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


# Names of plain values: topic ids as text, how a partition prints.


def test_a_partition_prints_as_its_directory_is_named() -> None:
    assert str(TopicPartition("a-b.c", 12)) == "a-b.c-12"


def test_a_topic_id_prints_as_kafka_prints_it() -> None:
    # What Kafka's Uuid gives for these bits: URL-safe letters, no padding.
    raw = uuid.UUID("fbefbefb-efbe-fbef-befb-efbefbefbeff").bytes
    assert topic_id_to_text(raw) == "--------------------_w"
    assert topic_id_to_text(ZERO_TOPIC_ID) == "A" * 22


def test_text_and_bytes_convert_both_ways() -> None:
    for raw in (bytes(16), bytes(range(16)), b"\xff" * 16):
        assert topic_id_from_text(topic_id_to_text(raw)) == TopicId(raw)


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 21, "A" * 24, "!" * 22])
def test_a_text_that_is_no_topic_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        topic_id_from_text(text)
