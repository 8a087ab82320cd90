"""The live tail of a topic: its newest records, as they come, at most so many a second.

    appends ─► an event ─► a look, four times a second at most ─► the newest records (a thread)
                                                                ─► one event of the stream

A look takes only as many records as the rate allows. Where more came, it begins so many before the
end, and counts the others by their offsets. So a tail of a fast topic reads and decodes no more
than that of a slow one. Between two looks a partition tells once that there is more.
"""

from __future__ import annotations

from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Final

from minibroker.control.bodies import line_of
from minibroker.control.messages import HttpError
from minibroker.control.records import (
    READ_BYTES,
    form_of,
    partitions_of,
    resident,
)
from minibroker.control.shapes import TailEvent
from minibroker.control.streams import StreamPace, event_of, event_of_text
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.rig.inspector import TopicProgress
from minibroker.rig.topic_records import check_isolation, read_batches

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from minibroker.broker.partitions.partition import Partition
    from minibroker.control.registry_view import RegistryView
    from minibroker.control.shapes import TailQuery
    from minibroker.rig.nodes import Nodes

PARTITIONS_MAX: Final = 256
"""Partitions of one tail: each look looks at all of them."""
FIRST_MAX: Final = 1000
"""Records of the first event: the last ones of each partition."""
EVENT_BYTES_MAX: Final = 256 << 10
"""Keys and values of one event end behind so many bytes."""
SCAN_BYTES_MAX: Final = 1 << 20
"""Bytes of keys and values that one look reads, where only some of the records are shown."""
LOOK_S_MAX: Final = 1.0
"""A look takes at most the records of so long a time: a quiet stream saves up no more."""


class _TailPlace:
    """The place of the tail in one partition. Owned by the loop."""

    def __init__(self, partition: Partition, next_offset: int) -> None:
        self.partition = partition
        self.next_offset = next_offset


class TopicTail:
    """The tail of one stream. Owned by the loop."""

    def __init__(self, nodes: Nodes, query: TailQuery, registry: RegistryView) -> None:
        """Begin behind the last records of now. Raises HttpError."""
        self._nodes = nodes
        self._registry = registry
        self._query = query
        self._level = check_isolation(query.isolation)
        self._form = form_of(query, nodes.all[0].clock.now_ms())
        self._progress = TopicProgress()
        self._places: dict[int, _TailPlace] = {}
        for partition in self._partitions():
            end = partition.end_offset_for(self._level)
            start = max(partition.log_start_offset, end - query.tail)
            self._places[partition.index] = _TailPlace(partition, start)
        self._first_limit = min(max(query.tail * len(self._places), query.rate), FIRST_MAX)
        self._skipped = 0

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the events of the stream, until the topic goes away."""
        pace = StreamPace()
        last_look_s = monotonic()
        limit = self._first_limit
        try:
            while True:
                self._progress.event.clear()
                self._watch()
                event = await self._look(limit)
                if (piece := pace.piece(event)) is not None:
                    yield piece
                if event is None:
                    await pace.next_look(self._progress.event)
                else:
                    await pace.next_tick()
                passed_s = min(monotonic() - last_look_s, LOOK_S_MAX)
                last_look_s = monotonic()
                limit = max(1, int(self._query.rate * passed_s))
        except HttpError as error:
            yield event_of("end", {"reason": str(error)})
        finally:
            for place in self._places.values():
                place.partition.unwatch(self._progress)

    def _watch(self) -> None:
        """Have the partitions tell once that there is more. Raises HttpError."""
        for partition in self._partitions():
            place = self._places.get(partition.index)
            if place is None:
                place = _TailPlace(partition, partition.log_start_offset)
                self._places[partition.index] = place
            if place.partition is not partition:
                place.partition.unwatch(self._progress)
                place.partition = partition
                if place.next_offset > partition.log_end_offset:  # another topic of this name
                    place.next_offset = partition.log_start_offset
            partition.watch(self._progress)

    def _partitions(self) -> list[Partition]:
        """Return the partitions of the tail where they are led. Raises HttpError."""
        topic, index = self._query.topic, self._query.partition
        image = self._nodes.metadata.image.topics.get(topic)
        if index is None and image is not None and len(image.partitions) > PARTITIONS_MAX:
            raise HttpError(
                HTTPStatus.BAD_REQUEST,
                f"topic {topic} has {len(image.partitions)} partitions: a tail without 'partition'"
                f" is of at most {PARTITIONS_MAX}",
            )
        return partitions_of(self._nodes, topic, index)

    async def _look(self, limit: int) -> bytes | None:
        """Return the event of what came since the last look, None for nothing. Raises HttpError."""
        ends = {
            place: place.partition.end_offset_for(self._level) for place in self._places.values()
        }
        behind = {
            place: end - place.next_offset for place, end in ends.items() if end > place.next_offset
        }
        total = sum(behind.values())
        records: list[str] = []
        bytes_left = EVENT_BYTES_MAX
        for place, count in behind.items():
            share = count if total <= limit else max(1, limit * count // total)
            room = limit - len(records)
            if self._form.is_choosy:
                share = count
            elif room <= 0 or bytes_left <= 0:
                share = 0
            self._skip_to(place, max(place.next_offset, ends[place] - share))
            if share:
                bytes_left -= await self._read(
                    place, ends[place], min(share, room), bytes_left, records
                )
        if not records and not self._skipped:
            return None
        skipped, self._skipped = self._skipped, 0
        head = line_of(TailEvent(skipped=skipped, records=[])).removesuffix("]}")
        return event_of_text("records", f"{head}{', '.join(records)}]}}".encode())

    async def _read(
        self, place: _TailPlace, end: int, limit: int, bytes_max: int, records: list[str]
    ) -> int:
        """Add records of a partition, up to `end`; skip those behind the limits. Return the bytes
        of their keys and values. Raises HttpError.
        """
        size_bytes = scanned_bytes = count = 0
        while place.next_offset < end:
            if count >= limit or size_bytes >= bytes_max or scanned_bytes >= SCAN_BYTES_MAX:
                self._skip_to(place, end)
                break
            offset = place.next_offset
            try:
                batches = await resident(
                    lambda is_resident, offset=offset: read_batches(  # type: ignore[misc]
                        place.partition, offset, self._level, READ_BYTES, resident_only=is_resident
                    )
                )
                text = await self._registry.text(
                    batches,
                    limit - count,
                    bytes_max - size_bytes,
                    self._form,
                    SCAN_BYTES_MAX - scanned_bytes,
                )
            except CorruptionError as error:
                raise HttpError(HTTPStatus.CONFLICT, f"{place.partition}: {error}") from None
            except KafkaError:  # deleted meanwhile, or another broker leads: the next look knows
                self._skip_to(place, end)
                break
            if text.next_offset == offset:
                break
            records += text.records
            count += len(text.records)
            size_bytes += text.size_bytes
            scanned_bytes += text.scanned_bytes
            place.next_offset = text.next_offset
        return size_bytes

    def _skip_to(self, place: _TailPlace, offset: int) -> None:
        self._skipped += max(0, offset - place.next_offset)
        place.next_offset = max(place.next_offset, offset)
