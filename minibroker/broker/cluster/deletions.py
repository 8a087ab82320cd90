"""The deletions of topics: what the controller does with the marks under /admin/delete_topics.

A topic that is marked leaves the metadata at once. Then each broker deletes its replicas, and says
so. The topic's nodes, its config and the mark go when every broker with a replica has done it.

    mark ─► out of the image ─► each broker: logs deleted? ─► all of them: nodes, config, mark gone
                                  │ dead, or a disk refuses: asked again when it registers anew
                                  └ until then the mark stays, and the name is taken

A crash in between leaves the mark, and the next controller goes on: no log is left without a topic.
Until the topic is gone its partitions have no leader in the tree.

Source: Kafka's TopicDeletionManager, KafkaController (processTopicDeletion).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import PartitionState, decode_large_topic
from minibroker.broker.cluster.image import NO_LEADER, TopicImage
from minibroker.broker.cluster.tree import Delete, NoNode, NotEmpty
from minibroker.broker.event_loop import cancel_all
from minibroker.broker.slices import TimeSlice, collect
from minibroker.kafka.errors import CoordinationError, MinibrokerError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.election import Election
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.cluster.partition_states import PartitionStates
    from minibroker.broker.evidence import DeletionEvidence

    DeleteLogs = Callable[[TopicImage, DeletionEvidence], Awaitable[None]]
    """Takes away this broker's logs of a topic, durably. Raises StorageError."""
    AskBroker = Callable[[int, TopicImage], "asyncio.Future[bool] | None"]
    """(broker, topic) → the future of whether the broker has deleted its replicas; it is cancelled
    when the broker is gone. None where the broker cannot be asked."""

DELETED_AT_ONCE: Final = 25
"""Nodes of a topic that go in one transaction: 25 times ~20 µs of the loop in the embedded home."""
DELETION_ATTEMPTS_MAX: Final = 10
"""The most times that a deletion reads the topic's nodes, because another process changed them."""
WAIT_S_MAX: Final = 10.0
"""How long a request waits for brokers that are there and do not answer. Kafka's waits for none."""


class Deletion:
    """One topic on its way out. Belongs to `Deletions`."""

    __slots__ = (
        "_waiters",
        "asked_epochs",
        "deleted_by",
        "failure",
        "holders",
        "running_on",
        "topic",
    )

    def __init__(self, topic: TopicImage, broker_id: int) -> None:
        """`broker_id`: this broker, which may have a log although the metadata do not know it."""
        # Constant after construction.
        self.topic = topic
        self.holders = {
            replica for partition in topic.partitions for replica in partition.replicas
        } | {broker_id}
        """Brokers that have replicas. The topic stays until they are deleted."""
        self.deleted_by: set[int] = set()
        """Brokers that have deleted all their replicas."""
        self.asked_epochs: dict[int, int] = {}
        """Broker → epoch of the registration in which it was asked last."""
        self.running_on: set[int] = set()
        """Brokers that have been asked, and have not answered."""
        self.failure: MinibrokerError | None = None
        """The error that stopped this broker's part, None where the topic waits for others."""
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def remaining_holders(self) -> set[int]:
        """Return the brokers that still have replicas."""
        return self.holders - self.deleted_by

    def wake(self) -> None:
        """End the waits: nothing more happens now."""
        for future in self._waiters:
            if not future.done():
                future.set_result(None)

    async def wait(self, timeout_s: float) -> None:
        """Return when the topic is deleted, when it waits for a broker to come back, or after a
        time.

        Raises StorageError where a disk of this broker does not delete a log, CoordinationError
        where the tree is out of reach.
        """
        if not self.running_on & self.holders:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(future)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(timeout_s, WAIT_S_MAX)):
                await future
        self._waiters.remove(future)
        if self.failure is not None:
            raise self.failure


class Deletions:
    """Deletes topics in the controller's name.

    `delete_logs` is None where there is no storage; `deletes_topics` is `delete.topic.enable`.
    """

    def __init__(
        self,
        context: ClusterContext,
        election: Election,
        states: PartitionStates,
        *,
        delete_logs: DeleteLogs | None = None,
        deletes_topics: bool = True,
    ) -> None:
        # Constant after construction.
        self._context = context
        self._election = election
        self._states = states
        self._delete_logs = delete_logs or _have_no_logs
        self.is_enabled = deletes_topics
        self.ask_broker: AskBroker = _ask_nobody
        """Has another broker delete its replicas; set before the start (`replication.outboxes`)."""
        self.when_late: Callable[[], None] = _do_nothing
        """Has `resume` called after a while; set before the start."""
        # Changed under the cluster's lock, and when this broker is deposed.
        self._under_way: dict[str, Deletion] = {}
        self._tasks: dict[asyncio.Task[None], int] = {}
        """Work for a deletion → the broker that it is about."""
        election.listeners.append(self._on_election)

    def is_queued(self, name: str) -> bool:
        """Return whether a topic is to be deleted, as far as the controller knows."""
        return name in self._under_way

    def topic(self, name: str) -> TopicImage | None:
        """Return a topic that is being deleted, as it was; None for others."""
        deletion = self._under_way.get(name)
        return None if deletion is None else deletion.topic

    async def close(self) -> None:
        """Go on no more: this broker stops."""
        await cancel_all(*self._tasks)

    async def resume(self) -> None:
        """Begin or go on with every deletion that is marked. Call it under the cluster's lock.

        Where topics are not to be deleted the marks go, as with Kafka. Raises KafkaError
        (NOT_CONTROLLER), CoordinationError.
        """
        names = await self._context.tree.children(paths.ADMIN_DELETE_TOPICS)
        for name in names:
            if not self.is_enabled:
                self._context.log.warning(
                    "topic %s is marked for deletion and is kept: delete.topic.enable=false", name
                )
                await self._states.multi([Delete(paths.delete_topic(name))])
                continue
            await self.begin(name)

    async def wait_for_own_part(self) -> None:
        """Return when this broker has done its part of all deletions."""
        own = self._context.broker_id
        while tasks := [task for task, broker_id in self._tasks.items() if broker_id == own]:
            await asyncio.wait(tasks)

    async def begin(self, name: str) -> Deletion | None:
        """Begin or go on with the deletion of a marked topic. Call it under the cluster's lock.

        Returns None where only the mark, or some of the nodes, were left. Raises
        KafkaError(NOT_CONTROLLER), CoordinationError.
        """
        deletion = self._under_way.get(name)
        if deletion is None:
            topic = await self._find(name)
            if topic is None:
                await self._delete_nodes(name)
                return None
            # A power cut must not bring the topic back without its logs: the mark is durable first.
            await self._context.tree.flush()
            if self._election.guard():
                await self._states.multi([])  # only the controller goes on
            deletion = self._under_way[name] = Deletion(topic, self._context.broker_id)
            self._context.updater.begin_deletion(topic, _mark_of(name))
            if self._context.tree.is_shared and topic.topic_id != ZERO_TOPIC_ID:
                await self._states.change(topic, partial(_last_state, self._election.epoch))
        self._go_on(deletion)
        return deletion

    async def _find(self, name: str) -> TopicImage | None:
        """Return the topic that is marked, None if it does not exist.

        The image does not have it where another controller began to delete it. It may have another
        topic of that name: the mark came back with an older copy of the tree.
        """
        topic = self._context.updater.image.topics.get(name)
        if topic is not None and not self._context.tree.is_shared:
            return topic
        try:
            data, _ = await self._context.tree.get(paths.topic(name))
        except NoNode:
            return topic
        assignment = await decode_large_topic(paths.topic(name), data)
        if topic is not None and assignment.topic_id in (topic.topic_id, None):
            return topic
        count = max(assignment.replicas, default=-1) + 1
        partitions = self._context.updater.known_partitions(name, assignment, [None] * count)
        return TopicImage(name, assignment.topic_id or ZERO_TOPIC_ID, await collect(partitions))

    def _go_on(self, deletion: Deletion) -> None:
        """Ask the brokers that are to be asked; where all have deleted, delete the nodes."""
        self._ask(deletion)
        if not deletion.running_on and not deletion.remaining_holders:
            # The tree went away before the nodes did.
            self._run(deletion, self._context.broker_id, _have_deleted)

    def _ask(self, deletion: Deletion) -> None:
        """Ask the brokers that have not been asked since they registered."""
        own = self._context.broker_id
        for broker in self._context.updater.image.brokers.values():
            if (
                broker.id in deletion.running_on
                or deletion.asked_epochs.get(broker.id) == broker.epoch
            ):
                continue
            deletion.asked_epochs[broker.id] = broker.epoch
            if broker.id == own:
                self._run(deletion, own, partial(self._delete_own, deletion.topic))
            elif (answer := self.ask_broker(broker.id, deletion.topic)) is not None:
                self._run(deletion, broker.id, partial(_result_of, answer))

    def _run(self, deletion: Deletion, broker_id: int, work: Callable[[], Awaitable[bool]]) -> None:
        """Have a broker's replicas deleted in a task of its own; the last one deletes the nodes."""
        deletion.running_on.add(broker_id)
        task = asyncio.get_running_loop().create_task(self._await(deletion, broker_id, work))
        self._tasks[task] = broker_id
        task.add_done_callback(self._tasks.pop)

    async def _await(
        self, deletion: Deletion, broker_id: int, work: Callable[[], Awaitable[bool]]
    ) -> None:
        name = deletion.topic.name
        try:
            if await work():
                deletion.deleted_by.add(broker_id)
            if not deletion.remaining_holders:
                await self._finish(deletion)
        except StorageError as error:
            self._context.log.error("topic %s is not deleted yet: %s", name, error)
            deletion.failure = error
        except MinibrokerError as error:
            self._context.log.warning("topic %s is not deleted yet: %s", name, error)
            deletion.failure = error
            if self._under_way.get(name) is deletion:
                self.when_late()
        except Exception:  # the other deletions go on
            self._context.log.exception("the deletion of topic %s failed", name)
        finally:
            deletion.running_on.discard(broker_id)
            if not deletion.running_on & deletion.holders:
                deletion.wake()
        if self._under_way.get(name) is deletion:
            self._ask(deletion)  # it may have been started again before its question ended

    async def _delete_own(self, topic: TopicImage) -> bool:
        """Delete this broker's replicas; return False where some are in offline log directories.

        A broker that stands alone lets go of those: the name is free again, as with Kafka 4.
        """
        await self._delete_logs(topic, _mark_of(topic.name))
        own = self._context.broker_id
        if not self._context.tree.is_shared:
            return True
        return not any(own in partition.offline for partition in topic.partitions)

    async def _finish(self, deletion: Deletion) -> None:
        """Delete the nodes of a topic whose replicas are all deleted."""
        name = deletion.topic.name
        async with self._context.lock:
            if self._under_way.get(name) is not deletion:
                return
            await self._delete_nodes(name)
            self._context.updater.delete_topic(name, _mark_of(name))
            self._under_way.pop(name, None)  # an election may have forgotten it meanwhile
            deletion.failure = None

    async def _delete_nodes(self, name: str) -> None:
        """Delete the topic's nodes, children first, the mark last."""
        tree = self._context.tree
        turn = TimeSlice()
        for _ in range(DELETION_ATTEMPTS_MAX):
            nodes = (await tree.subtree(paths.topic(name)))[::-1]
            for path in (paths.config("topics", name), paths.delete_topic(name)):
                if await tree.exists(path):
                    nodes.append(path)
            try:
                for start in range(0, len(nodes), DELETED_AT_ONCE):
                    batch = nodes[start : start + DELETED_AT_ONCE]
                    await self._states.multi([Delete(path) for path in batch])
                    if turn.is_over:
                        await turn.pause()
            except (NoNode, NotEmpty):
                continue  # another process deletes it too, or wrote a state meanwhile
            return
        raise CoordinationError(
            f"the nodes of topic {name} changed during each of {DELETION_ATTEMPTS_MAX} deletions: "
            "check which other process writes to the metadata tree"
        )

    def _on_election(self, is_controller: bool) -> None:
        """Forget everything: the next controller goes on."""
        for deletion in self._under_way.values():
            deletion.wake()
        self._under_way.clear()


def _mark_of(name: str) -> DeletionEvidence:
    from minibroker.broker.evidence import marked_topic  # noqa: PLC0415  a start deletes nothing

    return marked_topic(paths.delete_topic(name))


def _last_state(controller_epoch: int, partition: PartitionImage) -> PartitionState | None:
    """Return the state of a partition that is being deleted; None: as it is.

    The replicas that are online leave the ISR one by one, each with a leader epoch; the last one
    stays in it. Source: Kafka's ReplicaStateMachine (OfflineReplica).
    """
    last_brokers = [broker_id for broker_id in partition.online if broker_id in partition.isr]
    if partition.partition_epoch < 0 or not last_brokers:
        return None
    return PartitionState(
        NO_LEADER if partition.leader in last_brokers else partition.leader,
        partition.leader_epoch + len(last_brokers),
        [broker_id for broker_id in partition.isr if broker_id not in last_brokers]
        or last_brokers[-1:],
        controller_epoch,
        partition.leader_recovery_state,
    )


async def _have_no_logs(_topic: TopicImage, _evidence: DeletionEvidence) -> None:
    """Take no log away: there is no storage."""


def _ask_nobody(_broker_id: int, _topic: TopicImage) -> asyncio.Future[bool] | None:
    """Return None: there are no other brokers."""
    return None


def _do_nothing() -> None:
    """Leave it to the next start: nobody is told of deletions that are late."""


async def _result_of(answer: asyncio.Future[bool]) -> bool:
    """Return the answer of a broker, False where it is gone."""
    try:
        return await answer
    except asyncio.CancelledError:
        if not answer.cancelled():
            raise  # this task ends
        return False


async def _have_deleted() -> bool:
    """Return True: the replicas are deleted."""
    return True
