"""The state of a partition as a controller of Apache Kafka sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from minibroker.broker.cluster.codecs import PartitionState


class SentState(NamedTuple):
    """A partition's state as a controller sends it."""

    state: PartitionState
    partition_epoch: int
    replicas: list[int]
    adding: list[int] | None = None
    """None where the request does not say it, as is `removing`, `offline`."""
    removing: list[int] | None = None
    offline: list[int] | None = None
