"""Hash codes of strings, and addresses; the numbers are Java's own (jshell, Java 17)."""

from __future__ import annotations

import tracemalloc

import pytest

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
    found = small_set_order(["SCRAM-SHA-256", "PLAIN", "SCRAM-SHA-512", "PLAIN"])
    assert found == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]


def test_long_texts_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for number in range(200):
            string_hash(f"{number}" + "x" * 2_000)
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()
