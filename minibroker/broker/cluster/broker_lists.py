"""Lists of broker ids that are kept once: 10,000 partitions have a handful of different ones.

The images of partitions hold them (`image.PartitionImage`). Nobody changes such a list.
"""

from __future__ import annotations

from typing import Final

LISTS_MAX: Final = 4096
"""Lists that are kept, a megabyte at most. Three replicas on sixteen brokers make 3,360."""
NO_BROKERS: Final[list[int]] = []


class BrokerLists:
    """Owned by the loop."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], list[int]] = {}

    def share(self, broker_ids: list[int]) -> list[int]:
        """Return one list object for equal lists.

        Where there are too many different ones, all are forgotten: equal lists that come before and
        after that are two objects.
        """
        if not broker_ids:
            return NO_BROKERS
        if len(self._kept) >= LISTS_MAX:
            self._kept.clear()
        return self._kept.setdefault(tuple(broker_ids), broker_ids)
