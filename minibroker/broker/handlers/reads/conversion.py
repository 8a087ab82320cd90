"""Fetch for consumers older than the log: versions 0-1 read format 0, versions 2-3 formats 0 and 1.

Last station of such a Fetch, behind `fetch`, which reads and waits as for everybody. Records that
an old consumer can read go out as they lie in the log. The rest is converted: at once while it is
little, else on a worker thread, so that other connections are served meanwhile. One answer holds at
most what was fetched, and its partitions are converted one after the other.

Topics with `message.downconversion.enable=false` answer UNSUPPORTED_VERSION, those with
`compression.type=zstd` UNSUPPORTED_COMPRESSION_TYPE up to version 9, whatever there is to read. As
in Kafka these errors do not end the wait for data.

Differs from Kafka: 4.x sends zstd to any consumer that it serves, minibroker answers as 3.9 does.
Records beside an error are empty; in 3.9 those of UNSUPPORTED_COMPRESSION_TYPE are null.

Source: Kafka KafkaApis.handleFetchRequest (maybeConvertFetchedData); KIP-110, KIP-283.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.reads.fetch_pass import STEP_PARTITIONS
from minibroker.broker.slices import (
    TimeSlice,
    Unfinished,
    begin_in_slices,
    end_in_slices,
    run_rest,
    run_slice,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.protocol.messages.fetch import FetchResponse
from minibroker.kafka.records.conversion import down_convert, is_readable_as

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.fetch import FetchRequest, PartitionData

FIRST_VERSION_OF_V1: Final = 2
FIRST_VERSION_OF_V2: Final = 4

_INLINE_BYTES_MAX: Final = 64 << 10
"""Converted on the loop: about a millisecond's work."""
_NOTHING: Final = memoryview(b"")


class _Job:
    """The records of one partition that have to be converted."""

    __slots__ = ("data", "first_offset", "magic", "records")

    def __init__(
        self, data: PartitionData, records: memoryview, magic: int, first_offset: int
    ) -> None:
        self.data = data
        self.records = records
        self.magic = magic
        self.first_offset = first_offset

    def run(self) -> None:
        """Convert, and put the result or the error into the answer."""
        try:
            self.data.records = down_convert(self.records, self.magic, self.first_offset)
        except KafkaError as error:
            _refuse(self.data, error.code)
        except CorruptionError:
            _refuse(self.data, ErrorCode.CORRUPT_MESSAGE)


def for_old_consumer(
    context: RequestContext, request: FetchRequest, answer: FetchResponse
) -> FetchResponse | Awaitable[FetchResponse]:
    """Return `answer` as a consumer of `context.version` (below 10) can read it."""
    if context.version >= FIRST_VERSION_OF_V2:
        refusals = _refuse_zstd(context, answer)
        return answer if begin_in_slices(refusals) else _refuse_rest(answer, refusals)
    steps = _convert_little(context, request, answer)
    turn = TimeSlice()
    try:
        jobs = run_slice(steps, turn)
    except Unfinished:
        return _convert_rest(answer, run_rest(steps, turn))
    return _convert_on_worker(jobs, answer) if jobs else answer


async def convert_awaited(
    context: RequestContext, request: FetchRequest, awaited: Awaitable[FetchResponse]
) -> FetchResponse:
    """Do `for_old_consumer` with an answer that comes later."""
    answer = for_old_consumer(context, request, await awaited)
    return answer if isinstance(answer, FetchResponse) else await answer


async def _refuse_rest(answer: FetchResponse, refusals: Iterator[None]) -> FetchResponse:
    await end_in_slices(refusals)
    return answer


async def _convert_rest(answer: FetchResponse, jobs: Awaitable[list[_Job]]) -> FetchResponse:
    return await _convert_on_worker(await jobs, answer)


async def _convert_on_worker(jobs: list[_Job], answer: FetchResponse) -> FetchResponse:
    loop = asyncio.get_running_loop()
    for job in jobs:
        await loop.run_in_executor(None, job.run)
    return answer


def _convert_little(
    context: RequestContext, request: FetchRequest, answer: FetchResponse
) -> Steps[list[_Job]]:
    """Convert the partitions where they are little in all; else return them, for a worker."""
    jobs = yield from _jobs_of(context, request, answer)
    if sum([len(job.records) for job in jobs]) > _INLINE_BYTES_MAX:
        return jobs
    for job in jobs:
        job.run()
        yield
    return []


def _jobs_of(
    context: RequestContext, request: FetchRequest, answer: FetchResponse
) -> Steps[list[_Job]]:
    """Return the partitions to convert; partitions that are refused get their error here."""
    newest_magic = 1 if context.version >= FIRST_VERSION_OF_V1 else 0
    fetch_offsets: dict[tuple[str, int], int] = {}
    for requested_topic in request.topics:
        for part in requested_topic.partitions:
            fetch_offsets[requested_topic.topic, part.partition] = part.fetch_offset
            yield
    jobs: list[_Job] = []
    for topic in answer.responses:
        for data in topic.partitions:
            yield
            partition = context.services.partitions.find(topic.topic, data.partition_index)
            if partition is None:
                continue
            config = partition.log.config
            records = data.records
            if config.compression_type == "zstd":
                _refuse(data, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            elif config.message_magic > newest_magic and not config.message_downconversion_enable:
                _refuse(data, ErrorCode.UNSUPPORTED_VERSION)
            elif (
                isinstance(records, memoryview)
                and len(records)
                and not is_readable_as(records, newest_magic, config.message_magic)
            ):
                offset = fetch_offsets.get((topic.topic, data.partition_index), 0)
                jobs.append(_Job(data, records, newest_magic, offset))
    return jobs


def _refuse_zstd(context: RequestContext, answer: FetchResponse) -> Iterator[None]:
    """Refuse partitions of `compression.type=zstd`; nothing else is to do for format 2."""
    find = context.services.partitions.find
    for topic in answer.responses:
        for count, data in enumerate(topic.partitions, 1):
            if count % STEP_PARTITIONS == 0:
                yield
            partition = find(topic.topic, data.partition_index)
            if partition is not None and partition.log.config.compression_type == "zstd":
                _refuse(data, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        yield


def _refuse(data: PartitionData, code: ErrorCode) -> None:
    """Answer only the code, as Kafka's answer for a partition that cannot be served."""
    data.error_code = int(code)
    data.high_watermark = -1
    data.last_stable_offset = -1
    data.log_start_offset = -1
    data.aborted_transactions = None
    data.records = _NOTHING
