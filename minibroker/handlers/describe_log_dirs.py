"""DescribeLogDirs: key 35, versions 0-5.

Behaviour: for every log directory the partitions in it and their sizes (sum of the `.log` files,
row R6), and the room of its file system.
Versions: 2 flexible; 3 top-level error; 4 total and usable bytes (KIP-827); 5 cordoned directories.
Differs from Kafka: nothing known. Consoles call a broker offline that does not answer this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.errors import StorageError
from minibroker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.partitions.manager import LogDirectoryView


def handle(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """One result per configured directory, in the order of `log.dirs`."""
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    partitions = context.services.partitions
    partitions.commit()
    return DescribeLogDirsResponse(
        results=[_describe(directory, wanted) for directory in partitions.log_directories()]
    )


def _describe(
    directory: LogDirectoryView, wanted: set[tuple[str, int]] | None
) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=directory.path)
    try:
        result.total_bytes, result.usable_bytes = directory.space()
    except StorageError:
        result.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
        return result
    topics: dict[str, DescribeLogDirsTopic] = {}
    for log in directory.logs():
        if wanted is not None and (log.topic, log.partition) not in wanted:
            continue
        topic = topics.get(log.topic)
        if topic is None:
            topic = topics[log.topic] = DescribeLogDirsTopic(name=log.topic)
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=log.partition, partition_size=log.size_bytes, offset_lag=0
            )
        )
    result.topics = list(topics.values())
    return result
