"""Changes of the ISR that leaders ask the controller for, with AlterPartition.

Apache Kafka's brokers write no states: they ask. `altered_state` is the pure rule. minibrokers
write the ISR themselves (`PartitionStates.change_isr`).

Source: Kafka KafkaController.tryProcessAlterPartition; KIP-497, KIP-704, KIP-841.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import RECOVERING, PartitionState, encode_state
from minibroker.broker.cluster.partition_states import STATES_PER_WRITE, with_states
from minibroker.broker.cluster.tree import BadVersion, NoNode, Set
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.election import Election
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.cluster.partition_states import PartitionStates
    from minibroker.kafka.ids import TopicPartition

    Outcome = PartitionImage | ErrorCode

REFUSED: Final = ErrorCode.INVALID_UPDATE_VERSION
"""The answer where another process wrote the state since the leader looked at it."""


class IsrChange(NamedTuple):
    """The ISR that a leader wants, and the state that it decided on."""

    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    recovery: int = 0
    """`codecs.RECOVERING`, or 0."""
    topic_id: TopicId = ZERO_TOPIC_ID
    """Id of the topic that is meant, zero for any of the name."""


def altered_state(
    partition: PartitionImage | None,
    broker_id: int,
    change: IsrChange,
    *,
    eligible: Collection[int],
    ineligible: ErrorCode,
    controller_epoch: int,
) -> PartitionState | ErrorCode:
    """Return the state to write, NONE where it is so already, or the error.

    Args:
        partition: None where there is no such partition, or it has no state yet.
        broker_id: the leader that asks.
        change: its wish.
        eligible: brokers that are registered and do not shut down.
        ineligible: the error for a replica that is not one of them.
        controller_epoch: goes into the state.

    Differs from Kafka 3.9: only the leader may ask, as in Kafka 4.
    """
    if partition is None or partition.partition_epoch < 0:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    now_recovery = partition.leader_recovery_state
    code = ErrorCode.NONE
    if (
        change.partition_epoch > partition.partition_epoch
        or change.leader_epoch > partition.leader_epoch
    ):
        # The leader knows more than this broker: another one is the controller by now.
        code = ErrorCode.NOT_CONTROLLER
    elif change.leader_epoch < partition.leader_epoch:
        code = ErrorCode.FENCED_LEADER_EPOCH
    elif partition.leader != broker_id:
        code = ErrorCode.INVALID_REQUEST
    elif (change.isr, change.recovery) == (partition.isr, now_recovery):
        return ErrorCode.NONE  # an answer was lost; the partition's epoch may be the next already
    elif change.partition_epoch < partition.partition_epoch:
        code = REFUSED
    elif not _is_sound(partition, change):
        code = ErrorCode.INVALID_REQUEST
    elif not set(change.isr) <= set(eligible):
        code = ineligible
    if code:
        return code
    return PartitionState(
        broker_id, change.leader_epoch, change.isr, controller_epoch, change.recovery
    )


def _is_sound(partition: PartitionImage, change: IsrChange) -> bool:
    """Return whether the ISR has replicas only, and just the leader while that recovers."""
    if change.recovery == RECOVERING and (
        len(change.isr) > 1 or partition.leader_recovery_state != RECOVERING
    ):
        return False
    return bool(change.isr) and set(change.isr) <= set(partition.replicas)


class IsrChanges:
    """Writes them, for one request. Call it under the cluster's lock, while being controller."""

    def __init__(
        self,
        context: ClusterContext,
        states: PartitionStates,
        election: Election,
        *,
        stopping_brokers: Collection[int],
    ) -> None:
        """`stopping_brokers`: brokers that shut down."""
        self._context = context
        self._states = states
        self._election = election
        self._stopping_brokers = stopping_brokers

    async def write(
        self, broker_id: int, changes: Mapping[TopicPartition, IsrChange], ineligible: ErrorCode
    ) -> dict[TopicPartition, Outcome]:
        """Do `Cluster.alter_isrs`."""
        eligible = self._context.updater.image.brokers.keys() - set(self._stopping_brokers)
        outcomes: dict[TopicPartition, Outcome] = {}
        to_write: dict[TopicPartition, PartitionState] = {}
        for name, change in changes.items():
            if self._is_gone(name.topic, change.topic_id):
                outcomes[name] = ErrorCode.UNKNOWN_TOPIC_ID
                continue
            partition = self._context.updater.image.partition(*name)
            state = altered_state(
                partition,
                broker_id,
                change,
                eligible=eligible,
                ineligible=ineligible,
                controller_epoch=self._election.epoch,
            )
            if isinstance(state, PartitionState):
                to_write[name] = state
            else:
                outcomes[name] = partition if partition and not state else state
        names = list(to_write)
        for start in range(0, len(names), STATES_PER_WRITE):
            part = names[start : start + STATES_PER_WRITE]
            results = await asyncio.gather(
                *(self._write(name, to_write[name]) for name in part), return_exceptions=True
            )
            # All have ended: none changes the image once the lock is given back.
            for name, outcome in zip(part, results, strict=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                outcomes[name] = outcome
        return outcomes

    def _is_gone(self, name: str, topic_id: TopicId) -> bool:
        """Return whether a topic that had this name was deleted since: another may have it now."""
        topic = self._context.updater.image.topics.get(name)
        return topic_id not in (ZERO_TOPIC_ID, topic.topic_id if topic else None)

    async def _write(self, name: TopicPartition, state: PartitionState) -> Outcome:
        """Write and apply one state, provided that nobody wrote it since."""
        updater = self._context.updater
        version = updater.image.topics[name.topic].partitions[name.partition].partition_epoch
        path = paths.partition_state(name.topic, name.partition)
        try:
            await self._states.multi([Set(path, encode_state(state), version)])
        except (BadVersion, NoNode):
            topic = updater.image.topics[name.topic]
            await self._states.read_again(topic, [name.partition])
            return REFUSED
        # Other partitions of the topic may have changed meanwhile.
        topic = with_states(updater.image.topics[name.topic], {name.partition: state})
        updater.apply_states(topic, [name.partition])
        return topic.partitions[name.partition]
