"""Hands leadership over before this broker stops: ControlledShutdown, sent to the controller.

It goes on while the broker still serves. The controller lets others lead what this broker leads.
Where some partitions have no other replica in sync, or the controller cannot be asked, this broker
asks again after a pause, and stops all the same in the end.

Source: Kafka KafkaServer.controlledShutdown. Differs from Kafka: a broker that is the only one left
asks no more, because nobody can take over.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from minibroker.broker.cluster.image import NO_CONTROLLER
from minibroker.broker.peers import PeerClient
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError, ProtocolError
from minibroker.kafka.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.config.broker import BrokerConfig

logger = logging.getLogger(__name__)


class ControlledShutdown:
    """The preparation of one stop. Belongs to the loop's thread."""

    __slots__ = ("_brokers_changed", "_cluster", "_config", "_sleep")

    def __init__(
        self,
        cluster: Cluster,
        config: BrokerConfig,
        *,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._sleep = sleep
        self._brokers_changed = asyncio.Event()
        """Set when brokers come or go."""

    async def run(self) -> bool:
        """Hand over; return whether no partition with other replicas is led here any more."""
        self._cluster.when_brokers_change(self._brokers_changed.set)
        for attempt in range(self._config.controlled_shutdown_max_retries):
            if attempt and self._has_others:
                await self._pause()
            if not self._has_others:
                return False
            try:
                partition_count = await self._ask()
            except (CoordinationError, KafkaError, OSError, ProtocolError) as error:
                logger.info("the controller did not prepare the stop of this broker: %s", error)
                continue
            if not partition_count:
                return True
            logger.info("%d partitions have no other replica that can lead them", partition_count)
        logger.warning("this broker stops without having handed over all its partitions")
        return False

    @property
    def _has_others(self) -> bool:
        return bool(self._cluster.image.brokers.keys() - {self._cluster.broker_id})

    async def _pause(self) -> None:
        """Wait for `controlled.shutdown.retry.backoff.ms`, or until no other broker is left."""
        pause = asyncio.ensure_future(
            self._sleep(self._config.controlled_shutdown_retry_backoff_ms / 1000)
        )
        try:
            while not pause.done() and self._has_others:
                self._brokers_changed.clear()
                news = asyncio.ensure_future(self._brokers_changed.wait())
                await asyncio.wait({pause, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
        finally:
            pause.cancel()

    async def _ask(self) -> int:
        """Return the number of partitions that this broker still leads.

        Raises KafkaError, CoordinationError, OSError, ProtocolError.
        """
        cluster = self._cluster
        broker_id, epoch = cluster.broker_id, cluster.this_broker.epoch
        if cluster.is_controller:
            return len(await cluster.leadership.shut_down_broker(broker_id, epoch))
        controller = cluster.image.controller_id
        if controller == NO_CONTROLLER:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "there is no controller")
        peers = PeerClient.of(
            cluster,
            self._config,
            listener=self._config.inter_broker_listener_name,
            timeout_ms=self._config.controller_socket_timeout_ms,
        )
        try:
            request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=epoch)
            answer = await peers.call(controller, request, ControlledShutdownResponse)
        finally:
            await peers.close()
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        return len(answer.remaining_partitions)
