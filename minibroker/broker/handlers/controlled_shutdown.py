"""ControlledShutdown: key 7, versions 0-3. Brokers send it to the controller.

Behaviour: the broker stops soon. Other replicas in sync lead what it led, and it leaves the ISR of
what it follows. The answer names the partitions that it still leads, because no other replica can;
the broker asks again after a pause, or stops all the same.

Versions:
- 2: epoch of the broker's registration
- 3: flexible

Source: KIP-380.

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.errors import as_answer
from minibroker.kafka.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext


async def handle(
    context: RequestContext, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    """Return the partitions that the broker still leads, or the error."""
    cluster = context.services.cluster
    try:
        remaining = await cluster.leadership.shut_down_broker(
            request.broker_id, request.broker_epoch
        )
    except Exception as error:
        code, _ = as_answer(error, f"the controlled shutdown of broker {request.broker_id}")
        return ControlledShutdownResponse(error_code=code)
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=name.topic, partition_index=name.partition)
            for name in remaining
        ]
    )
