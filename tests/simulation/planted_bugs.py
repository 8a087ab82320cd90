"""Known bugs of replication, put into the rules of the product for a test of the simulation.

Each function returns the places to change: owner, name, and the wrong rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.cluster import controller
from minibroker.handlers import fetch_reading
from minibroker.partitions import replicas

if TYPE_CHECKING:
    from minibroker.cluster.codecs import PartitionState
    from minibroker.cluster.image import PartitionImage

Places = list[tuple[Any, str, Any]]


def high_watermark_without_the_slowest() -> Places:
    """Let the high watermark pass the slowest replica of the ISR."""
    real = replicas.high_watermark

    def wrong(current: int, end: int, *, followers: Any, isr: Any, **rest: Any) -> int:
        members = [broker_id for broker_id in followers if broker_id in isr]
        slowest = min(members, key=lambda member: followers[member].log_end_offset, default=None)
        others = {other: found for other, found in followers.items() if other != slowest}
        return real(current, end, followers=others, isr=isr, **rest)

    return [(replicas, "high_watermark", wrong)]


def no_truncation_by_epoch() -> Places:
    """Have leaders never tell where a follower's log parts from theirs."""
    return [(fetch_reading, "_diverges", lambda *_: False)]


def joins_before_it_has_everything() -> Places:
    """Take followers into the ISR that do not have all that is committed."""
    return [(replicas, "may_join", lambda *_: True)]


def leader_outside_of_the_isr() -> Places:
    """Elect any replica that is online when the leader goes."""
    real = controller.next_state

    def wrong(partition: PartitionImage, *rest: Any, **named: Any) -> PartitionState | None:
        state: PartitionState | None = real(partition, *rest, **named)
        outside = [broker for broker in partition.online if broker not in partition.isr]
        if state is None or partition.partition_epoch < 0 or not outside:
            return state
        return state._replace(leader=outside[0], isr=[outside[0]])

    return [(controller, "next_state", wrong)]
