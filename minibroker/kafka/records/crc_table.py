"""CRC-32C in Python, for a system without a wheel of the package `crc32c` (see `crc`).

One table of 256 entries, a step for each byte: some MB a second, where the package does GB. So a
broker that serves large batches wants the package, built from its source with a C compiler.

Source: RFC 3720, appendix B.4.
"""

from __future__ import annotations

from typing import Final

_POLYNOMIAL: Final = 0x82F63B78
"""Castagnoli's, its bits in reverse order."""
_MASK: Final = 0xFFFFFFFF


def _entry(number: int) -> int:
    for _ in range(8):
        number = number >> 1 ^ _POLYNOMIAL if number & 1 else number >> 1
    return number


_TABLE: Final = tuple(_entry(number) for number in range(256))


def crc32c(data: bytes | bytearray | memoryview, checksum: int = 0) -> int:
    """Return the CRC-32C of a contiguous buffer; `checksum`: that of what comes before it."""
    table = _TABLE
    value = checksum ^ _MASK
    for byte in memoryview(data).cast("B"):
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ _MASK
