"""The order in which hash tables of Kafka's coordinator are walked; pure.

Kafka's assignors walk hash tables, so who gets which partition depends on it wherever they have a
choice. Following the same order gives the same assignment for the same members and topics.

There are two kinds. Java's HashMap and HashSet are what an operation works with (`hash_order`), and
Kafka's TimelineHashMap is the state of a group (`timeline_order`). Both have a power of two of
buckets. In Java's an element lies in the bucket that the low bits of its hash code name, and those
of one bucket are met in the order they were put in. In Kafka's it is the high bits of the hash code
times a constant, and the last one that was put in is met first.

Source: java.util.HashMap, Kafka BaseHashTable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from minibroker.kafka.java_strings import string_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

Element = TypeVar("Element")
CAPACITY_MIN: Final = 16
TIMELINE_CAPACITY_MIN: Final = 2
_TIMELINE_FACTOR: Final = -7046029254386353131
_MASK: Final = 0xFFFFFFFF
_MASK_64: Final = (1 << 64) - 1


def uuid_hash(uuid: bytes) -> int:
    """Uuid.hashCode of 16 bytes: the four 32-bit quarters, exclusive-or."""
    number = int.from_bytes(uuid, "big")
    number ^= number >> 64
    return (number ^ number >> 32) & _MASK


def int_hash(number: int) -> int:
    """Integer.hashCode, unsigned."""
    return number & _MASK


def grown_capacity(count: int) -> int:
    """Buckets of a table that began empty and to which `count` elements were added."""
    capacity = CAPACITY_MIN
    while count > capacity * 3 // 4:
        capacity *= 2
    return capacity


def copied_capacity(count: int) -> int:
    """Buckets of `new HashSet<>(collection)` of `count` elements."""
    capacity = CAPACITY_MIN
    while capacity < int(count / 0.75) + 1:
        capacity *= 2
    return capacity


def hash_order(
    elements: Collection[Element], hash_of: Callable[[Element], int], capacity: int
) -> list[Element]:
    """Return the elements in the order of a walk; they were put in in the order given."""
    mask = capacity - 1

    def bucket(element: Element) -> int:
        code = hash_of(element)
        return (code ^ code >> 16) & mask

    return sorted(elements, key=bucket)


def timeline_order(texts: Sequence[str]) -> list[str]:
    """Return texts in the order of a walk through a TimelineHashMap that began empty; they were
    put in in the order given.
    """
    capacity = TIMELINE_CAPACITY_MIN
    while len(texts) * 3 > capacity * 4:
        capacity *= 2
    shift = 65 - capacity.bit_length()

    def bucket(text: str) -> int:
        code = string_hash(text)
        signed_code = code - (1 << 32) if code >> 31 else code
        return (signed_code * _TIMELINE_FACTOR & _MASK_64) >> shift

    newest_first = texts[::-1]
    return sorted(newest_first, key=bucket)


def java_string_key(text: str) -> bytes:
    """Sorts as String.compareTo does: by UTF-16 units."""
    return text.encode("utf-16-be")


def java_uuid_key(uuid: bytes) -> tuple[int, int]:
    """Sorts as Uuid.compareTo does: as two signed 64-bit numbers."""
    return (
        int.from_bytes(uuid[:8], "big", signed=True),
        int.from_bytes(uuid[8:], "big", signed=True),
    )
