"""The ordered segments of one log, with the floor lookup every read starts with.

Source: Kafka LogSegments.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from minibroker.broker.storage.segment import Segment


class Segments:
    """Segments by base offset, ascending. The last one is the active one.

    Belongs to the loop, which replaces both lists at once where another thread may read.
    """

    __slots__ = ("_bases", "_items")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._items: list[Segment] = []

    def add(self, segment: Segment) -> None:
        """Insert by base offset; one with the same base offset is replaced."""
        place = bisect_right(self._bases, segment.base_offset)
        if place and self._bases[place - 1] == segment.base_offset:
            self._items[place - 1] = segment
        else:
            self._bases.insert(place, segment.base_offset)
            self._items.insert(place, segment)

    def remove(self, base_offset: int) -> None:
        """Raises ValueError where there is none."""
        place = self._bases.index(base_offset)
        del self._bases[place], self._items[place]

    def replace(self, old: Iterable[Segment], new: Iterable[Segment]) -> None:
        """Take `old` out and put `new` in at once: another thread that asks for `first` meanwhile
        sees the list as it was or as it is.
        """
        gone = {segment.base_offset for segment in old}
        items = [segment for segment in self._items if segment.base_offset not in gone]
        self._items = sorted([*items, *new], key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._items]

    def floor(self, offset: int) -> Segment | None:
        """Return the segment with the greatest base offset ≤ `offset`."""
        place = bisect_right(self._bases, offset)
        return self._items[place - 1] if place else None

    def higher(self, base_offset: int) -> Segment | None:
        """Return the segment behind the one with this base offset."""
        place = bisect_right(self._bases, base_offset)
        return self._items[place] if place < len(self._items) else None

    def since(self, offset: int) -> list[Segment]:
        """Return the floor segment of `offset` and every one behind it; all where there is no
        floor.
        """
        return self._items[max(bisect_right(self._bases, offset) - 1, 0) :]

    def find_batch(self, offset: int) -> tuple[Segment, tuple[int, int, int] | None]:
        """Return the first batch that ends at `offset` or later, as `Segment.find_batch` gives it,
        and its segment; the last segment and None where compaction took every such batch.

        Raises OSError, CorruptionError.
        """
        segment = self.floor(offset) or self.first
        found = segment.find_batch(offset)
        while found is None:
            higher = self.higher(segment.base_offset)
            if higher is None:
                break
            segment = higher
            found = segment.find_batch(offset)
        return segment, found

    @property
    def first(self) -> Segment:
        return self._items[0]

    @property
    def last(self) -> Segment:
        return self._items[-1]

    def hold(self, start: int, end: int) -> bool:
        """Do the first and the last segment begin where a log from `start` to `end` can have them?
        O(1): of the others it was asked when they were last.
        """
        bases = self._bases
        return bases[0] <= start and bases[-1] <= end and (len(bases) < 2 or bases[-2] < bases[-1])

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[Segment]:
        return reversed(self._items)

    def __len__(self) -> int:
        return len(self._items)
