"""Records of partitions, read between two places, or on and on; the work behind `consume`.

places ─► offsets ─► client.consume.PartitionReader ─► Fetched, each cut at the end
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.client import admin
from minibroker.client.consume import Fetched, OffsetGoneError, PartitionReader
from minibroker.kafka.ids import EARLIEST_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from minibroker.client.client import Client
    from minibroker.kafka.ids import TopicPartition

ASK_S: Final = 1.0
"""Time after which `read_on` gives nothing, so that its caller may do something else."""
ENDED_MS: Final = 100
"""Longest wait of a broker for a reader that ends: only a gap at the end of a log makes it wait."""
_EMPTY_MAX: Final = 2
"""Answers without records, though the log reaches to the end, until that is believed."""


class Lost(NamedTuple):
    """Records that were removed before they were read."""

    place: TopicPartition
    first: int
    next_offset: int
    """The first offset that is still there."""


def read_between(
    client: Client,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    *,
    is_committed: bool,
    on_lost: Callable[[Lost], None],
) -> Iterator[Fetched]:
    """Yield what is between two offsets of each partition; those of a partition in their order.

    Compaction and transactions leave gaps: a partition ends where no record is left before its end.
    The last batch of a partition may go beyond the end.

    Args:
        starts: partition → first offset.
        ends: partition → offset behind the last one.
        is_committed: records of open and aborted transactions are left out.
        on_lost: takes records that are gone; then reading goes on behind them.

    Raises OffsetGoneError, CorruptionError, KafkaError, OSError, ProtocolError, ConfigError.
    """
    remaining = {place: start for place, start in starts.items() if start < ends[place]}
    empty = dict.fromkeys(remaining, 0)
    reader = PartitionReader(
        client, remaining, is_committed=is_committed, wait_ms=ENDED_MS, rack=client.rack
    )
    try:
        while reader.positions:
            for fetched in polled(client, reader, ASK_S, on_lost):
                place, end = fetched.place, ends[fetched.place]
                if fetched.batches:
                    yield fetched
                is_empty = fetched.next_offset == fetched.start and fetched.end >= end
                empty[place] = empty[place] + 1 if is_empty else 0
                if fetched.next_offset >= end or empty[place] >= _EMPTY_MAX:
                    reader.remove([place])
    finally:
        reader.close()


def read_on(
    client: Client,
    starts: Mapping[TopicPartition, int],
    *,
    is_committed: bool,
    on_lost: Callable[[Lost], None],
) -> Iterator[Fetched | None]:
    """Yield what is there from the starts on, and what comes; None where nothing came for `ASK_S`.

    Arguments and errors are those of `read_between`.
    """
    reader = PartitionReader(client, starts, is_committed=is_committed, rack=client.rack)
    try:
        while True:
            with_batches = [each for each in polled(client, reader, ASK_S, on_lost) if each.batches]
            if with_batches:
                yield from with_batches
            else:
                yield None
    finally:
        reader.close()


def polled(
    client: Client, reader: PartitionReader, timeout_s: float, on_lost: Callable[[Lost], None]
) -> list[Fetched]:
    """Return what the reader has; go to what is left of a log whose records are gone.

    `on_lost` takes the records that are gone. Raises OffsetGoneError, CorruptionError, KafkaError,
    OSError, ProtocolError, ConfigError.
    """
    until_s = time.monotonic() + timeout_s
    while True:
        try:
            return reader.poll(max(0.0, until_s - time.monotonic()))
        except OffsetGoneError as gone:
            starts = admin.offsets_at(client, [gone.place], EARLIEST_TIMESTAMP, is_committed=False)
            first = starts[gone.place]
            if first <= gone.offset:  # beyond the end: the log was cut, or made anew
                raise
            on_lost(Lost(gone.place, gone.offset, first))
            reader.positions[gone.place] = first
