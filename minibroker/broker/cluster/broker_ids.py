"""The id of a broker that was given none: `broker.id=-1` on a ZooKeeper.

Asked once, before the broker is made. Its data keep the id: it is in `meta.properties` from the
first start on.

Source: Kafka KafkaServer.getOrGenerateBrokerId, KafkaZkClient.generateBrokerSequenceId.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.registration import create_parents

if TYPE_CHECKING:
    from minibroker.broker.cluster.tree import Tree


async def generate_broker_id(tree: Tree, reserved_id_max: int) -> int:
    """Return an id that no broker of this tree was ever given: above `reserved_id_max`, which is
    the highest that a configuration may have. The tree is opened and closed here.

    Raises CoordinationError.
    """
    await tree.open()
    try:
        await create_parents(tree)
        return reserved_id_max + await tree.set(paths.BROKER_SEQUENCE, b"")
    finally:
        await tree.close()
