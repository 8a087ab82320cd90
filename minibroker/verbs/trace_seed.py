"""`minibroker trace --seed`: the records that producers wrote in a conversation, as a seed.

    first reading ─► topics and their partitions        second reading ─► records in their order

Records count once a broker has taken them: their answer has no error, or none was asked for. Those
of a transaction count when it is committed, in the order of the commits.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.cli.errors import CommandError
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.conversion import read_records
from minibroker.seeds.lines import lines_of
from minibroker.seeds.outputs import output_of
from minibroker.trace.batches import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from minibroker.kafka.records.record import Record
    from minibroker.seeds.outputs import SeedOutput
    from minibroker.trace.exchange import Exchange

RECORDS_BYTES_MAX: Final = 100 << 20
"""Bytes of one partition of a request that are opened; brokers take no more."""


class ProducedBatch(NamedTuple):
    """Records of one batch that a broker took."""

    place: TopicPartition
    producer_id: int
    is_transactional: bool
    records: list[Record]


def write_seed(
    exchanges: Callable[[], Iterable[Exchange]], names: Mapping[bytes, str], target: str
) -> str:
    """Write JSON lines; return a text with the numbers of topics and records.

    Args:
        exchanges: reads the conversation from its start; called twice.
        names: topic id → name, filled while the exchanges are read.
        target: a new file that ends in .jsonl.

    Raises CommandError, SeedError, OSError, and the errors of reading the exchanges.
    """
    if not target.endswith(".jsonl"):
        raise CommandError(f"--seed {target}: expected a file that ends in .jsonl")
    topics: dict[str, int] = {}
    for exchange in exchanges():
        _count_partitions(exchange, topics, names)
    output = output_of(Path(target), target)
    try:
        for topic, partitions in topics.items():
            output.declare(topic, partitions, {})
        count = _write_records(exchanges(), names, output)
        output.finish()
    except BaseException:
        output.abandon()
        raise
    return f"{count_of(count, 'record')} of {count_of(len(topics), 'topic')}"


def _count_partitions(
    exchange: Exchange, topics: dict[str, int], names: Mapping[bytes, str]
) -> None:
    """Note the topics of a Produce and of answers to Metadata, with their partitions."""
    for batch in produced_batches(exchange, names):
        topic, partition = batch.place
        topics[topic] = max(topics.get(topic, 0), partition + 1)
    if exchange.api == "Metadata" and exchange.answer is not None:
        answer: Any = exchange.answer
        for topic in answer.topics:
            if topic.name in topics and topic.partitions:
                topics[topic.name] = max(topics[topic.name], len(topic.partitions))


def _write_records(
    exchanges: Iterable[Exchange], names: Mapping[bytes, str], output: SeedOutput
) -> int:
    """Write the records that are committed; return their number."""
    count = 0
    open_batches: dict[int, list[ProducedBatch]] = {}
    for exchange in exchanges:
        ready: list[ProducedBatch] = []
        for batch in produced_batches(exchange, names):
            if batch.is_transactional:
                open_batches.setdefault(batch.producer_id, []).append(batch)
            else:
                ready.append(batch)
        if exchange.api == "EndTxn" and exchange.error is None and exchange.request is not None:
            request: Any = exchange.request
            ended = open_batches.pop(request.producer_id, [])
            ready += ended if request.committed else []
        for batch in ready:
            output.write(batch.place, batch.records[0].offset, lines_of(batch.place, batch.records))
            count += len(batch.records)
    return count


def produced_batches(exchange: Exchange, names: Mapping[bytes, str]) -> Iterator[ProducedBatch]:
    """Yield the batches of a Produce that the broker took; damaged ones are passed over."""
    if exchange.api != "Produce" or exchange.request is None:
        return
    request: Any = exchange.request
    if exchange.answer is None and request.acks != 0:
        return
    offsets = _offsets(exchange.answer)
    for topic in request.topic_data:
        name: str = topic.name or names.get(topic.topic_id, "")
        for partition in topic.partition_data if name else ():
            key = (topic.name, topic.topic_id, partition.index)
            if exchange.answer is not None and key not in offsets:
                continue  # refused
            place = TopicPartition(name, partition.index)
            yield from _batches(place, memoryview(partition.records or b""), offsets.get(key, 0))


def _offsets(answer: Any) -> dict[tuple[str, bytes, int], int]:
    """Return the first offset of each partition that the broker took."""
    if answer is None:
        return {}
    return {
        (topic.name, topic.topic_id, partition.index): max(partition.base_offset, 0)
        for topic in answer.responses
        for partition in topic.partition_responses
        if not partition.error_code
    }


def _batches(place: TopicPartition, records: memoryview, start: int) -> Iterator[ProducedBatch]:
    if len(records) > RECORDS_BYTES_MAX:
        return
    try:
        for position, header in iterate_headers(records):
            batch = [
                record._replace(offset=start + number)
                for number, record in enumerate(read_records(records, position, header))
            ]
            start += len(batch)
            if batch:
                yield ProducedBatch(place, header.producer_id, header.is_transactional, batch)
    except (CorruptionError, KafkaError):
        return
