"""Digests of the rows of a task, so that a repeated task can be compared with its first attempt.

Each row has a code: a CRC over its columns. Two digests of the codes go into the marker, and
neither depends on the borders of Arrow batches:

| digest    | is                                 | finds                             |
|-----------|------------------------------------|-----------------------------------|
| `ordered` | SHA-256 of the codes, in order     | any other row, any other order    |
| `row_sum` | the sum of the codes, modulo 2^64  | any other row                     |

Rows behind a shuffle may come in another order when a task is repeated on a cluster: Spark fetches
blocks from its machines as they come. These rows are the same, and they are in the topic already.
"""

from __future__ import annotations

import hashlib
from array import array
from itertools import repeat
from operator import add, mul
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ORDERED_BYTES: Final = 16
_SUM_LIMIT: Final = 1 << 64
_FACTOR: Final = 1_000_003
"""Between two columns of numbers, so that they do not change places unseen."""
_NULL_LENGTH: Final = -1


class Contents(NamedTuple):
    """The rows of a task, as a marker keeps them."""

    rows: int
    ordered: str = ""
    """Hexadecimal, as `row_sum`; both are empty in a marker of an older version."""
    row_sum: str = ""

    def is_like(self, other: Contents) -> bool:
        """Return whether both have the same rows, in whatever order.

        Contents of an older version have only a number of rows, which is compared then.
        """
        if self.rows != other.rows:
            return False
        if not self.ordered or not other.ordered:
            return True
        return self.ordered == other.ordered or self.row_sum == other.row_sum


class ContentDigest:
    """Takes the columns of a task's batches one after the other."""

    def __init__(self) -> None:
        self._ordered = hashlib.sha256()
        self._row_sum = 0
        self._rows = 0

    def add(self, columns: Sequence[Iterable[Any]]) -> None:
        """Add the rows of one batch: `columns.columns`.

        A column without values of its own, as the topic that an option names, is no list and does
        not count.
        """
        own = [values for values in columns if isinstance(values, list) and values]
        codes: Iterable[int] = repeat(0)
        # Numbers come first: the CRC of the next text begins with their sum.
        for values in sorted(own, key=lambda values: not isinstance(values[0], int)):
            if isinstance(values[0], int):
                codes = map(add, values, map(mul, codes, repeat(_FACTOR)))
            else:
                texts, lengths = _texts(values)
                codes = map(crc32, texts, map(add, lengths, codes))
        if own:
            numbers = array("q", codes)
            self._ordered.update(numbers.tobytes())
            self._row_sum = (self._row_sum + sum(numbers)) % _SUM_LIMIT
            self._rows += len(numbers)

    def contents(self) -> Contents:
        """Return the digests of all rows so far."""
        ordered = self._ordered.digest()[:ORDERED_BYTES].hex()
        return Contents(self._rows, ordered, f"{self._row_sum:016x}")


def _texts(values: list[Any]) -> tuple[list[bytes], Iterable[int]]:
    """Return keys, values, topics or headers as bytes, and their lengths; -1 stands for null."""
    if None not in values and isinstance(values[0], bytes):
        return values, map(len, values)
    texts = [_bytes(value) for value in values]
    lengths = [
        _NULL_LENGTH if value is None else len(text)
        for value, text in zip(values, texts, strict=True)
    ]
    return texts, lengths


def _bytes(value: Any) -> bytes:
    if value is None or isinstance(value, bytes):
        return value or b""
    return (value if isinstance(value, str) else repr(value)).encode()
