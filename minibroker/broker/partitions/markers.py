"""Markers: the control batches that end a transaction in the partitions it touched.

Written for the coordinator, which may be this broker's own or another's (WriteTxnMarkers). With the
marker in the log the last stable offset moves on, an abort stands in the transaction index, and
fetches that wait with read_committed are woken; in a partition of `__consumer_offsets` the group
coordinator applies or drops the offsets of the transaction.

Source: Kafka KafkaApis.handleWriteTxnMarkersRequest, ProducerAppendInfo.appendEndTxnMarker.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.partitions import verification
from minibroker.broker.partitions.cold_reads import ColdError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, answer_error
from minibroker.kafka.ids import PRODUCER_EPOCH_MAX
from minibroker.kafka.records.control import TransactionMarker, build_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.timers import Timer
    from minibroker.clock import Clock
    from minibroker.kafka.ids import TopicPartition

    Codes = dict[TopicPartition, ErrorCode]
    After = Callable[[Callable[[], None]], Timer]
    """Calls a function when the time of a request is over."""

_VERSION_OF_EPOCH_BUMP: Final = 2


class OffsetTransactions(Protocol):
    """The group coordinator, as far as markers concern it."""

    def complete_transaction(self, index: int, producer_id: int, is_commit: bool) -> None:
        """Apply (or drop) the offsets that the producer's transaction committed in this partition
        of `__consumer_offsets`; one that is being loaded comes to the marker by itself."""


class EndOfTransaction(NamedTuple):
    """How one producer's transaction ends."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int = 0
    """2: every end has an epoch of its own, so an epoch seen before belongs to a late marker."""


class _Marker:
    """One marker on its way: a `Failable` of its append, then a `Waiter` until it is visible."""

    __slots__ = (
        "_error_code",
        "_on_written",
        "base_offset",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "name",
        "partition",
    )

    def __init__(
        self,
        name: TopicPartition,
        partition: Partition,
        on_written: Callable[[_Marker, ErrorCode], None],
    ) -> None:
        """`on_written` is called once: NONE when the marker is below the high watermark."""
        self.name = name
        self.partition = partition
        self._on_written: Callable[[_Marker, ErrorCode], None] | None = on_written
        self._error_code = 0
        self.base_offset = self.log_append_time_ms = self.log_start_offset = -1
        self.last_offset = -1

    @property
    def error_code(self) -> int:
        """Not 0: the disk refused."""
        return self._error_code

    @error_code.setter
    def error_code(self, code: int) -> None:
        self._error_code = code
        if code:
            self._tell(ErrorCode(code))

    def on_progress(self) -> None:
        """Tell that the marker is visible, if it is: the high watermark moved, or the marker was
        just written.
        """
        if self.partition.high_watermark > self.last_offset:
            self._tell(ErrorCode.NONE)

    def time_out(self) -> None:
        """Be told of nothing more: the marker is in the log, and its followers are late."""
        self._tell(ErrorCode.REQUEST_TIMED_OUT)

    def complete(self) -> None:
        """Tell that the partition goes, or has a new leader epoch: its leader is sent the
        marker.
        """
        self._tell(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def wait(self) -> None:
        """Be told of the partition's progress, unless the marker is visible already, or a write
        behind it has taken its directory offline.
        """
        self.on_progress()
        if not self.partition.is_leader:
            self.complete()
        elif self._on_written is not None:
            if self.partition.waiters is None:
                self.partition.waiters = {}
            self.partition.waiters[self] = None

    def _tell(self, code: ErrorCode) -> None:
        on_written, self._on_written = self._on_written, None
        if on_written is not None:
            if self.partition.waiters is not None:
                self.partition.waiters.pop(self, None)
            on_written(self, code)


class _MarkerRound:
    """The markers of one `MarkerWriter.write`, and who hears how all of them went."""

    __slots__ = ("codes", "open_count", "then", "timer")

    def __init__(self, then: Callable[[Codes], None]) -> None:
        self.codes: Codes = {}
        self.open_count = 1
        """Markers on their way, and `write` itself while it runs."""
        self.then = then
        self.timer: Timer | None = None
        """The end of the request's time, where it has one."""

    def end(self, name: TopicPartition | None, code: ErrorCode) -> None:
        """Count one as through, and tell when it was the last."""
        if name is not None:
            self.codes[name] = code
        self.open_count -= 1
        if not self.open_count:
            if self.timer is not None:
                self.timer.cancel()
            self.then(self.codes)


class MarkerWriter:
    """Writes to partitions that this broker leads; belongs to the loop's thread."""

    __slots__ = ("_clock", "_manager", "_offsets")

    def __init__(
        self,
        partitions: PartitionManager,
        clock: Clock,
        offsets: Callable[[], OffsetTransactions] | None = None,
    ) -> None:
        """`offsets` is asked for where a transaction touched `__consumer_offsets`."""
        self._manager = partitions
        self._clock = clock
        self._offsets = offsets

    def write(
        self,
        ending: EndOfTransaction,
        partitions: Iterable[TopicPartition],
        then: Callable[[Codes], None],
        *,
        after: After | None = None,
    ) -> None:
        """Write the marker to each of `partitions`; they are in the files when this returns, unless
        the producers of a log have to be loaded first.

        `then` is called once, when all of them are visible (below the high watermark) or refused:
        before this returns, unless one has to be loaded, synced or replicated first. It gets one
        code for each: NONE, UNKNOWN_TOPIC_OR_PARTITION (also for a partition led by another broker,
        as in Kafka), NOT_LEADER_OR_FOLLOWER (the leader changed meanwhile), INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR,
        UNSUPPORTED_FOR_MESSAGE_FORMAT; REQUEST_TIMED_OUT for one that followers do not have in the
        time of `after`. Without `after` they have all the time.
        """
        names = list(partitions)
        for name in names:
            partition = self._manager.find(name.topic, name.partition)
            try:
                if partition is not None:
                    partition.require_producers()
            except ColdError as cold:
                cold.load(partial(self.write, ending, names, then, after=after))
                return
            except KafkaError:
                continue  # the append meets the same error, and answers it
        self._write(ending, names, then, after)

    def _write(
        self,
        ending: EndOfTransaction,
        partitions: Iterable[TopicPartition],
        then: Callable[[Codes], None],
        after: After | None,
    ) -> None:
        """Write the markers: producers are in memory."""
        whole = _MarkerRound(then)

        def on_written(marker: _Marker, code: ErrorCode) -> None:
            if code == ErrorCode.NONE and marker.name.topic == OFFSETS_TOPIC and self._offsets:
                self._offsets().complete_transaction(
                    marker.name.partition, ending.producer_id, ending.is_commit
                )
            whole.end(marker.name, code)

        self._manager.commit()  # answers of this read wait for what they have staged themselves
        markers: list[_Marker] = []
        for name in partitions:
            partition = self._manager.find(name.topic, name.partition)
            if partition is None:
                whole.codes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            marker = _Marker(name, partition, on_written)
            try:
                self._append(partition, ending, marker)
            except Exception as error:
                whole.codes[name] = answer_error(error, f"writing a marker to {name}").code
            else:
                whole.open_count += 1
                markers.append(marker)
        self._manager.commit_told()
        for marker in markers:
            marker.wait()
        if after is not None and whole.open_count > 1:
            whole.timer = after(partial(_time_out, markers))
        whole.end(None, ErrorCode.NONE)

    def _append(self, partition: Partition, ending: EndOfTransaction, marker: _Marker) -> None:
        """Stage one marker. Raises KafkaError."""
        if ending.transaction_version >= _VERSION_OF_EPOCH_BUMP:
            _check_is_no_late_marker(partition, ending)
        now_ms = self._clock.now_ms()
        batch = build_marker(
            TransactionMarker(ending.is_commit, ending.coordinator_epoch),
            producer_id=ending.producer_id,
            producer_epoch=ending.producer_epoch,
            timestamp_ms=now_ms,
        )
        appended = partition.append(memoryview(batch), -1, now_ms, marker, origin="coordinator")
        marker.last_offset = appended.last_offset
        verification.on_marker(partition, ending.producer_id, ending.producer_epoch)


def _time_out(markers: list[_Marker]) -> None:
    for marker in markers:
        marker.time_out()


def _check_is_no_late_marker(partition: Partition, ending: EndOfTransaction) -> None:
    """Raises KafkaError(INVALID_PRODUCER_EPOCH) for the marker of an earlier transaction.

    The same epoch with nothing open is the same marker again: the coordinator was restarted or did
    not get our answer. It is written again, and changes nothing.
    """
    entry = partition.producers().get(ending.producer_id)
    if entry is None or ending.producer_epoch > entry.epoch:
        return
    if ending.producer_epoch == entry.epoch and (
        entry.transaction_start < 0 or ending.producer_epoch == PRODUCER_EPOCH_MAX
    ):
        return
    raise KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"marker for producer {ending.producer_id} in {partition} has epoch "
        f"{ending.producer_epoch}, the last seen is {entry.epoch}",
    )
