"""Leaders in answers, with their addresses on the client's listener.

Source: KIP-951 (current leader in Produce v10+ and Fetch v16+), Kafka MetadataCache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from minibroker.broker.cluster.image import BrokerInfo, Endpoint, PartitionImage
    from minibroker.broker.handlers.common.context import RequestContext


def endpoint_of(context: RequestContext, broker: BrokerInfo) -> Endpoint | None:
    """Return the broker's address on the client's listener, None if it has none there."""
    return broker.endpoint(context.listener.name)


def visible_leader(context: RequestContext, state: PartitionImage) -> tuple[ErrorCode, int]:
    """Return the error and the leader of a partition for this client.
    The leader is -1 with LEADER_NOT_AVAILABLE if there is none, and -1 with LISTENER_NOT_FOUND if
    it does not have the client's listener.
    """
    leader = context.services.cluster.image.brokers.get(state.leader)
    if leader is None:
        return ErrorCode.LEADER_NOT_AVAILABLE, -1
    if endpoint_of(context, leader) is None:
        return ErrorCode.LISTENER_NOT_FOUND, -1
    return ErrorCode.NONE, state.leader


class LeaderHints:
    """Current leaders that an answer carries beside errors (KIP-951); each address occurs once.
    `classes` are LeaderIdAndEpoch and NodeEndpoint of Produce or of Fetch; both have the same
    fields.
    """

    __slots__ = ("_context", "_endpoint_class", "_leader_class", "_node_endpoints")

    def __init__(
        self, context: RequestContext, node_endpoints: list[Any], classes: tuple[Any, Any]
    ) -> None:
        self._context = context
        self._node_endpoints = node_endpoints
        self._leader_class, self._endpoint_class = classes

    def of(self, topic: str, index: int) -> Any:
        """Return the LeaderIdAndEpoch of a partition, None if it is unknown; add the address to the
        answer.
        """
        image = self._context.services.cluster.image
        state = image.partition(topic, index)
        if state is None:
            return None
        leader = self._leader_class(leader_id=state.leader, leader_epoch=state.leader_epoch)
        broker = image.brokers.get(state.leader)
        address = endpoint_of(self._context, broker) if broker is not None else None
        if (
            broker is not None
            and address is not None
            and all(endpoint.node_id != broker.id for endpoint in self._node_endpoints)
        ):
            self._node_endpoints.append(
                self._endpoint_class(
                    node_id=broker.id, host=address.host, port=address.port, rack=broker.rack
                )
            )
        return leader
