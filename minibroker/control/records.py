"""Records of topics over HTTP: read them, and write them.

    RecordsQuery ─► places (the loop) ─► batches of the log (the loop) ─► JSON (a thread)
    body ─► records, one by one (the loop, in slices) ─► batches, appended by their leaders

Each node of this process may be asked: records are read and written where their partition is led.
"""

from __future__ import annotations

import asyncio
import base64
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from minibroker.broker.partitions.cold_reads import ROUNDS_MAX, ColdError, warm
from minibroker.broker.partitions.partition import READ_UNCOMMITTED
from minibroker.broker.slices import TimeSlice, collect
from minibroker.cli.errors import UsageError
from minibroker.cli.moments import moment_of
from minibroker.control.bodies import line_of
from minibroker.control.messages import HttpError, in_time
from minibroker.control.record_views import RECORD_BYTES_AROUND, RecordForm, first_record
from minibroker.control.shapes import (
    PositionView,
    RecordsQuery,
    RecordsView,
    WrittenRecords,
    WrittenView,
)
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.partitioner import partition_of
from minibroker.kafka.records.record import Record
from minibroker.rig.inspector import TopicProgress
from minibroker.rig.topic_records import check_isolation, read_batches
from minibroker.seeds.errors import LinePlace, SeedError
from minibroker.seeds.items import record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.partitions.partition import Partition
    from minibroker.control.registry_view import RegistryView
    from minibroker.control.shapes import PartQuery, RawRecords, TailQuery
    from minibroker.rig.node import Node
    from minibroker.rig.nodes import Nodes

T = TypeVar("T")
READ_BYTES: Final = 256 << 10
"""Bytes of batches that are decoded at once."""
SCAN_BYTES_MAX: Final = 8 << 20
"""Bytes of keys and values that one request looks at. A key that is rare is looked for in several
requests: each begins where the last one ended.
"""
BATCH_BYTES: Final = 4 << 10
"""Bytes of keys and values of one batch that is written; a larger record is alone. More would hold
the loop for more than a slice.
"""


class _Place:
    """A partition that is read. Owned by the loop."""

    def __init__(self, partition: Partition, next_offset: int) -> None:
        self.partition = partition
        self.next_offset = next_offset


class TopicReading:
    """One request for records of a topic. Owned by the loop."""

    def __init__(
        self, nodes: Nodes, topic: str, query: RecordsQuery, registry: RegistryView
    ) -> None:
        self._nodes = nodes
        self._registry = registry
        self._topic = topic
        self._query = query
        self._level = check_isolation(query.isolation)
        self._records: list[str] = []
        self._bytes_left = query.max_bytes
        self._scan_left = SCAN_BYTES_MAX
        self._form = form_of(query, nodes.all[0].clock.now_ms())

    async def run(self) -> tuple[list[str], list[PositionView]]:
        """Return the records as JSON, and the places behind them. Raises HttpError, KafkaError."""
        query = self._query
        partitions = await all_partitions(self._nodes, self._topic, query.partition)
        places = await self._places(partitions)
        needed_count = min(query.at_least, query.limit)
        until_s = monotonic() + query.wait_ms / 1000
        progress = TopicProgress()
        turn = TimeSlice()
        try:
            while True:
                progress.event.clear()
                if query.wait_ms:
                    self._watch(places, progress)
                for place in places:
                    await self._read(place)
                    if turn.is_over:
                        await turn.pause()
                left_s = until_s - monotonic()
                if len(self._records) >= needed_count or self._is_full or left_s <= 0:
                    positions = await collect(self._position(place) for place in places)
                    return self._records, positions
                try:
                    await asyncio.wait_for(progress.event.wait(), left_s)
                except TimeoutError:
                    until_s = 0.0  # a last look
        finally:
            for place in places if query.wait_ms else ():
                if place.partition.waiters is not None:
                    place.partition.waiters.pop(progress, None)

    def _watch(self, places: Sequence[_Place], progress: TopicProgress) -> None:
        for place in places:
            if place.partition.waiters is None:
                place.partition.waiters = {}
            place.partition.waiters[progress] = None

    async def _places(self, partitions: Sequence[Partition]) -> list[_Place]:
        """Return where to begin. Raises HttpError."""
        query = self._query
        starts = [name for name in ("offset", "since", "tail") if getattr(query, name) is not None]
        if len(starts) > 1:
            raise _wrong(f"{' and '.join(starts)} are given: expected one of offset, since, tail")
        if query.offset is not None and len(partitions) > 1:
            raise _wrong(
                f"query 'offset' needs 'partition': topic {self._topic} has {len(partitions)}"
            )
        places = []
        turn = TimeSlice()
        for partition in partitions:
            places.append(_Place(partition, await self._start(partition)))
            if turn.is_over:
                await turn.pause()
        return places

    async def _start(self, partition: Partition) -> int:
        query = self._query
        end = partition.end_offset_for(self._level)
        if query.offset is not None:
            if not partition.log_start_offset <= query.offset <= partition.log_end_offset:
                raise _wrong(
                    f"query 'offset' is {query.offset}, and {partition} has"
                    f" {partition.log_start_offset} to {partition.log_end_offset}"
                )
            return query.offset
        if query.tail is not None:
            return max(partition.log_start_offset, end - query.tail)
        if query.since is not None:
            ms = moment_ms("since", query.since, self._nodes.all[0].clock.now_ms())
            hit = await resident(
                lambda is_resident: partition.offset_for_timestamp(ms, resident_only=is_resident)
            )
            return end if hit is None else max(hit.offset, partition.log_start_offset)
        return partition.log_start_offset

    async def _read(self, place: _Place) -> None:
        """Read a partition as far as the limits reach. Raises HttpError, KafkaError."""
        partition = place.partition
        while len(self._records) < self._query.limit and not self._is_full:
            if place.next_offset >= partition.end_offset_for(self._level):
                return
            offset = place.next_offset
            batches = await resident(
                lambda is_resident, offset=offset: read_batches(  # type: ignore[misc]
                    partition, offset, self._level, READ_BYTES, resident_only=is_resident
                )
            )
            limit = self._query.limit - len(self._records)
            try:
                text = await self._registry.text(
                    batches, limit, self._bytes_left, self._form, self._scan_left
                )
            except CorruptionError as error:
                raise HttpError(HTTPStatus.CONFLICT, f"{partition}: {error}") from None
            if text.next_offset == offset:
                return
            self._records += text.records
            self._bytes_left -= text.size_bytes
            self._scan_left -= text.scanned_bytes
            place.next_offset = text.next_offset

    @property
    def _is_full(self) -> bool:
        return self._bytes_left <= 0 or self._scan_left <= 0

    def _position(self, place: _Place) -> PositionView:
        return PositionView(
            partition=place.partition.index,
            next_offset=place.next_offset,
            end_offset=place.partition.end_offset_for(self._level),
        )


def moment_ms(name: str, text: str, now_ms: int) -> int:
    """Return the time of a field of the query, ms since the epoch. Raises HttpError(400)."""
    try:
        return moment_of(text, now_ms).ms
    except UsageError as error:
        raise _wrong(f"query {name!r}: {error}") from None


def form_of(query: RecordsQuery | TailQuery, now_ms: int) -> RecordForm:
    """Return the choice and the form of the records that a query asks for. Raises HttpError."""
    key = None if query.key is None else query.key.encode()
    if query.key_base64 is not None:
        if key is not None:
            raise _wrong("key and key_base64 are given: expected one of them")
        try:
            key = base64.b64decode(query.key_base64, validate=True)
        except ValueError as error:
            raise _wrong(f"query 'key_base64': {error}") from None
    until_ms = None
    if isinstance(query, RecordsQuery) and query.until is not None:
        until_ms = moment_ms("until", query.until, now_ms)
    return RecordForm(query.format, query.value_bytes_max, key, until_ms)


def partition_indexes(nodes: Nodes, topic: str, index: int | None) -> Sequence[int]:
    """Return the indexes of a topic's partitions, or the one that is given. Raises
    HttpError(404).
    """
    image = nodes.metadata.image.topics.get(topic)
    if image is None:
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no topic {topic!r:.300}")
    count = len(image.partitions)
    if index is not None and index >= count:
        raise HttpError(
            HTTPStatus.NOT_FOUND, f"topic {topic} has {count} partitions, there is no {index}"
        )
    return range(count) if index is None else (index,)


def partitions_of(nodes: Nodes, topic: str, index: int | None) -> list[Partition]:
    """Return some partitions of a topic where they are led; for a few. Raises HttpError."""
    indexes = partition_indexes(nodes, topic, index)
    return [led_partition(nodes, topic, index)[1] for index in indexes]


async def all_partitions(nodes: Nodes, topic: str, index: int | None) -> list[Partition]:
    """Do `partitions_of` in slices. Raises HttpError."""
    indexes = partition_indexes(nodes, topic, index)
    return await collect(led_partition(nodes, topic, index)[1] for index in indexes)


def led_partition(nodes: Nodes, topic: str, index: int) -> tuple[Node, Partition]:
    """Return the leader of a partition. Raises HttpError."""
    for node in nodes.active:
        partition = node.app.partitions.find(topic, index)
        if partition is not None:
            return node, partition
    leader = nodes.partition(topic, index).leader
    raise HttpError(
        HTTPStatus.CONFLICT,
        f"broker {leader} leads {topic}-{index}: ask its control API"
        if leader >= 0
        else f"{topic}-{index} has no leader now: try again",
    )


async def resident(read: Callable[[bool], T]) -> T:
    """Return what `read` returns, once what it needs of the files is in memory."""
    for _ in range(ROUNDS_MAX):
        try:
            return read(True)
        except ColdError as cold:
            await warm([cold])
    return read(False)


def records_text(records: Sequence[str], positions: list[PositionView]) -> bytes:
    """Return a RecordsView as JSON. It runs in a thread."""
    head, _, end = line_of(RecordsView(records=[], positions=positions)).partition("[]")
    return "".join((head, "[", ", ".join(records), "]", end, "\n")).encode()


def records_lines(records: Sequence[str]) -> bytes:
    """Return a line of JSON for each record: a seed. It runs in a thread."""
    return "".join(f"{record}\n" for record in records).encode()


async def part_of(nodes: Nodes, topic: str, query: PartQuery) -> bytes:
    """Return the bytes of a record's key or value. Raises HttpError, KafkaError."""
    (partition,) = partitions_of(nodes, topic, query.partition)
    place = f"{partition} at offset {query.offset}"
    if not partition.log_start_offset <= query.offset < partition.log_end_offset:
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no record in {place}")
    batches = await resident(
        lambda is_resident: read_batches(
            partition, query.offset, READ_UNCOMMITTED, 1, resident_only=is_resident
        )
    )
    try:
        record = await asyncio.to_thread(first_record, batches)
    except CorruptionError as error:
        raise HttpError(HTTPStatus.CONFLICT, f"{partition}: {error}") from None
    if record is None or record.offset != query.offset:
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no record in {place}")
    data = record.key if query.part == "key" else record.value
    if data is None:
        raise HttpError(HTTPStatus.NOT_FOUND, f"the record in {place} has no {query.part}")
    return data


# Writing.


class TopicWriting:
    """One request to write records. Owned by the loop."""

    def __init__(self, nodes: Nodes, topic: str) -> None:
        self._nodes = nodes
        self._topic = topic
        self._batches: dict[int, list[tuple[int, Record]]] = {}
        """Partition → number in the request and record, of the batch that is being filled."""
        self._sizes: dict[int, int] = {}
        self._written: list[WrittenView] = []

    async def run(self, raw: RawRecords) -> WrittenRecords:
        """Write the records. Raises HttpError, KafkaError."""
        if not self._nodes.active:
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "no broker runs now: see /faults")
        node = self._nodes.active[0]
        turn = TimeSlice()
        checked = await self._checked(raw, node.clock.now_ms(), turn)
        if self._topic not in node.app.cluster.image.topics:
            await self._make_topic(node)
        count = len(partition_indexes(self._nodes, self._topic, None))
        most = max((index for index, _ in checked if index is not None), default=0)
        if most >= count:
            raise _wrong(f"partition: {most}: topic {self._topic} has {count}")
        self._written = [WrittenView(partition=-1, offset=-1)] * len(checked)
        await turn.pause()
        for number, (index, record) in enumerate(checked):
            partition = partition_of(record.key, count) if index is None else index
            await self._add(partition, number, record, turn)
        for partition in list(self._batches):
            await self._flush(partition)
        return WrittenRecords(records=self._written)

    async def _make_topic(self, node: Node) -> None:
        """Have a broker make the topic, if brokers do so by themselves. Raises HttpError,
        KafkaError.
        """
        await node.inspector.ensure_topic(self._topic)
        await in_time(self._nodes.until_known(self._topic, node.app.cluster))

    async def _checked(
        self, raw: RawRecords, now_ms: int, turn: TimeSlice
    ) -> list[tuple[int | None, Record]]:
        """Return partition and record of each item. Raises HttpError."""
        checked: list[tuple[int | None, Record]] = []
        await turn.pause()  # the body was scanned in this slice
        for number, text in enumerate(raw.records):
            fields = _fields_of(text, number)
            # A client that is generated may send null for a field that it does not have.
            fields = {name: part for name, part in fields.items() if part is not None}
            fields["topic"] = self._topic
            if "value_base64" not in fields:
                fields.setdefault("value", None)
            try:
                item = record_of(fields, LinePlace("records", number), now_ms)
            except SeedError as error:
                raise _wrong(str(error)) from None
            when = now_ms if item.timestamp is None else item.timestamp
            checked.append((item.partition, Record(0, when, item.key, item.value, item.headers)))
            if turn.is_over:
                await turn.pause()
        return checked

    async def _add(self, partition: int, number: int, record: Record, turn: TimeSlice) -> None:
        size_bytes = len(record.key or b"") + len(record.value or b"") + RECORD_BYTES_AROUND
        if self._sizes.get(partition, 0) + size_bytes > BATCH_BYTES:
            await turn.pause()  # building and checking a batch is a slice
            await self._flush(partition)
            await turn.pause()
        self._batches.setdefault(partition, []).append((number, record))
        self._sizes[partition] = self._sizes.get(partition, 0) + size_bytes

    async def _flush(self, index: int) -> None:
        """Write the batch of a partition. Raises HttpError, KafkaError."""
        self._sizes.pop(index, None)
        batch = self._batches.pop(index, None)
        if batch is None:
            return
        partitions_of(self._nodes, self._topic, index)
        node, partition = led_partition(self._nodes, self._topic, index)
        first_offset = await node.inspector.append(partition, [record for _, record in batch])
        for offset, (number, _) in enumerate(batch, first_offset):
            self._written[number] = WrittenView(partition=index, offset=offset)


def _fields_of(text: msgspec.Raw, number: int) -> dict[str, Any]:
    """Return the fields of an item. Raises HttpError; its syntax alone was checked before."""
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _wrong(f"records:{number}: it is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise _wrong(f"records:{number}: {fields!r:.100}, expected an object")
    return fields


def _wrong(sentence: str) -> HttpError:
    return HttpError(HTTPStatus.BAD_REQUEST, sentence)
