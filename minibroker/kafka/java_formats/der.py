"""The parts of DER that certificates need: a value's tag, its content, the values inside of it.

For certificates that OpenSSL has parsed: this reads what is there, and checks no rule of X.509.
Source: ITU-T X.690.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONG_FORM: Final = 0x80


class DerValue(NamedTuple):
    """One value: its tag, its content, and all of its bytes (tag and length included)."""

    tag: int
    content: bytes
    encoded: bytes


def read_values(data: bytes) -> Iterator[DerValue]:
    """Yield the values that stand one behind the other. Raises ValueError for a length that does
    not fit.
    """
    position = 0
    while position < len(data):
        start = position
        if position + 2 > len(data):
            raise ValueError("a DER value ends before its length")
        tag, length = data[position], data[position + 1]
        position += 2
        if length >= _LONG_FORM:
            width = length - _LONG_FORM
            length = int.from_bytes(data[position : position + width], "big")
            position += width
        end = position + length
        if end > len(data):
            raise ValueError(f"a DER value of {length} bytes, {len(data) - position} are there")
        yield DerValue(tag, data[position:end], data[start:end])
        position = end


def read_oid(content: bytes) -> str:
    """Return an object identifier in dotted form, such as `2.5.4.3`."""
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
