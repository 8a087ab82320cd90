"""UnregisterBroker: key 64, version 0.

Behaviour: refuses; an unregistered broker is BROKER_ID_NOT_REGISTERED.
Differs from Kafka: the registration of a broker lives as long as its session, as with ZooKeeper,
where Kafka does not offer this API. So a stopped broker has no registration. This broker refuses to
unregister a broker that runs; Kafka 4 does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext


def handle(context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Return the refusal; its error code depends on whether the broker is registered."""
    broker_id = request.broker_id
    if broker_id not in context.services.cluster.image.brokers:
        return UnregisterBrokerResponse(
            error_code=int(ErrorCode.BROKER_ID_NOT_REGISTERED),
            error_message=f"Broker ID {broker_id} is not currently registered",
        )
    return UnregisterBrokerResponse(
        error_code=int(ErrorCode.INVALID_REQUEST),
        error_message=f"broker {broker_id} is running: stop it, its entry goes with it",
    )
