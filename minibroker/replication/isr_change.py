"""A change of an ISR that a leader wants, and the releases that ask the controller for it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.ids import TopicId, TopicPartition

SINCE: Final = (2, 7, 2)
"""The first inter-broker protocol with AlterPartition: 2.7-IV2."""
NO_BROKER_EPOCH: Final = -1


def asks_controller(inter_broker_protocol: str) -> bool:
    """Return whether leaders of this `inter.broker.protocol.version` send AlterPartition; before,
    they wrote the tree.
    """
    release, _, internal = inter_broker_protocol.partition("-IV")
    major, minor = map(int, release.split(".")[:2])
    return (major, minor, int(internal) if internal else SINCE[2]) >= SINCE


class WantedIsr(NamedTuple):
    """A wanted ISR, and the state that it was decided on."""

    name: TopicPartition
    topic_id: TopicId
    leader_epoch: int
    partition_epoch: int
    isr: Mapping[int, int]
    """Broker id → the broker epoch that its fetches had, -1 where that is not checked."""
