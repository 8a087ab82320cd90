"""The outbox of one broker: the controller's decisions that the broker has not confirmed yet.

A decision is kept as the name of its partition. A request is made when it is sent, from the image,
so several decisions on a partition are one, and the last one counts. Requests leave one by one, in
the order of the decisions, and again and again until the broker answers or is gone. Each carries
the epoch in which this broker was elected, and the broker's own, so a late one changes nothing.

    parcel: roles (LeaderAndIsr) ─► metadata (UpdateMetadata) ─► stops (StopReplica)

Roles and metadata of new partitions go before those of others. A broker that becomes the
coordinator of a transaction takes a partition that it has never heard of for a deleted one, which
needs no marker. To a broker that has just come, the metadata goes first: it follows only leaders
that it knows.

Source: Kafka ControllerChannelManager (RequestSendThread), AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.event_loop import cancel_all
from minibroker.broker.replication import control_requests
from minibroker.broker.replication.control_requests import DURING_DELETE, PARTITIONS_MAX, Stop
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from minibroker.kafka.protocol.messages.stop_replica import StopReplicaResponse
from minibroker.kafka.protocol.messages.update_metadata import UpdateMetadataResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping

    from minibroker.broker.cluster.image import MetadataImage, TopicImage
    from minibroker.broker.config.inter_broker import InterBrokerProtocol
    from minibroker.broker.peers import PeerClient
    from minibroker.broker.replication.control_requests import Address
    from minibroker.kafka.protocol.messages.leader_and_isr import LeaderAndIsrRequest
    from minibroker.kafka.protocol.messages.stop_replica import StopReplicaRequest
    from minibroker.kafka.protocol.messages.update_metadata import UpdateMetadataRequest

logger = logging.getLogger(__name__)

RETRY_DELAY_S: Final = 0.1
"""Pause before a request is sent again, as in Kafka."""
FAULT_DELAY_S: Final = 5.0
"""Pause before a parcel is sent again, after an unexpected error."""


class _Decisions:
    """Decisions on partitions that the broker has heard of, or on those that it has not."""

    __slots__ = ("metadata", "roles")

    def __init__(self) -> None:
        self.roles: dict[TopicPartition, bool] = {}
        """Partition → whether the replica is new."""
        self.metadata: dict[TopicPartition, None] = {}


class _Parcel:
    """Decisions that may leave together."""

    __slots__ = ("deleted_topic", "done", "greets", "new", "old", "stops")

    def __init__(self) -> None:
        self.greets = False
        """True if the brokers changed: then the metadata goes first."""
        self.new = _Decisions()
        """Those on partitions that the broker has not heard of."""
        self.old = _Decisions()
        self.stops: dict[TopicPartition, Stop] = {}
        self.deleted_topic: TopicImage | None = None
        self.done: asyncio.Future[bool] | None = None
        """The outcome of a deletion: True if the broker has deleted every replica."""

    def decisions_on(self, name: TopicPartition) -> _Decisions:
        """Return the decisions that this partition is among."""
        return self.new if name in self.new.metadata else self.old


class Outbox:
    """Owned by the loop; `close` ends it."""

    __slots__ = (
        "_address",
        "_hold_count",
        "_image",
        "_listener",
        "_on_offline",
        "_parcels",
        "_peers",
        "_protocol",
        "_released",
        "_sleep",
        "_stopping_brokers",
        "_task",
        "_wake",
        "broker_id",
    )

    def __init__(
        self,
        broker_id: int,
        address: Address,
        *,
        peers: PeerClient,
        image: Callable[[], MetadataImage],
        stopping_brokers: Callable[[], Collection[int]],
        listener: str,
        protocol: InterBrokerProtocol,
        on_offline: Callable[[int, list[TopicPartition]], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Begin to send.

        `stopping_brokers`: returns the brokers that shut down. `listener`: name of the one between
        brokers. `protocol`: no newer requests are sent. `on_offline`: (broker, replicas of it whose
        log directory failed).
        """
        # Constant after construction.
        self.broker_id = broker_id
        self._address = address
        self._peers = peers
        self._image = image
        self._stopping_brokers = stopping_brokers
        self._listener = listener
        self._protocol = protocol
        self._on_offline = on_offline
        self._sleep = sleep
        self._parcels: list[_Parcel] = []
        """The oldest first; the one that is being sent is not among them."""
        self._wake = asyncio.Event()
        self._hold_count = 0
        self._released = asyncio.Event()
        """Set while `_hold_count` is 0."""
        self._released.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    # Decisions.

    def greet(self) -> None:
        """Tell the list of registered brokers."""
        self._parcel().greets = True

    def tell_role(self, name: TopicPartition, *, is_new: bool) -> None:
        """Tell the role of the broker's replica of this partition."""
        roles = self._parcel_without_end_of(name).decisions_on(name).roles
        roles[name] = is_new or roles.get(name, False)

    def tell_metadata(self, name: TopicPartition, *, is_new: bool = False) -> None:
        """Tell the state of this partition. `is_new`: the broker has not heard of it. Call it
        before `tell_role` then.
        """
        parcel = self._parcel_without_end_of(name)
        decisions = parcel.new if is_new else parcel.decisions_on(name)
        decisions.metadata[name] = None

    def stop(self, name: TopicPartition, stop: Stop) -> None:
        """End the broker's replica of this partition."""
        parcel = self._parcel()
        old_stop = parcel.stops.get(name)
        deletes = stop.deletes or (old_stop is not None and old_stop.deletes)
        parcel.stops[name] = Stop(stop.leader_epoch, deletes)

    def delete(self, topic: TopicImage) -> asyncio.Future[bool]:
        """Tell that a topic is deleted, and end the broker's replicas of it.

        Returns the future of whether the broker did it; it is cancelled when the broker is gone.
        """
        parcel = _Parcel()
        parcel.deleted_topic = topic
        parcel.done = asyncio.get_running_loop().create_future()
        self._parcels.append(parcel)
        self._parcels.append(_Parcel())  # what follows may be about another topic of this name
        self._wake.set()
        return parcel.done

    def hold(self) -> None:
        """Let no parcel leave before `release`: the next decisions belong together. A broker of
        Kafka that hears of four partitions of eight shows its clients a topic of four.
        """
        self._hold_count += 1
        self._released.clear()

    def release(self) -> None:
        """End one `hold`."""
        self._hold_count -= 1
        if not self._hold_count:
            self._released.set()

    def _parcel(self) -> _Parcel:
        """Return the last parcel that has not left."""
        if not self._parcels:
            self._parcels.append(_Parcel())
        self._wake.set()
        return self._parcels[-1]

    def _parcel_without_end_of(self, name: TopicPartition) -> _Parcel:
        """Return a parcel that leaves after the end of this replica, if that is on its way."""
        parcel = self._parcel()
        if name in parcel.stops:
            parcel = _Parcel()
            self._parcels.append(parcel)
        return parcel

    async def close(self) -> None:
        """Send nothing more: the broker is gone, or this one is not the controller any more."""
        await cancel_all(self._task)
        for parcel in self._parcels:
            if parcel.done is not None:
                parcel.done.cancel()

    # Sending.

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._parcels:
                while self._hold_count:
                    await self._released.wait()
                parcel = self._parcels.pop(0)
                try:
                    await self._send(parcel)
                except Exception:  # a bug of ours: what follows may depend on this one
                    logger.exception("broker %d is told again", self.broker_id)
                    self._parcels.insert(0, parcel)
                    await self._sleep(FAULT_DELAY_S)
                    continue
                except asyncio.CancelledError:
                    self._parcels.insert(0, parcel)  # for `close`
                    raise
                if parcel.done is not None:
                    parcel.done.cancel()  # does nothing where it has its result

    async def _send(self, parcel: _Parcel) -> None:
        if parcel.deleted_topic is not None:
            is_done = await self._delete(parcel.deleted_topic)
            if parcel.done is not None and not parcel.done.done():
                parcel.done.set_result(is_done)
            return
        if parcel.greets:
            await self._send_metadata(parcel.new.metadata, parcel.old.metadata, is_greeting=True)
            await self._send_roles(parcel.new.roles, parcel.old.roles)
        else:
            for decisions in (parcel.new, parcel.old):
                await self._send_roles(decisions.roles)
                await self._send_metadata(decisions.metadata)
        for stops in _parts_of(parcel.stops):
            await self._stop(stops)

    async def _delete(self, topic: TopicImage) -> bool:
        """Tell that a topic goes, then end the broker's replicas of it; return whether it did."""
        turn = TimeSlice()
        count = len(topic.partitions)
        parts = [
            range(start, min(start + PARTITIONS_MAX, count))
            for start in range(0, count, PARTITIONS_MAX)
        ]
        for part in parts:
            await self._call(
                partial(self._deletion, topic, part),
                UpdateMetadataResponse,
                control_requests.UPDATE_METADATA_FROM,
                self._protocol.update_metadata,
            )
        is_done = True
        for part in parts:
            stops = {
                TopicPartition(topic.name, index): Stop(DURING_DELETE, deletes=True)
                for index in part
                if self.broker_id in topic.partitions[index].replicas
            }
            if stops:
                is_done &= await self._stop(stops)
            if turn.is_over:
                await turn.pause()
        return is_done

    def _deletion(self, topic: TopicImage, part: Iterable[int]) -> UpdateMetadataRequest:
        return control_requests.deletion(self._image(), self._address, topic, part)

    async def _stop(self, stops: Mapping[TopicPartition, Stop]) -> bool:
        """End these replicas; return whether the broker did it."""
        request = control_requests.stop_replica(self._address, stops)
        answer = await self._call(
            partial(_same, request),
            StopReplicaResponse,
            control_requests.STOP_REPLICA_FROM,
            self._protocol.stop_replica,
        )
        return answer is not None and not any(error.error_code for error in answer.partition_errors)

    async def _send_roles(self, *roles: Mapping[TopicPartition, bool]) -> None:
        for part in _parts_of(*roles):
            answer = await self._call(
                partial(self._roles, part),
                LeaderAndIsrResponse,
                control_requests.LEADER_AND_ISR_FROM,
                self._protocol.leader_and_isr,
            )
            if answer is not None:
                self._note_offline(answer)

    def _roles(self, part: Mapping[TopicPartition, bool]) -> LeaderAndIsrRequest | None:
        return control_requests.leader_and_isr(
            self._image(),
            self._address,
            {name: part[name] for name in self._without_deleted(part)},
            self._listener,
            marks_recovery=self._protocol.marks_recovery,
        )

    def _metadata(self, part: Iterable[TopicPartition]) -> UpdateMetadataRequest:
        return control_requests.update_metadata(
            self._image(),
            self._address,
            self._without_deleted(part),
            stopping_brokers=self._stopping_brokers(),
        )

    def _without_deleted(self, names: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of these partitions that no later parcel deletes. Of the others the image
        may have another topic of the name, which the broker hears of behind the deletion.
        """
        deleted = {parcel.deleted_topic.name for parcel in self._parcels if parcel.deleted_topic}
        return [name for name in names if name.topic not in deleted]

    def _note_offline(self, answer: Any) -> None:
        """Report the replicas whose log directory has failed."""
        by_id = self._image().topic_by_id
        offline = [
            TopicPartition(by_id[topic.topic_id].name, error.partition_index)
            for topic in answer.topics
            for error in topic.partition_errors
            if error.error_code == ErrorCode.KAFKA_STORAGE_ERROR and topic.topic_id in by_id
        ]
        if offline:
            self._on_offline(self.broker_id, offline)

    async def _send_metadata(
        self, *metadata: Mapping[TopicPartition, None], is_greeting: bool = False
    ) -> None:
        """Tell these states. `is_greeting`: tell the brokers, too, also where there is no state."""
        parts: list[Iterable[TopicPartition]] = list(_parts_of(*metadata))
        if not parts and is_greeting:
            parts = [()]
        for part in parts:
            await self._call(
                partial(self._metadata, part),
                UpdateMetadataResponse,
                control_requests.UPDATE_METADATA_FROM,
                self._protocol.update_metadata,
            )

    async def _call(self, make: Callable[[], Any], response: Any, oldest: int, newest: int) -> Any:
        """Send until the broker answers; return the answer.

        `oldest`, `newest`: versions. `make` returns the request, None for nothing to send. None is
        returned then, and for an answer with an error: the broker knows another controller, or was
        started again.
        """
        while (request := make()) is not None:
            try:
                answer = await self._peers.call(
                    self.broker_id, request, response, oldest=oldest, newest=newest
                )
            except (OSError, ProtocolError) as error:
                logger.info("broker %d is told later: %s", self.broker_id, error)
                await self._sleep(RETRY_DELAY_S)
                continue
            except KafkaError as error:
                logger.error("broker %d cannot be told: %s", self.broker_id, error)
                return None
            if answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
                # A minibroker has to read a topic, and the tree is out of its reach.
                logger.info("broker %d is told again: it cannot read the tree", self.broker_id)
                await self._sleep(RETRY_DELAY_S)
                continue
            if answer.error_code:
                logger.warning(
                    "broker %d refused request %d of controller epoch %d with error %d",
                    self.broker_id,
                    request.API_KEY,
                    self._address.controller_epoch,
                    answer.error_code,
                )
                return None
            return answer
        return None


def _same(request: StopReplicaRequest) -> StopReplicaRequest:
    """Return a request that does not depend on the image."""
    return request


def _parts_of(*names: Mapping[TopicPartition, Any]) -> Iterator[dict[TopicPartition, Any]]:
    """Yield the entries of all, at most PARTITIONS_MAX at a time."""
    entries = chain.from_iterable(entries_of.items() for entries_of in names)
    while part := dict(islice(entries, PARTITIONS_MAX)):
        yield part
