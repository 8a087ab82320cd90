"""The parts of another broker's answer, looked up by what was asked for.

A broker may leave a part out, or answer about another one. To its caller that is an answer it
cannot use, as a malformed one is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from minibroker.kafka.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_K = TypeVar("_K")
_V = TypeVar("_V")


def part_of(parts: Mapping[_K, _V], key: _K) -> _V:
    """Return the part about `key`. Raises ProtocolError if there is none."""
    if key not in parts:
        raise ProtocolError(f"the answer leaves {key} out")
    return parts[key]


def by_partition(topics: Iterable[Any]) -> dict[tuple[str, int], Any]:
    """Return (topic, partition) → its part, of an answer whose topics have `name` and `partitions`,
    and whose partitions have a `partition_index`.
    """
    return {
        (topic.name, partition.partition_index): partition
        for topic in topics
        for partition in topic.partitions
    }
