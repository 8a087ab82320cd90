"""The order in which Java's HashMap and HashSet are walked; pure.

Kafka's assignors walk hash tables, so who gets which partition depends on it wherever they have a
choice. Following the same order gives the same assignment for the same members and topics.

A table has a power of two of buckets. An element lies in the bucket of its hash code, folded to 32
bits; the elements of one bucket lie in the order they were put in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

Element = TypeVar("Element")
CAPACITY_MIN: Final = 16
_MASK: Final = 0xFFFFFFFF


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


def java_string_key(text: str) -> bytes:
    """Sorts as String.compareTo does: by UTF-16 units."""
    return text.encode("utf-16-be")


def java_uuid_key(uuid: bytes) -> tuple[int, int]:
    """Sorts as Uuid.compareTo does: as two signed 64-bit numbers."""
    return (
        int.from_bytes(uuid[:8], "big", signed=True),
        int.from_bytes(uuid[8:], "big", signed=True),
    )
