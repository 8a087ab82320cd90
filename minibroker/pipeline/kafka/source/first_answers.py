"""The first answers about many small ranges of a task, from few requests of Fetch.

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
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.fetch import FetchRequest, FetchResponse
from minibroker.pipeline.kafka.source.range_reader import (
    MADE_ANEW,
    OLDEST,
    fetch_request,
    is_made_anew,
    newest_for,
    partitions_told,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.client.client import Client, PartitionLeader
    from minibroker.client.settings import ClientSettings
    from minibroker.kafka.protocol.messages.fetch import PartitionData
    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import OffsetRange

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

    What goes wrong here makes no answer: `range_reader` asks again, and reports it.
    """
    waiting = [span for span in ranges if span.size > 0]
    at = 0
    while at < len(waiting):
        window = _window(waiting, at)
        told = _asked(options, settings, client, window) if len(window) > 1 else {}
        for number, span in enumerate(window):
            answer = told.pop(_place(span), None)
            if answer is None and number > 0:
                break
            at += 1
            yield span, answer


def _window(ranges: Sequence[OffsetRange], at: int) -> list[OffsetRange]:
    """Return the ranges from `at` on that are asked for together: small ones, none twice."""
    found = {_place(ranges[at]): ranges[at]}
    if ranges[at].size > SMALL_MAX:
        return list(found.values())
    for span in ranges[at + 1 : at + WINDOW_MAX]:
        if span.size > SMALL_MAX or _place(span) in found:
            break
        found[_place(span)] = span
    return list(found.values())


def _place(span: OffsetRange) -> TopicPartition:
    return TopicPartition(span.topic, span.partition)


def _asked(
    options: SourceOptions, settings: ClientSettings, client: Client, window: list[OffsetRange]
) -> dict[TopicPartition, PartitionData]:
    """Return the answers about the ranges of a window; a partition without news has none."""
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
        found: dict[TopicPartition, PartitionData] = {}
        for address, wanted in by_address.items():
            found |= _fetched(options, settings, client, address, wanted)
    except (OSError, MinibrokerError) as error:
        logger.info("%d ranges are read one by one: %s", len(window), error)
        return {}
    return found


def _fetched(
    options: SourceOptions,
    settings: ClientSettings,
    client: Client,
    address: tuple[str, int],
    wanted: Sequence[tuple[OffsetRange, PartitionLeader]],
) -> dict[TopicPartition, PartitionData]:
    """Return the answers of one broker. Raises OSError, MinibrokerError."""
    connection = client.connection(address)
    try:
        newest = min(newest_for(leader) for _, leader in wanted)
        version = connection.version_for(FetchRequest, OLDEST, newest)
        request = fetch_request(options, settings, wanted, version)
        answer: FetchResponse = connection.call(request, FetchResponse, version)
    except BaseException:
        connection.close()
        raise
    client.give_back(connection)
    if answer.throttle_time_ms:
        threading.Event().wait(answer.throttle_time_ms / 1000)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code), "Fetch")
    names = {leader.topic_id: span.topic for span, leader in wanted}
    return {
        place: told
        for place, told in partitions_told(answer, names).items()
        if told.records or told.error_code
    }
