"""The runtime of every coordinator: shards that follow the journal, and the way to change them.

An operation of a coordinator reads the state and returns records and the steps that follow:

    records ─► staged ─► written ─► replayed into the shard ─► visible (high watermark) ─► then
                  └── refused: KafkaError, nothing happened      └── lost: failed

The state is that of the log's end, so the next operation builds on this one. Answers, timers and
markers follow only when the records are visible, in the order of the log. When this broker loses
the partition, or its disk refuses an fsync, everything that is not visible yet fails in that order.

With a `WriteTimeout`, an answer waits for followers no longer than that, and fails. The records
stay in the log and in the state, and may become visible later.

A shard is the state of one partition. The same code replays a record when it was written and when
it is read again at the next load.

Source: Kafka 4.4 org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from minibroker.broker.partitions.journal import TOO_LARGE, Journal
from minibroker.broker.partitions.journal_partition import coordinator_error
from minibroker.broker.slices import run_all
from minibroker.broker.timers import Timers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.partitions.journal import JournalRecord
    from minibroker.broker.partitions.journal_partition import DecodeBatch
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.timers import Timer
    from minibroker.broker.worker import Runner
    from minibroker.clock import Clock
    from minibroker.kafka.records.batch import BatchHeader
    from minibroker.kafka.records.record import Record


class WriteTimeout(NamedTuple):
    """The time that an answer waits until followers have its records."""

    timers: Timers
    timeout_ms: int


class CoordinatorShard(Protocol):
    """The state of one partition; called on the loop."""

    def replay_batch(self, header: BatchHeader, records: Sequence[Any]) -> None:
        """During load: the next batch, control batches (markers) included.

        A batch of many records comes in parts. `records` are `Record`s, or what the journal's
        `decode` made of them.
        """

    def on_loaded(self) -> None:
        """Begin to serve requests: everything is replayed."""

    def on_unloaded(self) -> None:
        """Answer all that waits: this broker leads the partition no more, or cannot load it."""


Shard = TypeVar("Shard", bound=CoordinatorShard)


class CoordinatorRuntime(Generic[Shard]):
    """One coordinator's shards and journal; belongs to the loop's thread."""

    __slots__ = ("_make_shard", "_shards", "_write_timeout", "journal")

    def __init__(
        self,
        topic: str,
        *,
        make_shard: Callable[[int], Shard],
        cluster: Cluster,
        partitions: PartitionManager,
        clock: Clock,
        config: BrokerConfig,
        worker: Runner,
        codec: int = 0,
        decode: Callable[[BatchHeader, list[Record]], Sequence[Any]] | None = None,
        decode_batch: DecodeBatch | None = None,
        write_timeout: WriteTimeout | None = None,
    ) -> None:
        """`make_shard` makes the empty state of a partition; None for `write_timeout`: answers wait
        as long as it takes; the rest is the `Journal`'s.
        """
        self._make_shard = make_shard
        self._write_timeout = write_timeout
        self._shards: dict[int, Shard] = {}
        """Partition → its shard, while it is loading or loaded."""
        self.journal = Journal(
            topic,
            cluster=cluster,
            partitions=partitions,
            clock=clock,
            config=config,
            worker=worker,
            listener=self,
            codec=codec,
            decode=decode,
            decode_batch=decode_batch,
        )

    # Finding.

    def find(self, index: int) -> Shard | None:
        """Return the shard of a partition, None if it is not loaded."""
        return self._shards.get(index) if self.journal.is_active(index) else None

    def get(self, index: int) -> Shard:
        """Return the shard of a partition.

        Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        self.journal.check_active(index)
        return self._shards[index]

    def active(self) -> Iterator[Shard]:
        """Yield every shard that is loaded now; partitions may come and go meanwhile."""
        for index in self.journal.active_indexes():
            shard = self.find(index)
            if shard is not None:
                yield shard

    # Changing.

    def write(
        self,
        index: int,
        records: Sequence[JournalRecord],
        *,
        replay: Callable[[int], None],
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None = None,
        required_acks: int = -1,
    ) -> None:
        """Carry out an operation: write its records (at least one) as one batch (`write_batch`)."""
        self.write_batch(
            index,
            run_all(self.journal.batch_of(records)),
            replay=replay,
            then=then,
            failed=failed,
            required_acks=required_acks,
        )

    def write_batch(
        self,
        index: int,
        batch: bytearray,
        *,
        replay: Callable[[int], None],
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None = None,
        required_acks: int = -1,
        too_large: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR,
    ) -> None:
        """Carry out an operation: write its batch, which `Journal.batch_of` made.

        `replay` does to the state what they say, with the offset of the first, before this returns.
        One of the others is called once: `then` when they are visible (before this returns, unless
        they have to be synced or replicated first), or `failed` with the code for clients when that
        does not come about, or not in time. Without `failed` there is no time-out.

        Raises KafkaError: COORDINATOR_NOT_AVAILABLE (too few replicas in sync, no such partition),
        NOT_COORDINATOR (not led here, the disk refused), COORDINATOR_LOAD_IN_PROGRESS, and
        `too_large` for records that are larger than the topic takes. Nothing has happened then, and
        neither is called.
        """
        self.journal.flush()  # answers of this read wait for what they have staged themselves
        operation = _Operation(then, failed)
        try:
            staged = self.journal.stage(
                index,
                batch,
                on_written=operation.on_visible,
                on_failed=operation.on_failed,
                required_acks=required_acks,
            )
        except KafkaError as error:
            if error.code in TOO_LARGE:
                raise KafkaError(too_large, error.detail) from error
            raise
        self.journal.write_staged()
        if operation.error is not None:
            topic = self.journal.topic
            raise KafkaError(operation.error, f"cannot append to partition {index} of {topic}")
        replay(staged.first_offset)
        operation.go_on()
        if failed is not None:
            self._limit(index, operation)

    def when_visible(
        self,
        index: int,
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None = None,
    ) -> None:
        """Call `then` when all that was written so far is visible: mostly at once.

        Or `failed` with the code for clients, as `write`.
        """
        if self.journal.is_told(index):
            then()
            return
        outcome = _Outcome(then, failed)
        self.journal.when_told(index, outcome.succeed, outcome.fail)
        if failed is not None:
            self._limit(index, outcome)

    def _limit(self, index: int, outcome: _Outcome) -> None:
        """Have the outcome fail after the time-out where it waits for followers. It waits for the
        own disk as long as that takes."""
        if self._write_timeout is not None and self.journal.is_replicated(index):
            outcome.limit(self._write_timeout)

    def visible(self, index: int) -> asyncio.Future[None] | None:
        """Return None if every record of the partition is visible, else a future that is done then.

        The future raises KafkaError with the code for clients where this broker loses the partition
        before, or does not lead it, or after the time-out.
        """
        if self.journal.is_told(index):
            return None
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def then() -> None:
            if not waiting.done():
                waiting.set_result(None)

        def failed(code: ErrorCode) -> None:
            if not waiting.done():
                waiting.set_exception(KafkaError(code))
                # Taken: asyncio would log it where nobody waits any more (the client has gone).
                waiting.exception()

        self.when_visible(index, then, failed)
        is_visible = waiting.done() and waiting.exception() is None
        return None if is_visible else waiting

    # The journal (`JournalListener`).

    def on_batch(self, index: int, header: BatchHeader, records: Sequence[Any]) -> None:
        """Replay what was written before."""
        self._shard(index).replay_batch(header, records)

    def on_loaded(self, index: int) -> None:
        """Serve the partition."""
        self._shard(index).on_loaded()

    def on_unloaded(self, index: int) -> None:
        """Forget the partition."""
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.on_unloaded()

    def _shard(self, index: int) -> Shard:
        shard = self._shards.get(index)
        if shard is None:
            shard = self._shards[index] = self._make_shard(index)
        return shard


class _Outcome:
    """The end of a write: one of two callbacks is called, once."""

    __slots__ = ("_failed", "_is_over", "_then", "_timer")

    def __init__(
        self, then: Callable[[], None], failed: Callable[[ErrorCode], None] | None
    ) -> None:
        self._then = then
        self._failed = failed
        self._is_over = False
        self._timer: Timer | None = None

    def succeed(self) -> None:
        """Hear that the records are visible."""
        if self._take():
            self._then()

    def fail(self, code: ErrorCode) -> None:
        """Hear that the records are lost, or not visible in time; `code` is the one for clients."""
        if self._take() and self._failed is not None:
            self._failed(code)

    def limit(self, timeout: WriteTimeout) -> None:
        """Fail after the time-out, unless the end comes before."""
        if not self._is_over:
            self._timer = timeout.timers.after(timeout.timeout_ms, self._time_out)

    def _time_out(self) -> None:
        self.fail(coordinator_error(ErrorCode.REQUEST_TIMED_OUT))

    def _take(self) -> bool:
        """Return whether this is the first end; only that one calls back."""
        if self._is_over:
            return False
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        return True


class _Operation(_Outcome):
    """One `write` between its append and what follows."""

    __slots__ = ("_is_replayed", "_is_visible", "error")

    def __init__(
        self, then: Callable[[], None], failed: Callable[[ErrorCode], None] | None
    ) -> None:
        super().__init__(then, failed)
        self._is_visible = self._is_replayed = False
        self.error: ErrorCode | None = None
        """Set where the records are not in the log, or will be lost."""

    def on_visible(self, _first_offset: int) -> None:
        """Note that the records are below the high watermark; go on if they are replayed."""
        self._is_visible = True
        if self._is_replayed:
            self.succeed()

    def on_failed(self, code: ErrorCode) -> None:
        """Note the error: `write` raises it, or the operation fails later."""
        self.error = code
        if self._is_replayed:
            self.fail(code)

    def go_on(self) -> None:
        """Note that the records are replayed; go on if they are visible."""
        self._is_replayed = True
        if self._is_visible:
            self.succeed()
