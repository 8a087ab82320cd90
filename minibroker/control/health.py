"""The health check: whether a client would succeed now, with the reasons if not.

Ready means: the broker is started and not killed or paused, the listeners accept, a controller is
known, every coordinator has loaded its partitions, and no log directory is offline.

Everyone may ask, without a token. So a reason has no path, and no text of an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.image import NO_CONTROLLER
from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from minibroker.broker.app import Broker
    from minibroker.rig.node import Node


def reasons_not_ready(node: Node) -> list[str]:
    """Return a sentence per reason; an empty list means ready."""
    if not node.is_running:
        killed = any(fault.broker == "killed" for fault in node.faults)
        return ["the broker is killed by a fault" if killed else "the broker is starting"]
    broker = node.app
    reasons = []
    if node.is_paused:
        reasons.append("the broker is paused by a fault")
    if broker.failure.done():
        reasons.append("the broker ends; the log says why")
    if broker.cluster.image.controller_id == NO_CONTROLLER:
        reasons.append("no controller is known")
    directories = broker.logs.directories
    offline = sum(directory.is_offline for directory in directories)
    if offline:
        reasons.append(
            f"offline log directories: {offline} of {len(directories)}; the log names them"
        )
    return reasons + _loading(broker)


def _loading(broker: Broker) -> list[str]:
    topics = broker.cluster.image.topics
    reasons = []
    if OFFSETS_TOPIC in topics and broker.services.groups.journal.is_loading:
        reasons.append("the group coordinator is loading")
    if TRANSACTIONS_TOPIC in topics and broker.services.transactions.journal.is_loading:
        reasons.append("the transaction coordinator is loading")
    return reasons
