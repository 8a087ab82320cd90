"""The evidence of a deletion says in one sentence who asked for it."""

from __future__ import annotations

import pytest

from minibroker.broker.evidence import (
    DeletionEvidence,
    EvidenceKind,
    deletion_request,
    marked_topic,
    moved_replica,
)


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        (
            marked_topic("/admin/delete_topics/t"),
            "the topic is marked in /admin/delete_topics (/admin/delete_topics/t)",
        ),
        (
            deletion_request(EvidenceKind.STOP_REPLICA, 2, 7),
            "a StopReplica request deletes the replica (controller 2, epoch 7)",
        ),
        (
            deletion_request(EvidenceKind.LEADER_DURING_DELETE, 2, 7),
            "an UpdateMetadata request gives the topic's partitions the leader -2 "
            "(controller 2, epoch 7)",
        ),
        (
            moved_replica([1, 2], 5),
            "the partition has its replicas on other brokers (replicas [1, 2], leader epoch 5)",
        ),
    ],
)
def test_the_evidence_is_one_sentence(evidence: DeletionEvidence, sentence: str) -> None:
    assert str(evidence) == sentence
