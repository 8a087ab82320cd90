"""Changes of leaders and of replicas in sync that somebody asks for.

    ElectLeaders, ControlledShutdown, AlterPartition ──┐
    ISRs of leaders, failed log directories, settings ─┼─► leadership ─► controller, states
    tests ─────────────────────────────────────────────┘

Each takes the cluster's lock, and does what only the controller may do on the controller only. A
change that nobody asks for, because a broker came or went, begins in `follow`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import encode_log_dir_event
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.controller import Controller
    from minibroker.broker.cluster.deletions import Deletions
    from minibroker.broker.cluster.election import Election
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.cluster.isr_changes import IsrChange
    from minibroker.broker.cluster.partition_states import PartitionStates
    from minibroker.kafka.ids import TopicPartition


class Leadership:
    """All methods belong to the loop. Those that ask the tree raise CoordinationError when it is
    out of reach now.
    """

    def __init__(
        self,
        context: ClusterContext,
        election: Election,
        controller: Controller,
        states: PartitionStates,
        deletions: Deletions,
    ) -> None:
        # Constant after construction.
        self._context = context
        self._election = election
        self._controller = controller
        self._states = states
        self._deletions = deletions
        self.when_late: Callable[[], None] = _do_nothing
        """Has what nobody asks for again done after a while; set before the start."""

    async def elect(self, name: str, index: int, *, unclean: bool) -> None:
        """Give a partition its preferred leader, or (unclean) any live one; as the controller.

        Raises KafkaError: INVALID_TOPIC_EXCEPTION (it is being deleted),
        UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
        ELIGIBLE_LEADERS_NOT_AVAILABLE, NOT_CONTROLLER.
        """
        async with self._context.lock:
            if self._deletions.is_queued(name):
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
            await self._controller.elect_leader(name, index, unclean=unclean)

    async def allow_unclean(self, topic: str | None) -> None:
        """Give a leader to partitions without one, of this topic or of all (None): a replica that
        is not in sync may lead now. Do nothing where this broker is not the controller.

        Raises CoordinationError, and tries again later; KafkaError(NOT_CONTROLLER).

        Source: Kafka KafkaController.processTopicUncleanLeaderElectionEnable.
        """
        async with self._context.lock, self._repeats():
            if self._election.is_controller:
                await self._controller.settle(None if topic is None else [topic])

    async def move(self, name: str, index: int, broker_id: int) -> None:
        """Give a partition this leader, which has to be in sync; as the controller. For tests.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, ELIGIBLE_LEADERS_NOT_AVAILABLE,
        NOT_CONTROLLER.
        """
        async with self._context.lock:
            await self._controller.move_leader(name, index, broker_id)

    async def shut_down_broker(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Do `Controller.shut_down`. Raises KafkaError as it does, CoordinationError."""
        async with self._context.lock:
            if not self._election.is_controller:
                raise KafkaError(
                    ErrorCode.NOT_CONTROLLER,
                    "Controller moved to another broker. Aborting controlled shutdown",
                )
            return await self._controller.shut_down(broker_id, broker_epoch)

    async def replicas_failed(
        self,
        partitions: Collection[TopicPartition],
        *,
        broker_id: int | None = None,
        broker_epoch: int | None = None,
    ) -> None:
        """Tell the cluster that the log directory with a broker's replicas of these partitions
        failed. None: this broker's. `broker_epoch`: of the registration in which the broker said
        so, None for any; a broker that was started again since may have its disk back.

        The controller gives them another leader, or none; another broker that is controller is told
        as Kafka's brokers tell it. Raises CoordinationError, and tries again later.
        """
        context = self._context
        async with context.lock, self._repeats():
            failed = context.broker_id if broker_id is None else broker_id
            broker = context.updater.image.brokers.get(failed)
            if broker_epoch is not None and (broker is None or broker.epoch != broker_epoch):
                return
            await context.updater.note_failed_replicas(failed, partitions)
            if self._election.is_controller:
                await self._controller.settle({name.topic for name in partitions})
            elif broker_id is None:
                await context.tree.create(
                    paths.LOG_DIR_EVENT, encode_log_dir_event(context.broker_id), sequence=True
                )

    @asynccontextmanager
    async def _repeats(self) -> AsyncIterator[None]:
        """Have the work in this block repeated where the tree does not answer: nobody asks again
        for it, and a tree that is slow has no new session.
        """
        try:
            yield
        except CoordinationError:
            self.when_late()
            raise

    async def change_isr(
        self,
        name: TopicPartition,
        isr: list[int],
        *,
        leader_epoch: int,
        partition_epoch: int,
        topic_id: bytes = ZERO_TOPIC_ID,
    ) -> bool:
        """Write the ISR of a partition that this broker leads in `leader_epoch`.

        `partition_epoch`: of the state that the change was decided on. `topic_id`: of the topic
        that is meant, zero for any. Another one may have its name, and equal epochs, by now.
        False where somebody wrote the state since then: it is read again. Raises CoordinationError.

        Source: Kafka ZkAlterPartitionManager, ReplicationUtils.updateLeaderAndIsr.
        """
        async with self._context.lock:
            return await self._states.change_isr(
                name,
                isr,
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
                topic_id=topic_id,
            )

    async def alter_isrs(
        self,
        broker_id: int,
        changes: Mapping[TopicPartition, IsrChange],
        *,
        ineligible: ErrorCode = ErrorCode.INELIGIBLE_REPLICA,
    ) -> dict[TopicPartition, PartitionImage | ErrorCode]:
        """Write the ISRs that leaders ask the controller for; return the state of each partition,
        or why it is refused.

        `broker_id`: of the leader. `ineligible`: the code for a replica whose broker is gone.
        Raises CoordinationError, KafkaError(NOT_CONTROLLER).
        """
        from minibroker.broker.cluster.isr_changes import IsrChanges  # noqa: PLC0415  of Kafka's brokers

        async with self._context.lock:
            self._election.guard()
            changer = IsrChanges(
                self._context,
                self._states,
                self._election,
                stopping_brokers=self._controller.stopping_brokers,
            )
            return await changer.write(broker_id, changes, ineligible)


def _do_nothing() -> None:
    """Leave it to the next session."""
