"""Changes of the ISR as requests to the controller: AlterPartition (KIP-497).

Stands between a leader's `IsrKeeper` and a controller of Apache Kafka. One request is in flight.
The changes that come meanwhile go together into the next one. When another broker becomes the
controller, the answer of the former one is not waited for: it may be cut off.

Source: Kafka DefaultAlterPartitionManager, Partition.handleAlterPartitionError. Differs from Kafka,
which waits for `controller.socket.timeout.ms`. For so long no replica could come or go.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.event_loop import cancel_all
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError, ProtocolError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from minibroker.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.peers import PeerClient
    from minibroker.broker.replication.isr import IsrProposal
    from minibroker.kafka.protocol.messages.alter_partition import ResponsePartitionData

logger = logging.getLogger(__name__)

NEWEST_BY_NAME: Final = 1
"""Later versions name topics by their id."""
BY_EPOCH: Final = 3
"""The first version with a broker epoch beside each member of the ISR (KIP-903)."""
NOT_APPLIED: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The controller knows this very state, and did not change it."""
STATE_IS_ANOTHER: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The controller has another state of the partition, or none: this broker has to see it first."""


class _Request(NamedTuple):
    change: IsrProposal
    answer: asyncio.Future[ResponsePartitionData]


class IsrRequests:
    """Owned by the loop."""

    __slots__ = ("_cluster", "_new_controller", "_peers", "_task", "_unsent")

    def __init__(self, cluster: Cluster, peers: PeerClient) -> None:
        # Constant after construction.
        self._cluster = cluster
        self._peers = peers
        self._unsent: dict[TopicPartition, _Request] = {}
        """Changes that are not sent yet; each partition has one at a time."""
        self._task: asyncio.Task[None] | None = None
        """Sends until nothing waits."""
        self._new_controller: asyncio.Future[None] | None = None
        """Done when there is another controller than the one that is asked now."""
        cluster.when_controller_changes(self._ask_another)

    async def change(self, change: IsrProposal) -> bool:
        """Ask the controller for a change; return whether it was made.

        The answer is in the image when this returns. Where the controller has another state, the
        image has that.

        Raises CoordinationError where it is not known what became of the change, and KafkaError
        UNSUPPORTED_VERSION where the controller has no AlterPartition.
        """
        answer: asyncio.Future[ResponsePartitionData] = asyncio.get_running_loop().create_future()
        old_request = self._unsent.get(change.name)
        if old_request is not None:
            _fail([old_request], CoordinationError("another topic has this name now"))
        self._unsent[change.name] = _Request(change, answer)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._send_all())
        data = await answer
        code = ErrorCode(data.error_code)
        requests = self._cluster.requests
        if code in NOT_APPLIED:
            return False
        if code in STATE_IS_ANOTHER:
            await requests.read_topic(change.name.topic)
            if self._is_as_before(change):
                raise CoordinationError(f"the controller answers {code.name}")
            return False
        if code:
            raise CoordinationError(f"the controller answers {code.name}")
        await requests.take_isr(
            change.name,
            change.topic_id,
            leader=data.leader_id,
            leader_epoch=data.leader_epoch,
            isr=data.isr,
            partition_epoch=data.partition_epoch,
        )
        return True

    def _is_as_before(self, change: IsrProposal) -> bool:
        """Return whether the image still has the state that the change was decided on."""
        state = self._cluster.image.partition(*change.name)
        return state is not None and (state.leader_epoch, state.partition_epoch) == (
            change.leader_epoch,
            change.partition_epoch,
        )

    async def close(self) -> None:
        """Send nothing any more."""
        await cancel_all(self._task)

    async def _send_all(self) -> None:
        try:
            while self._unsent:
                batch, self._unsent = self._unsent, {}
                try:
                    await self._send(batch)
                except KafkaError as error:
                    _fail(batch.values(), error)
                except (OSError, ProtocolError) as error:
                    _fail(batch.values(), CoordinationError(str(error)))
                except Exception as error:  # a bug of ours: those who wait try again
                    logger.exception("cannot ask the controller for %d ISRs", len(batch))
                    _fail(batch.values(), CoordinationError(str(error)))
        finally:
            self._task = None

    async def _send(self, batch: dict[TopicPartition, _Request]) -> None:
        """Send one request; give its parts of the answer to those who wait. Raises OSError,
        ProtocolError, KafkaError UNSUPPORTED_VERSION.
        """
        changes = [request.change for request in batch.values()]
        has_ids = all(change.topic_id != ZERO_TOPIC_ID for change in changes)
        answer = await self._ask(changes, newest=None if has_ids else NEWEST_BY_NAME)
        if answer.error_code:
            text = f"the controller answers {ErrorCode(answer.error_code).name}"
            _fail(batch.values(), CoordinationError(text))
            return
        names = {change.topic_id: change.name.topic for change in changes} if has_ids else {}
        for topic in answer.topics:
            topic_name = topic.topic_name or names.get(TopicId(topic.topic_id), "")
            for data in topic.partitions:
                request = batch.get(TopicPartition(topic_name, data.partition_index))
                if request is not None and not request.answer.done():
                    request.answer.set_result(data)
        _fail(batch.values(), CoordinationError("the controller's answer leaves it out"))

    async def _ask(
        self, changes: Collection[IsrProposal], *, newest: int | None
    ) -> AlterPartitionResponse:
        """Return the controller's answer.

        Raises OSError, ProtocolError, KafkaError UNSUPPORTED_VERSION; ConnectionError where there
        is another controller meanwhile.
        """
        loop = asyncio.get_running_loop()
        call = loop.create_task(
            self._peers.call_built(
                self._cluster.image.controller_id,
                AlterPartitionRequest,
                lambda version: self._request(changes, version),
                AlterPartitionResponse,
                newest=newest,
            )
        )
        new_controller: asyncio.Future[None] = loop.create_future()
        self._new_controller = new_controller
        try:
            await asyncio.wait({call, new_controller}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise ConnectionError("another controller came before the answer")
            answer: AlterPartitionResponse = call.result()
            return answer
        finally:
            self._new_controller = None
            new_controller.cancel()
            await cancel_all(call)

    def _ask_another(self) -> None:
        """Stop to wait for the answer of the former controller."""
        if self._new_controller is not None and not self._new_controller.done():
            self._new_controller.set_result(None)

    def _request(self, changes: Iterable[IsrProposal], version: int) -> AlterPartitionRequest:
        broker = self._cluster.this_broker
        topics: dict[str, RequestTopicData] = {}
        for change in changes:
            topic = topics.get(change.name.topic)
            if topic is None:
                topic = topics[change.name.topic] = RequestTopicData(topic_id=change.topic_id)
                topic.topic_name = change.name.topic
            data = RequestPartitionData(
                partition_index=change.name.partition,
                leader_epoch=change.leader_epoch,
                partition_epoch=change.partition_epoch,
            )
            if version >= BY_EPOCH:
                data.new_isr_with_epochs = [
                    BrokerState(broker_id=broker_id, broker_epoch=epoch)
                    for broker_id, epoch in change.isr.items()
                ]
            else:
                data.new_isr = list(change.isr)
            topic.partitions.append(data)
        return AlterPartitionRequest(
            broker_id=broker.id, broker_epoch=broker.epoch, topics=list(topics.values())
        )


def _fail(batch: Iterable[_Request], error: Exception) -> None:
    """Give the error to the requests that have no answer yet."""
    for request in batch:
        if not request.answer.done():
            request.answer.set_exception(error)
