"""Known bugs of replication, put into the rules of the product for a test of the simulation.

Each function returns the places to change: owner, name, and the wrong rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster import controller
from minibroker.broker.cluster.partition_states import PartitionStates
from minibroker.broker.cluster.tree import Set
from minibroker.broker.handlers.reads import fetch_pass
from minibroker.broker.partitions import replicas
from minibroker.broker.partitions.partition import Partition
from minibroker.broker.partitions.replicas import Replicas
from minibroker.broker.replication import fetcher
from minibroker.broker.storage.producer_state import ProducerState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.cluster.codecs import PartitionState
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.cluster.tree import Operation

Places = list[tuple[Any, str, Any]]


def high_watermark_without_the_slowest() -> Places:
    """Let the high watermark pass the slowest replica of the ISR."""
    real = replicas.high_watermark

    def wrong(current: int, end: int, *, followers: Any, isr: Any, **rest: Any) -> int:
        members = [broker_id for broker_id in followers if broker_id in isr]
        slowest = min(members, key=lambda member: followers[member].log_end_offset, default=None)
        others = {other: progress for other, progress in followers.items() if other != slowest}
        return real(current, end, followers=others, isr=isr, **rest)

    return [(replicas, "high_watermark", wrong)]


def high_watermark_of_the_leader_alone() -> Places:
    """Let the high watermark be the end of the leader's log."""
    real = replicas.high_watermark

    def wrong(current: int, end: int, *, followers: Any, **rest: Any) -> int:
        return real(current, end, followers={}, **rest)

    return [(replicas, "high_watermark", wrong)]


def counts_a_member_that_is_not_confirmed() -> Places:
    """Count replicas that were asked into the ISR for min.insync.replicas before that is
    confirmed.
    """
    real = replicas.high_watermark

    def wrong(current: int, end: int, *, isr: Any, joining: Any, **rest: Any) -> int:
        return real(current, end, isr=isr | joining, joining=joining, **rest)

    return [(replicas, "high_watermark", wrong)]


def leaves_out_a_member_that_is_not_confirmed() -> Places:
    """Let the high watermark pass replicas that may be in the ISR of the tree already."""
    real = replicas.high_watermark

    def wrong(current: int, end: int, **rest: Any) -> int:
        return real(current, end, **{**rest, "joining": (), "is_alive": lambda _broker_id: False})

    return [(replicas, "high_watermark", wrong)]


def shrinks_before_it_is_confirmed() -> Places:
    """Let the high watermark pass a slow replica before the tree has it out of the ISR."""
    real = Replicas.isr_without_slow

    def wrong(self: Replicas, log_end_offset: int) -> list[int] | None:
        isr = real(self, log_end_offset)
        if isr is not None:
            self.isr = frozenset(isr)
        return isr

    return [(Replicas, "isr_without_slow", wrong)]


def no_version_of_the_state() -> Places:
    """Have leaders write the ISR over whatever the controller wrote meanwhile."""
    real = PartitionStates.change_isr

    async def wrong(self: PartitionStates, name: Any, isr: Any, **epochs: Any) -> bool:
        tree = self._context.tree
        multi = tree.multi

        async def set_any(operations: Sequence[Operation]) -> list[str | int]:
            return await multi(
                [
                    Set(operation.path, operation.data) if isinstance(operation, Set) else operation
                    for operation in operations
                ]
            )

        tree.multi = set_any  # type: ignore[method-assign]
        try:
            return await real(self, name, isr, **epochs)
        finally:
            tree.multi = multi  # type: ignore[method-assign]

    return [(PartitionStates, "change_isr", wrong)]


def cuts_to_the_high_watermark() -> Places:
    """Have followers cut their log to their high watermark, as before KIP-101."""

    def wrong(_epochs: Any, end: int, high_watermark: int, **_leader: Any) -> int:
        return min(high_watermark, end)

    real = fetcher.Fetcher.add

    def add(self: Any, name: Any, partition: Partition) -> None:
        self._partitions.truncate(partition, partition.high_watermark)
        real(self, name, partition)

    return [(fetcher, "diverged_at", wrong), (fetcher.Fetcher, "add", add)]


def followers_forget_transactions() -> Places:
    """Have followers keep no state of producers, so that new leaders know no open transaction."""
    real = ProducerState.append

    def wrong(self: ProducerState, header: Any, origin: Any) -> Any:
        return None if origin == "replication" else real(self, header, origin)

    return [(ProducerState, "append", wrong)]


def shows_undecided_records() -> Places:
    """Let readers with read_committed see everything that is committed."""
    high_watermark = property(lambda self: self.high_watermark)
    return [(Partition, "last_stable_offset", high_watermark)]


def confirms_deletions_at_once() -> Places:
    """Answer DeleteRecords when the leader has done it."""
    return [(Replicas, "low_watermark", lambda _self, start_offset: start_offset)]


def no_truncation_by_epoch() -> Places:
    """Have leaders never tell where a follower's log parts from theirs."""
    return [(fetch_pass, "_diverges", lambda *_: False)]


def joins_before_it_has_everything() -> Places:
    """Take followers into the ISR that do not have all that is committed."""
    return [(replicas, "may_join", lambda *_: True)]


def leader_outside_of_the_isr() -> Places:
    """Elect any replica that is online when the leader goes."""
    real = controller.next_state

    def wrong(partition: PartitionImage, *rest: Any, **options: Any) -> PartitionState | None:
        state: PartitionState | None = real(partition, *rest, **options)
        outside = [broker for broker in partition.online if broker not in partition.isr]
        if state is None or partition.partition_epoch < 0 or not outside:
            return state
        return state._replace(leader=outside[0], isr=[outside[0]])

    return [(controller, "next_state", wrong)]
