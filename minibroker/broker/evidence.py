"""The evidence for a deletion: who said that a topic, or a replica, is to go.

The metadata image is a view. A log that is not in it is not served, and it is kept: a ZooKeeper
that comes back empty, that was restored from an older copy, or that is late says nothing about a
log. So the code that deletes a log, or the offsets committed for a topic, hands over this value.
The log line of each deletion names it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class EvidenceKind(Enum):
    """The word that a deletion hangs on; the value is a sentence for the log."""

    MARK = "the topic is marked in /admin/delete_topics"
    LEADER_DURING_DELETE = "an UpdateMetadata request gives the topic's partitions the leader -2"
    STOP_REPLICA = "a StopReplica request deletes the replica"
    MOVED = "the partition has its replicas on other brokers"


class DeletionEvidence(NamedTuple):
    """Why something may be deleted."""

    kind: EvidenceKind
    detail: str
    """The source of the word: a node, a request or a partition's state."""

    def __str__(self) -> str:
        return f"{self.kind.value} ({self.detail})"


def marked_topic(path: str) -> DeletionEvidence:
    """Return the evidence of a node below /admin/delete_topics. DeleteTopics makes it, too."""
    return DeletionEvidence(EvidenceKind.MARK, path)


def deletion_request(
    kind: EvidenceKind, controller_id: int, controller_epoch: int
) -> DeletionEvidence:
    """Return the evidence of a controller's request, whose epochs are checked."""
    return DeletionEvidence(kind, f"controller {controller_id}, epoch {controller_epoch}")


def moved_replica(replicas: list[int], leader_epoch: int) -> DeletionEvidence:
    """Return the evidence of a partition's state that names the replicas, this broker not among
    them.
    """
    return DeletionEvidence(EvidenceKind.MOVED, f"replicas {replicas}, leader epoch {leader_epoch}")
