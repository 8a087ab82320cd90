"""The ISR of what this broker leads: followers that caught up come in, slow ones go.

The leader asks a controller of Apache Kafka for a change (`isr_requests`). Beside other controllers
it writes the tree, provided that nobody wrote the state since it was read. The change counts when
it is confirmed: then the cluster gives the partition its role anew.

Source: Kafka Partition.maybeExpandIsr, Partition.maybeShrinkIsr, AlterPartitionManager,
ReplicaManager.maybeShrinkIsr.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.event_loop import cancel_all
from minibroker.broker.slices import run_in_slices
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import NO_BROKER_EPOCH, TopicId, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.partitions.replicas import FollowerId
    from minibroker.broker.partitions.role import Role
    from minibroker.broker.replication.isr_requests import IsrRequests
    from minibroker.broker.timers import Timer, Timers

logger = logging.getLogger(__name__)

RETRY_DELAY_S: Final = 0.2
"""Pause before a change is tried again, because the tree could not be reached."""
FAULT_DELAY_S: Final = 5.0
"""The same pause after an unexpected error."""


class IsrProposal(NamedTuple):
    """A new ISR, and the state that it was decided on."""

    name: TopicPartition
    topic_id: TopicId
    leader_epoch: int
    partition_epoch: int
    isr: Mapping[int, int]
    """Broker id → the broker epoch that its fetches had, -1 where that is not checked."""


class IsrKeeper:
    """Owned by the loop."""

    __slots__ = (
        "_changing_partitions",
        "_cluster",
        "_dynamic",
        "_partitions",
        "_requests",
        "_sleep",
        "_tasks",
        "_timer",
        "_timers",
    )

    def __init__(
        self,
        *,
        cluster: Cluster,
        partitions: PartitionManager,
        dynamic: DynamicConfig,
        timers: Timers,
        requests: Callable[[], IsrRequests | None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take `requests`: it returns the way to the controller, None where the tree is written."""
        # Constant after construction.
        self._cluster = cluster
        self._partitions = partitions
        self._dynamic = dynamic
        self._timers = timers
        self._requests = requests
        self._sleep = sleep
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: Timer | None = None
        self._changing_partitions: set[Partition] = set()
        """Partitions with a change under way: the next one waits until it is confirmed."""

    def note_leader(self) -> None:
        """Look at followers from time to time: this broker leads a partition that has some."""
        if self._timer is None:
            interval_ms = self._dynamic.broker.replica_lag_time_max_ms / 2
            self._timer = self._timers.after(interval_ms, self._look)

    def note_fetch(self, partition: Partition, follower: FollowerId) -> None:
        """Take a follower that fetched into the ISR, if it has caught up.

        A fetch of a broker that was started again since does not count (KIP-903).
        """
        replicas = partition.replicas
        broker_id = follower.broker_id
        if replicas is None or broker_id in replicas.isr or partition in self._changing_partitions:
            return
        broker = self._cluster.image.brokers.get(broker_id)
        if broker is None or follower.broker_epoch not in (-1, broker.epoch):
            return
        isr = replicas.isr_with(broker_id, partition.high_watermark)
        if isr is not None:
            self._change(partition, isr, {broker_id: follower.broker_epoch})

    async def close(self) -> None:
        """Change nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        await cancel_all(*self._tasks)

    def _look(self) -> None:
        self._timer = None
        run_in_slices(self._steps())

    def _steps(self) -> Iterator[None]:
        """Take slow followers out, one partition a step."""
        leads_any = False
        for partition in list(self._partitions.with_followers()):
            leads_any = True
            try:
                self._look_at(partition)
            except Exception:  # a bug of ours: the others are looked at, and this one again later
                logger.exception("%s: cannot look for slow followers", partition)
            yield
        if leads_any:
            self.note_leader()

    def _look_at(self, partition: Partition) -> None:
        replicas = partition.replicas
        if replicas is not None and partition not in self._changing_partitions:
            isr = replicas.isr_without_slow(partition.log_end_offset)
            if isr is not None:
                self._change(partition, isr, {})

    def _change(self, partition: Partition, isr: list[int], epochs: dict[int, int]) -> None:
        """Change the ISR in a task. `epochs`: broker epochs of those that join."""
        self._changing_partitions.add(partition)
        # The role that was decided on: a task begins later.
        write = self._write(partition, partition.role, isr, epochs)
        task = asyncio.get_running_loop().create_task(write)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(
        self, partition: Partition, role: Role, isr: list[int], epochs: dict[int, int]
    ) -> None:
        """Write the ISR; repeat until the outcome is known.

        Until then joining followers count for the high watermark: the tree may have them. Where the
        state has changed meanwhile, followers ask again and slow ones are noticed again. The log
        has one line, however often it is repeated: many partitions wait for one tree.
        """
        is_late = False
        try:
            while True:
                try:
                    is_written = await self._try(partition, role, isr, epochs)
                    break
                except CoordinationError as error:
                    if not is_late:
                        logger.warning("%s: the ISR is not %s yet: %s", partition, isr, error)
                    is_late = True
                    await self._sleep(RETRY_DELAY_S)
                except Exception:  # a bug of ours: it is not known either what became of it
                    logger.exception("%s: the ISR is not %s yet", partition, isr)
                    await self._sleep(FAULT_DELAY_S)
            if is_written:
                logger.info("%s: the ISR is %s", partition, isr)
        finally:
            self._changing_partitions.discard(partition)
        if partition.replicas is not None:
            partition.replicas.give_up_joining()

    async def _try(
        self, partition: Partition, role: Role, isr: list[int], epochs: dict[int, int]
    ) -> bool:
        """Change the ISR if the partition still has `role`; return whether it was changed.

        A partition that was given up keeps its epochs, and another topic of its name may have equal
        ones. Raises CoordinationError where the outcome is not known.
        """
        current_role = partition.role
        if not partition.is_leader or (current_role.epoch, current_role.partition_epoch) != (
            role.epoch,
            role.partition_epoch,
        ):
            return False
        name, topic_id = TopicPartition(partition.topic, partition.index), partition.topic_id
        requests = self._requests()
        if requests is not None:
            own = self._cluster.this_broker
            change = IsrProposal(
                name,
                TopicId(topic_id),
                role.epoch,
                role.partition_epoch,
                {broker_id: epochs.get(broker_id, NO_BROKER_EPOCH) for broker_id in isr}
                | {own.id: own.epoch},
            )
            try:
                is_made = await requests.change(change)
                logger.info("%s: the controller was asked for ISR %s", partition, isr)
                return is_made
            except KafkaError as error:
                logger.info("%s: the leader writes the ISR itself: %s", partition, error)
        return await self._cluster.leadership.change_isr(
            name,
            isr,
            leader_epoch=role.epoch,
            partition_epoch=role.partition_epoch,
            topic_id=topic_id,
        )
