"""A change of an ISR that a leader asks the controller for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.kafka.ids import TopicId, TopicPartition

NO_BROKER_EPOCH: Final = -1


class IsrProposal(NamedTuple):
    """A new ISR, and the state that it was decided on."""

    name: TopicPartition
    topic_id: TopicId
    leader_epoch: int
    partition_epoch: int
    isr: Mapping[int, int]
    """Broker id → the broker epoch that its fetches had, -1 where that is not checked."""
