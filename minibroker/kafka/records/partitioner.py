"""The partition of a key, as the Java producer's default partitioner chooses it.

`Broker.produce` puts a record where the client under test would have put it, and the pipeline's
sink where Java's producer would. Source: Kafka BuiltInPartitioner.partitionForKey; the hash is
MurmurHash2 (Austin Appleby, public domain) with the seed that Kafka uses.
"""

from __future__ import annotations

from typing import Final

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return MurmurHash2 of `data` as an unsigned 32-bit number."""
    size = len(data)
    state = (SEED ^ size) & _MASK
    whole = size & ~3
    for position in range(0, whole, 4):
        block = int.from_bytes(data[position : position + 4], "little") * MULTIPLIER & _MASK
        block = (block ^ block >> 24) * MULTIPLIER & _MASK
        state = (state * MULTIPLIER & _MASK) ^ block
    if whole != size:
        state = (state ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & _MASK
    state = (state ^ state >> 13) * MULTIPLIER & _MASK
    return state ^ state >> 15


def partition_of(key: bytes | None, count: int) -> int:
    """Return the partition of a key among `count` partitions, 0 without a key."""
    return 0 if key is None else (murmur2(key) & 0x7FFFFFFF) % count
