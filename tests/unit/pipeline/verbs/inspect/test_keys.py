"""Keys are counted in bounded memory: exactly while they are few, within a bound when many."""

from __future__ import annotations

import pickle
from collections import Counter

import pyarrow as pa

from minibroker.pipeline.verbs.inspect.keys import COUNTED, KEPT, FrequentKeys, KeyCount, keys_of

MANY = 100_000


def pieces(size: int) -> list[range]:
    """Return the numbers below MANY in pieces."""
    return [range(start, start + size) for start in range(0, MANY, size)]


def column(*keys: bytes | None) -> pa.Array:
    return pa.array(keys, pa.binary())


def test_few_keys_are_counted_exactly() -> None:
    count = KeyCount()
    for number in range(3 * KEPT):
        count.add(
            keys_of(column(b"%d" % (number % 1000), None)).hashes
        ) if number % 7 == 0 else None
    assert count.estimate() == 1000


def test_many_keys_are_counted_about_and_a_merge_counts_the_same() -> None:
    whole, parts = KeyCount(), [KeyCount(), KeyCount()]
    for number, some in enumerate(pieces(1000)):
        hashes = keys_of(column(*(b"%d" % key for key in some))).hashes
        whole.add(hashes)
        parts[number % 2].add(hashes)
        parts[(number + 1) % 2].add(hashes.slice(0, 300))
    sent = pickle.loads(pickle.dumps(parts[0]))
    sent.merge(parts[1])
    assert abs(whole.estimate() - MANY) < 0.05 * MANY
    assert sent.estimate() == whole.estimate()


def test_the_most_frequent_of_few_keys_are_exact_with_their_partitions() -> None:
    found = FrequentKeys()
    long = b"once" * 30
    found.add(keys_of(column(b"everywhere", b"everywhere", b"rare", None)), 0)
    other = FrequentKeys()
    other.add(keys_of(column(b"everywhere", b"everywhere", long, long, long)), 1)
    found.merge(other)
    assert found.missed == 0
    assert found.most_frequent(2) == [(b"everywhere", 10, 4, 0, 1), (long[:64], 120, 3, 1, 1)]


def test_a_count_among_many_keys_is_short_by_no_more_than_is_told() -> None:
    """One record of a hundred has the hot key, the others a key of their own."""
    found, other, exact = FrequentKeys(), FrequentKeys(), Counter[bytes]()
    for number, some in enumerate(pieces(5000)):
        keys = [b"hot" if key % 100 == 0 else b"%d" % key for key in some]
        exact.update(keys)
        (found, other)[number % 2].add(keys_of(column(*keys)), number % 3)
    other.settle()
    found.merge(pickle.loads(pickle.dumps(other)))
    [hot] = found.most_frequent(10)
    assert hot.start == b"hot"
    assert hot.records <= exact[b"hot"] <= hot.records + found.missed
    assert 0 < found.missed <= MANY // COUNTED
    assert (hot.first_partition, hot.last_partition) == (0, 2)
