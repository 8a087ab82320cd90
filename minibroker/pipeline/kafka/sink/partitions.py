"""The partitions of keys, many keys at once: as Java's producer chooses them.

The hash takes four bytes of every key at a time, by Arrow's functions. Keys of like lengths are
taken together, so that none is filled up to more than four times its length.

Source: Kafka BuiltInPartitioner.partitionForKey; `records.partitioner` is the same for one key.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from minibroker.kafka.records.partitioner import MULTIPLIER, SEED, murmur2

FEW: Final = 64
"""Keys of one class of lengths up to which Python is quicker than Arrow's calls."""
_WORD: Final = 4
_CLASS_GROWTH: Final = 4
_UINT32: Final = pa.uint32()
_FACTOR: Final = pa.scalar(MULTIPLIER, _UINT32)
_POSITIVE: Final = pa.scalar(0x7FFFFFFF, _UINT32)


def partitions_of(keys: pa.Array, count: int) -> pa.Array:
    """Return the partitions of binary keys among `count`, int32; null for a null key."""
    hashes = pc.bit_wise_and(hashes_of(keys), _POSITIVE).cast(pa.int64())
    whole = pc.multiply(pc.divide(hashes, count), count)
    return pc.subtract(hashes, whole).cast(pa.int32())


def hashes_of(keys: pa.Array) -> pa.Array:
    """Return MurmurHash2 of binary keys, uint32; null for a null key."""
    lengths = pc.binary_length(keys)
    hashes = pa.nulls(len(keys), _UINT32)
    longest = pc.max(lengths).as_py()
    if longest is None:
        return hashes
    low, high = -1, _WORD * _CLASS_GROWTH
    while low < longest:
        is_in = pc.and_(pc.greater(lengths, low), pc.less_equal(lengths, high))
        is_in = pc.fill_null(is_in, fill_value=False)
        count = pc.sum(is_in).as_py()
        if count:
            hashes = pc.replace_with_mask(hashes, is_in, _hashes_of_class(keys.filter(is_in)))
        low, high = high, high * _CLASS_GROWTH
    return hashes


def _hashes_of_class(keys: pa.Array) -> pa.Array:
    """Return the hashes of keys whose lengths differ by a factor of four at most, no null."""
    if len(keys) <= FEW:
        return pa.array(map(murmur2, keys.to_pylist()), _UINT32)
    lengths = pc.binary_length(keys)
    bounds = pc.min_max(lengths)
    shortest, longest = bounds["min"].as_py(), bounds["max"].as_py()
    # A word more than the longest key: its last bytes are the rest, which is filled up with zeros.
    padded = pc.binary_join_element_wise(keys, bytes(longest - shortest + _WORD), b"")
    state = pc.bit_wise_xor(lengths.cast(_UINT32), pa.scalar(SEED, _UINT32))
    for start in range(0, longest, _WORD):
        word = pc.binary_slice(padded, start, start + _WORD).cast(pa.binary(_WORD)).view(_UINT32)
        whole = _mixed(state, word)
        if start + _WORD <= shortest:
            state = whole
            continue
        rest = pc.multiply(pc.bit_wise_xor(state, word), _FACTOR)
        is_whole = pc.greater_equal(lengths, start + _WORD)
        is_rest = pc.greater(lengths, start)
        state = pc.if_else(is_whole, whole, pc.if_else(is_rest, rest, state))
    state = pc.multiply(_shifted(state, 13), _FACTOR)
    return _shifted(state, 15)


def _mixed(state: pa.Array, word: pa.Array) -> pa.Array:
    block = pc.multiply(_shifted(pc.multiply(word, _FACTOR), 24), _FACTOR)
    return pc.bit_wise_xor(pc.multiply(state, _FACTOR), block)


def _shifted(numbers: pa.Array, bits: int) -> pa.Array:
    return pc.bit_wise_xor(numbers, pc.shift_right(numbers, pa.scalar(bits, _UINT32)))
