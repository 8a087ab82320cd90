"""Keys go where the Java producer puts them."""

from __future__ import annotations

import pytest

from minibroker.kafka.records.partitioner import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "signed"),
    [  # the values of Kafka's own test of its hash
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_kafkas(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_a_key_has_one_partition_and_no_key_the_first() -> None:
    assert partition_of(None, 7) == 0
    assert partition_of(b"abc", 10) == 479470107 % 10
    assert partition_of(b"21", 10) == (-973932308 & 0x7FFFFFFF) % 10
