"""Requests of Fetch for ranges, and the first answers about many small ones from few requests.

    ranges ─► windows ─► a Fetch for each leader ─► answers, in the order of the ranges

A topic of 10,000 partitions with a few records in each would cost a request for each otherwise. An
answer has `fetch_bytes` for all ranges of its request together, and the broker fills it in their
order. So a range may be without an answer: then the next window begins with it. A range whose
answer does not reach to its end, or has an error, is read on by `range_reader`, as any other range.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, MinibrokerError
from minibroker.kafka.ids import TopicPartition, topic_id_to_text
from minibroker.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from minibroker.kafka.protocol.primitives import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from minibroker.client.client import Client, PartitionLeader
    from minibroker.client.settings import ClientSettings
    from minibroker.kafka.protocol.messages.fetch import PartitionData
    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import OffsetRange

OLDEST: Final = 4
NEWEST_BY_NAME: Final = 12
NEWEST: Final = 16
"""Versions of Fetch: batches of format 2 from 4 on, topics by id from 13 on; later ones are for
replicas.
"""
LEADER_EPOCH_FROM: Final = 9
LAST_EPOCH_FROM: Final = 12
MADE_ANEW: Final = "the topic has another id"
SMALL_MAX: Final = 2_000
"""Offsets of a range that is asked for together with others."""
WINDOW_MAX: Final = 1_000
"""Ranges of a window."""

logger = logging.getLogger(__name__)


def first_answers(
    options: SourceOptions,
    settings: ClientSettings,
    client: Client,
    ranges: Sequence[OffsetRange],
) -> Iterator[tuple[OffsetRange, PartitionData | None]]:
    """Yield every range that is not empty, in order, with its answer; None: it is not known yet.

    An error here makes no answer: `range_reader` asks again, and reports it.
    """
    waiting = [span for span in ranges if span.size > 0]
    at = 0
    while at < len(waiting):
        window = _window(waiting, at)
        answers = answers_together(options, settings, client, window) if len(window) > 1 else {}
        for number, span in enumerate(window):
            answer = answers.pop(_place(span), None)
            if answer is None and number > 0:
                break
            at += 1
            yield span, answer


def _window(ranges: Sequence[OffsetRange], at: int) -> list[OffsetRange]:
    """Return the ranges from `at` on that are asked for together: small ones, none twice."""
    window = {_place(ranges[at]): ranges[at]}
    if ranges[at].size > SMALL_MAX:
        return list(window.values())
    for span in ranges[at + 1 : at + WINDOW_MAX]:
        if span.size > SMALL_MAX or _place(span) in window:
            break
        window[_place(span)] = span
    return list(window.values())


def _place(span: OffsetRange) -> TopicPartition:
    return TopicPartition(span.topic, span.partition)


def answers_together(
    options: SourceOptions,
    settings: ClientSettings,
    client: Client,
    window: Sequence[OffsetRange],
    *,
    partition_bytes: int | None = None,
) -> dict[TopicPartition, PartitionData]:
    """Return the answers about ranges; one without news has none, and neither has one for which the
    answer of its broker had no room.

    Args:
        options: of the source.
        settings: of the client.
        client: to ask with.
        window: ranges of different partitions.
        partition_bytes: most bytes of one of them, None for as many as all have together.
    """
    try:
        leaders = [(span, client.leader(span.topic, span.partition)) for span in window]
        if any(is_made_anew(options, span.topic, leader) for span, leader in leaders):
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, MADE_ANEW)
        by_address: dict[tuple[str, int], list[tuple[OffsetRange, PartitionLeader]]] = {}
        for span, leader in leaders:
            by_address.setdefault(leader.address, []).append((span, leader))
        # All answers are in memory together, so they share the bytes of one.
        share = max(1, settings.fetch_bytes // len(by_address))
        settings = settings._replace(fetch_bytes=share)
        answers: dict[TopicPartition, PartitionData] = {}
        for spans in by_address.values():
            answers |= _fetched(options, settings, client, spans, partition_bytes=partition_bytes)
    except (OSError, MinibrokerError) as error:
        logger.info("%d ranges are read one by one: %s", len(window), error)
        return {}
    return answers


def _fetched(
    options: SourceOptions,
    settings: ClientSettings,
    client: Client,
    spans: Sequence[tuple[OffsetRange, PartitionLeader]],
    *,
    partition_bytes: int | None,
) -> dict[TopicPartition, PartitionData]:
    """Return the answers of the one leader of all ranges. Raises OSError, MinibrokerError."""
    connection = client.connection(spans[0][1].address)
    try:
        newest = min(newest_for(leader) for _, leader in spans)
        version = connection.version_for(FetchRequest, OLDEST, newest)
        request = fetch_request(options, settings, spans, version, partition_bytes=partition_bytes)
        answer: FetchResponse = connection.call(request, FetchResponse, version)
    except BaseException:
        connection.close()
        raise
    client.give_back(connection)
    if answer.throttle_time_ms:
        threading.Event().wait(answer.throttle_time_ms / 1000)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code), "Fetch")
    names = {leader.topic_id: span.topic for span, leader in spans}
    return {
        place: part
        for place, part in parts_by_place(answer, names).items()
        if part.records or part.error_code
    }


def fetch_request(
    options: SourceOptions,
    settings: ClientSettings,
    spans: Sequence[tuple[OffsetRange, PartitionLeader]],
    version: int,
    *,
    last_epoch: int = -1,
    partition_bytes: int | None = None,
) -> FetchRequest:
    """Return a request for what comes at the start of ranges.

    Args:
        options: of the source.
        settings: of the client.
        spans: ranges with their leaders, which are at one broker; a topic's are side by side.
        version: of the request.
        last_epoch: leader epoch of the batch before the start of the range, -1: nobody checks it.
        partition_bytes: most bytes of one partition, None for as many as all have together.
    """
    topics: list[FetchTopic] = []
    for span, leader in spans:
        if not topics or topics[-1].topic != span.topic:
            topics.append(FetchTopic(topic=span.topic, topic_id=leader.topic_id, partitions=[]))
        partition = FetchPartition(
            partition=span.partition,
            current_leader_epoch=leader.epoch if version >= LEADER_EPOCH_FROM else -1,
            fetch_offset=span.start,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=partition_bytes or settings.fetch_bytes,
        )
        topics[-1].partitions.append(partition)
    return FetchRequest(
        max_wait_ms=settings.fetch_wait_ms,
        min_bytes=settings.fetch_min_bytes,
        max_bytes=settings.fetch_bytes,
        isolation_level=int(options.isolation_level == "read_committed"),
        topics=topics,
        rack_id=settings.rack,
    )


def parts_by_place(
    answer: FetchResponse, names: Mapping[bytes, str]
) -> dict[TopicPartition, PartitionData]:
    """Return the parts of an answer; `names` are those of the topics that were asked for by id."""
    return {
        TopicPartition(topic.topic or names.get(topic.topic_id, ""), part.partition_index): part
        for topic in answer.responses
        for part in topic.partitions
    }


def newest_for(leader: PartitionLeader) -> int:
    """Return the newest version of Fetch for a partition: by id where its topic has one."""
    return NEWEST_BY_NAME if leader.topic_id == ZERO_UUID else NEWEST


def is_made_anew(options: SourceOptions, topic: str, leader: PartitionLeader) -> bool:
    """Return whether a topic has another id than the one that the options name."""
    # The options have ids in the usual base64 (`topics.id_text`), Kafka in the one for URLs.
    topic_id = options.topic_ids.get(topic, "").replace("+", "-").replace("/", "_")
    is_known = bool(topic_id) and leader.topic_id != ZERO_UUID
    return is_known and topic_id_to_text(leader.topic_id) != topic_id
