"""UnregisterBroker: key 64, version 0.

Behaviour: a broker that is not registered is BROKER_ID_NOT_REGISTERED.
Differs from Kafka: a broker's entry here lives as long as its session, as with ZooKeeper, where
Kafka does not offer this API. So there is no entry of a broker that is gone, and one of a broker
that runs is its own: unregistering it is refused, Kafka 4 does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext


def handle(context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """The refusal, by whether the broker is there."""
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
