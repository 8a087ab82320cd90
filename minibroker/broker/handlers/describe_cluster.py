"""DescribeCluster: key 60, versions 0-2.

Behaviour: returns cluster id, controller and brokers, like Metadata without topics.

Versions:
- 1: endpoint type (1 brokers, 2 controllers; KIP-919)
- 2: fenced brokers (KIP-1073)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.common.authorized_operations import operations_of_cluster
from minibroker.broker.handlers.common.leaders import endpoint_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def handle(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Return the answer from the image; it lists only brokers that have the client's listener."""
    if request.endpoint_type != _BROKERS:
        if request.endpoint_type == _CONTROLLERS:
            return DescribeClusterResponse(
                error_code=int(ErrorCode.MISMATCHED_ENDPOINT_TYPE),
                error_message=(
                    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint"
                    " of type CONTROLLER"
                ),
            )
        return DescribeClusterResponse(
            error_code=int(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    image = context.services.cluster.image
    response = DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        endpoint_type=request.endpoint_type,
    )
    for broker in image.brokers.values():
        address = endpoint_of(context, broker)
        if address is not None:
            response.brokers.append(
                DescribeClusterBroker(
                    broker_id=broker.id, host=address.host, port=address.port, rack=broker.rack
                )
            )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = operations_of_cluster(context)
    return response
