"""Markers: the control batches that end a transaction in the partitions it touched.

Written for the coordinator, which may be this broker's own or another's (WriteTxnMarkers). With the
marker in the log the last stable offset moves on, an abort stands in the transaction index, and
fetches that wait with read_committed are woken; in a partition of `__consumer_offsets` the group
coordinator applies or drops the offsets of the transaction.

Source: Kafka KafkaApis.handleWriteTxnMarkersRequest, ProducerAppendInfo.appendEndTxnMarker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from minibroker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, answer_error
from minibroker.partitions import verification
from minibroker.records.control import TransactionMarker, build_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.clock import Clock
    from minibroker.ids import TopicPartition
    from minibroker.partitions.manager import PartitionManager
    from minibroker.partitions.partition import Partition

_EPOCH_MAX: Final = 32767
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


class _Written:
    """What `PartitionManager.commit` makes of one marker."""

    __slots__ = ("base_offset", "error_code", "log_append_time_ms", "log_start_offset")

    def __init__(self) -> None:
        self.error_code = 0
        self.base_offset = self.log_append_time_ms = self.log_start_offset = -1


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
        self, ending: EndOfTransaction, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Write the marker to each of `partitions`; they are in the files when this returns.

        Gives one code for each: NONE, UNKNOWN_TOPIC_OR_PARTITION (also for a partition led by
        another broker, as in Kafka), INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED,
        NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, UNSUPPORTED_FOR_MESSAGE_FORMAT.
        """
        codes: dict[TopicPartition, ErrorCode] = {}
        written: dict[TopicPartition, _Written] = {}
        for name in partitions:
            partition = self._manager.find(name.topic, name.partition)
            if partition is None:
                codes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            answer = written[name] = _Written()
            try:
                self._append(partition, ending, answer)
            except Exception as error:
                del written[name]
                codes[name] = answer_error(error, f"writing a marker to {name}").code
        self._manager.commit()
        for name, answer in written.items():
            codes[name] = ErrorCode(answer.error_code)
            if not answer.error_code and name.topic == OFFSETS_TOPIC and self._offsets is not None:
                self._offsets().complete_transaction(
                    name.partition, ending.producer_id, ending.is_commit
                )
        return codes

    def _append(self, partition: Partition, ending: EndOfTransaction, answer: _Written) -> None:
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
        partition.append(memoryview(batch), -1, now_ms, answer, origin="coordinator")
        verification.on_marker(partition, ending.producer_id, ending.producer_epoch)


def _check_is_no_late_marker(partition: Partition, ending: EndOfTransaction) -> None:
    """Raises KafkaError(INVALID_PRODUCER_EPOCH) for the marker of an earlier transaction.

    The same epoch with nothing open is the same marker again: the coordinator was restarted or did
    not get our answer. It is written again, and changes nothing.
    """
    entry = partition.producers().get(ending.producer_id)
    if entry is None or ending.producer_epoch > entry.epoch:
        return
    if ending.producer_epoch == entry.epoch and (
        entry.transaction_start < 0 or ending.producer_epoch == _EPOCH_MAX
    ):
        return
    raise KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"marker for producer {ending.producer_id} in {partition} has epoch "
        f"{ending.producer_epoch}, the last seen is {entry.epoch}",
    )
