"""DescribeLogDirs: key 35, versions 0-5.

Behaviour: returns for each log directory its partitions with their sizes (the sum of the `.log`
files), the copies of partitions that move to it, and the total and free bytes of its file system.

Versions:
- 2: flexible
- 3: top-level error
- 4: total and usable bytes (KIP-827)
- 5: cordoned directories

A failed directory is KAFKA_STORAGE_ERROR and nothing else.

Differs from Kafka: nothing known. Web consoles show a broker as offline if it does not answer this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError
from minibroker.kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.log_directories import LogMoves
    from minibroker.broker.partitions.manager import LogDirectoryView
    from minibroker.broker.slices import Steps
    from minibroker.kafka.ids import TopicPartition

    Row = tuple[TopicPartition, int, int, bool]
    """Partition, bytes, offsets to come, is it a copy that grows there."""


def handle(
    context: RequestContext, request: DescribeLogDirsRequest
) -> Steps[DescribeLogDirsResponse]:
    """Return one result per configured directory, in the order of `log.dirs`."""
    names: set[tuple[str, int]] | None = None
    if request.topics is not None:
        names = set()
        for topic in request.topics:
            names.update((topic.topic, index) for index in topic.partitions)
            yield
    partitions = context.services.partitions
    partitions.commit()
    moves = context.services.log_moves
    # In one step: a log that changes its directory between two steps would be in both, or in none.
    views = [_view(moves, directory) for directory in partitions.log_directories()]
    response = DescribeLogDirsResponse()
    for result, rows in views:
        yield from _add_topics(result, rows, names)
        response.results.append(result)
    return response


def _view(moves: LogMoves, directory: LogDirectoryView) -> tuple[DescribeLogDirsResult, list[Row]]:
    """Return the result of a directory, without its topics, and the rows of these."""
    result = DescribeLogDirsResult(log_dir=directory.path)
    if directory.is_offline:
        result.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
        return result, []
    try:
        result.total_bytes, result.usable_bytes = directory.space()
    except StorageError:
        result.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
        return result, []
    rows: list[Row] = [(log.name, log.size_bytes, 0, False) for log in directory.logs()]
    rows += [(*copy, True) for copy in moves.in_directory(directory.configured_path)]
    return result, rows


def _add_topics(
    result: DescribeLogDirsResult, rows: list[Row], names: set[tuple[str, int]] | None
) -> Steps[None]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for name, size_bytes, lag, is_copy in rows:
        yield
        if names is not None and name not in names:
            continue
        topic = topics.get(name.topic)
        if topic is None:
            topic = topics[name.topic] = DescribeLogDirsTopic(name=name.topic)
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=name.partition,
                partition_size=size_bytes,
                offset_lag=lag,
                is_future_key=is_copy,
            )
        )
    result.topics = list(topics.values())
