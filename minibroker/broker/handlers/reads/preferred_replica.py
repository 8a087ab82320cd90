"""The replica that a consumer is to read from (KIP-392).

With `replica.selector.class` a leader answers the Fetch of a consumer in another rack with the id
of a follower in the consumer's rack, and without records. Fetch asks here before it reads.

Source: Kafka ReplicaManager.findPreferredReadReplica, RackAwareReplicaSelector, ReplicaView.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.common.leaders import endpoint_of

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.partition import Partition

NO_REPLICA: Final = -1


def preferred_replica(context: RequestContext, partition: Partition, rack: str, offset: int) -> int:
    """Return the broker id of the follower in `rack` that a consumer at `offset` is to read from,
    NO_REPLICA: from this broker.

    Only a leader sends consumers away, and not those of its own rack. The follower is in sync, has
    `offset` and is reached by the client's listener. Of several it is the most advanced, then the
    one that was caught up last, then the one with the largest id.
    """
    replicas = partition.replicas
    if replicas is None:
        return NO_REPLICA
    services = context.services
    brokers = services.cluster.image.brokers
    own = brokers.get(services.config.broker_id)
    if own is not None and own.rack == rack:
        return NO_REPLICA
    best = (NO_REPLICA, NO_REPLICA, NO_REPLICA)
    for broker_id, progress in replicas.in_sync_at(offset):
        broker = brokers.get(broker_id)
        if broker is None or broker.rack != rack or endpoint_of(context, broker) is None:
            continue
        best = max(best, (progress.log_end_offset, progress.caught_up_ms, broker_id))
    return best[2]
