"""Large requests are decoded beside the loop, by one worker thread; so are their answers encoded.

Between `dispatch.py` and the handler, for frames above `LARGE_FRAME_BYTES`. A frame can hold half a
million elements a megabyte, and decoding them takes up to 0.4 s; so does encoding an answer about
each of them. The connection waits meanwhile, so its requests keep their order. Produce is decoded
on the loop at any size, unless it has many batches: its records are slices of the frame.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.server.answers import Answer
from minibroker.broker.server.handling import read_request
from minibroker.broker.worker import Worker
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.primitives import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.handlers.common.handler import Handler
    from minibroker.broker.server.answers import AnyAnswer

LARGE_FRAME_BYTES: int = 32 * 1024
"""Clients' requests decode in 20-40 µs a KB, so in 1.3 ms at most below this: Metadata of 1,000
topics, a Fetch of 800 partitions. The slowest of this size takes 14 ms."""

_PRODUCE_WITH_ID_FROM: Final = 3
_PRODUCE_FLEXIBLE_FROM: Final = 9
_PRODUCE_WITH_TOPIC_IDS_FROM: Final = 13
_ACKS_AND_TIMEOUT_BYTES: Final = 6
_INDEX_BYTES: Final = 4
_UUID_BYTES: Final = 16
BATCHES_MAX: Final = 256
"""Batches of a Produce request that are decoded on the loop."""


def has_many_batches(frame: memoryview, position: int, version: int) -> bool:
    """Return whether a Produce request, whose body begins at `position`, has more than BATCHES_MAX
    partitions or topics. False also for a malformed one.
    """
    is_flexible = version >= _PRODUCE_FLEXIBLE_FROM
    reader = Reader(frame, position)
    try:
        if is_flexible:
            reader.compact_nullable_string()
        elif version >= _PRODUCE_WITH_ID_FROM:
            reader.nullable_string()
        reader.take(_ACKS_AND_TIMEOUT_BYTES)
        count = topic_count = reader.compact_array_count() if is_flexible else reader.array_count()
        for _ in range(min(topic_count, BATCHES_MAX)):
            if count > BATCHES_MAX:
                break
            count += _skip_topic(reader, version)
    except ProtocolError:
        return False
    return count > BATCHES_MAX


def _skip_topic(reader: Reader, version: int) -> int:
    """Skip one topic of a Produce request unless it is large; return its number of batches."""
    if version >= _PRODUCE_WITH_TOPIC_IDS_FROM:
        reader.take(_UUID_BYTES)
    elif version >= _PRODUCE_FLEXIBLE_FROM:
        reader.take(reader.uvarint() - 1)
    else:
        reader.take(reader.uint16())
    if version < _PRODUCE_FLEXIBLE_FROM:
        batch_count = reader.array_count()
        for _ in range(min(batch_count, BATCHES_MAX)):
            reader.take(_INDEX_BYTES)
            reader.records()
        return batch_count
    batch_count = reader.compact_array_count()
    for _ in range(min(batch_count, BATCHES_MAX)):
        reader.take(_INDEX_BYTES)
        reader.compact_records()
        reader.skip_tagged_fields()
    reader.skip_tagged_fields()
    return batch_count


class Decoder:
    """Decodes requests and encodes answers in its worker, in order. Belongs to the loop."""

    __slots__ = ("_worker",)

    def __init__(self) -> None:
        self._worker = Worker(lambda _error: None, "minibroker-decode")

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer on `loop` from now on."""
        self._worker.begin(loop)

    def close(self) -> None:
        """Finish the work in the queue, and end the worker."""
        self._worker.close()

    def decode(
        self, handler: Handler, version: int, frame: memoryview, position: int
    ) -> asyncio.Future[Any]:
        """Return a future of the request whose body begins at `position`, or of a ProtocolError.

        `frame` must not change before that.
        """
        return self.run(partial(read_request, handler, version, frame, position))

    def encode(self, answers: Sequence[AnyAnswer], throttle_time_ms: int) -> asyncio.Future[None]:
        """Make the frames of answers, which nobody changes meanwhile; return a future of the end.

        An answer that cannot be encoded fails once more where its frame is taken.
        """
        return self.run(partial(_make_frames, answers, throttle_time_ms))

    def run(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Return a future of the result or exception of `work`, which runs in the worker.

        Nobody changes the values that `work` uses.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        results: list[Any] = []
        failures: list[Exception] = []

        def task() -> None:
            from minibroker.broker.storage.tasks import quick_switches  # noqa: PLC0415

            try:
                with quick_switches():
                    results.append(work())
            except Exception as error:  # whoever waits is told
                failures.append(error)

        def finish(_failure: object) -> None:
            if future.done():
                return  # the connection is gone
            if failures:
                future.set_exception(failures[0])
            else:
                future.set_result(results.pop())

        self._worker.run_then(task, finish)
        return future


def _make_frames(answers: Sequence[AnyAnswer], throttle_time_ms: int) -> None:
    for answer in answers:
        if isinstance(answer, Answer):
            answer.make_frame(throttle_time_ms)
