"""The partitions of many keys at once, beside those of one key at a time."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from minibroker.kafka.records.partitioner import partition_of
from minibroker.pipeline.kafka.sink.partitions import FEW, partitions_of


@pytest.mark.parametrize("longest", [3, 10, 40, 700])
@pytest.mark.parametrize("count", [FEW - 1, 700])
def test_keys_go_where_java_puts_them(longest: int, count: int) -> None:
    chance = random.Random(longest)
    keys = [
        chance.randbytes(chance.randrange(longest + 1)) if chance.random() < 0.9 else None
        for _ in range(count)
    ]
    expected = [None if key is None else partition_of(key, 7) for key in keys]

    assert partitions_of(pa.array(keys, pa.binary()), 7).to_pylist() == expected
    part = pa.array(keys, pa.large_binary()).slice(5, 40)
    assert partitions_of(part, 7).to_pylist() == expected[5:45]


def test_no_keys_have_no_partitions() -> None:
    assert partitions_of(pa.nulls(2, pa.binary()), 7).to_pylist() == [None, None]
