"""Carries the outcome of a decided transaction to every partition it touched.

A transaction comes here when PrepareCommit or PrepareAbort is visible in the journal, and leaves
when the marker of the last partition is visible there. Partitions led here are written at once,
those of other brokers through a `send_to_broker`. A marker that cannot be written now is tried
again, as the decision stands. A partition that does not exist any more needs no marker. A partition
that knows a newer epoch of the producer or of the coordinator has a later decision: then this
sender gives up the whole transaction, as in Kafka.

Source: Kafka TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.image import NO_LEADER
from minibroker.broker.slices import run_in_slices
from minibroker.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.partitions.markers import EndOfTransaction, MarkerWriter
    from minibroker.broker.timers import Timers
    from minibroker.kafka.ids import TopicPartition

    Codes = dict[TopicPartition, ErrorCode]
    SendToBroker = Callable[[int, EndOfTransaction, list[TopicPartition]], Awaitable[Codes]]
    """(broker id, marker, partitions) → one code for each partition (WriteTxnMarkers). Gives
    NOT_LEADER_OR_FOLLOWER where the broker cannot be reached."""

logger = logging.getLogger(__name__)

MARKERS_AT_ONCE: Final = 16
"""Markers that are written in one step; one takes some 20 us."""
RETRY_MS: Final = 100
"""Kafka's sender looks again as often."""

_FINAL_CODES: Final = frozenset(
    (
        ErrorCode.NONE,
        # Nothing was written there either: such a partition refuses transactional batches.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    )
)
_FENCED_CODES: Final = frozenset(
    (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
)


class Ending(NamedTuple):
    """A decided transaction; `missing` are its partitions that have no marker yet."""

    transactional_id: str
    marker: EndOfTransaction
    missing: set[TopicPartition]
    on_done: Callable[[], None]


class MarkerSender:
    """Belongs to the loop's thread."""

    __slots__ = (
        "_cluster",
        "_endings",
        "_new",
        "_requests",
        "_send",
        "_timers",
        "_writer",
    )

    def __init__(
        self, *, writer: MarkerWriter, cluster: Cluster, timers: Timers, send: SendToBroker
    ) -> None:
        self._writer = writer
        self._cluster = cluster
        self._timers = timers
        self._send = send
        self._endings: dict[str, Ending] = {}
        self._new: list[Ending] = []
        self._requests: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Transactions on their way."""
        return len(self._endings)

    def add(
        self,
        transactional_id: str,
        marker: EndOfTransaction,
        partitions: Iterable[TopicPartition],
        on_done: Callable[[], None],
    ) -> None:
        """Bring the marker to `partitions`; begin once the answers in hand are sent.

        The loop calls `on_done` after the last one.
        """
        ending = Ending(transactional_id, marker, set(partitions), on_done)
        self._endings[transactional_id] = ending
        if not self._new:
            asyncio.get_running_loop().call_soon(self._run)
        self._new.append(ending)

    def forget(self, transactional_id: str) -> None:
        """Send no more for this partition: another broker is the coordinator, and goes on."""
        self._endings.pop(transactional_id, None)

    async def close(self) -> None:
        """Stop; the next start reads open transactions from the journal."""
        self._endings.clear()
        for task in self._requests:
            task.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)

    def _is_current(self, ending: Ending) -> bool:
        """Return whether this is the sender's to bring, and not given up or begun anew since."""
        return self._endings.get(ending.transactional_id) is ending

    def _run(self) -> None:
        """Begin with what was added, in slices."""
        new, self._new = self._new, []
        run_in_slices(self._begin(new))

    def _begin(self, new: list[Ending]) -> Iterator[None]:
        for ending in new:
            yield from self._try(ending)

    def _try(self, ending: Ending) -> Iterator[None]:
        """Bring the marker to the partitions that miss it, in short steps."""
        if not self._is_current(ending):
            return  # it is no longer ours to bring
        local_partitions, remote_partitions = self._by_leader(ending)
        parts = [
            local_partitions[at : at + MARKERS_AT_ONCE]
            for at in range(0, len(local_partitions), MARKERS_AT_ONCE)
        ]
        open_answers = len(remote_partitions) + len(parts)

        def take(codes: Codes) -> None:
            nonlocal open_answers
            open_answers -= 1
            if self._is_current(ending):  # another term may bring the same decision by now
                self._take(ending, codes)
            if not open_answers:
                self._finish_or_retry(ending)

        if not open_answers:
            self._finish_or_retry(ending)
        for part in parts:
            self._writer.write(ending.marker, part, take)
            yield
            if open_answers and not self._is_current(ending):
                return  # another coordinator has it now
        for broker_id, partitions in remote_partitions.items():
            task = asyncio.get_running_loop().create_task(
                self._send_to(broker_id, ending, partitions, take)
            )
            self._requests.add(task)
            task.add_done_callback(self._requests.discard)

    async def _send_to(
        self,
        broker_id: int,
        ending: Ending,
        partitions: list[TopicPartition],
        take: Callable[[Codes], None],
    ) -> None:
        take(await self._send(broker_id, ending.marker, partitions))

    def _by_leader(
        self, ending: Ending
    ) -> tuple[list[TopicPartition], dict[int, list[TopicPartition]]]:
        """Return the partitions led here, and broker id → partitions led by that broker.

        A partition without a leader is in neither. A deleted one leaves `ending.missing`.
        """
        local_partitions: list[TopicPartition] = []
        remote_partitions: dict[int, list[TopicPartition]] = {}
        for name in sorted(ending.missing):
            partition = self._cluster.image.partition(*name)
            if partition is None:
                logger.info(
                    "%s is gone, it needs no marker of transactional id %s",
                    name,
                    ending.transactional_id,
                )
                ending.missing.discard(name)
                continue
            leader = partition.leader
            if leader == self._cluster.broker_id:
                local_partitions.append(name)
            elif leader != NO_LEADER:
                remote_partitions.setdefault(leader, []).append(name)
        return local_partitions, remote_partitions

    def _take(self, ending: Ending, codes: Codes) -> None:
        for name, code in codes.items():
            if code in _FINAL_CODES:
                ending.missing.discard(name)
                continue
            if code in _FENCED_CODES:
                logger.info(
                    "%s refuses the marker of transactional id %s with %s, somebody else decides",
                    name,
                    ending.transactional_id,
                    code.name,
                )
                del self._endings[ending.transactional_id]
                return
            logger.debug(
                "marker of transactional id %s for %s is tried again: %s",
                ending.transactional_id,
                name,
                code.name,
            )

    def _finish_or_retry(self, ending: Ending) -> None:
        if not self._is_current(ending):
            return  # somebody else decides
        if ending.missing:
            self._timers.after(RETRY_MS, lambda: run_in_slices(self._try(ending)))
            return
        del self._endings[ending.transactional_id]
        ending.on_done()
