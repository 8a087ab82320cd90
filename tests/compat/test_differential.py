"""The same scenario against Apache Kafka and against minibroker: equal answers. Kafka is right.

Versions that Kafka 3.9.1 serves are judged by it, newer ones by Kafka 4.4.0. COMPAT_SUBJECT=4.4.0
puts that Kafka in minibroker's place: it judges the scenarios, and shows where the two differ.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.handlers.registry import HANDLERS
from tests.compat.dialogue import Dialogue, flatten
from tests.compat.known_differences import KNOWN_DIFFERENCES, differences_of
from tests.compat.scenarios import Scenario, load_all
from tests.support.codec import versions_of

if TYPE_CHECKING:
    from tests.support.broker import Minibroker
    from tests.support.peers import KafkaPeer

pytestmark = pytest.mark.java

SUBJECT = os.environ.get("COMPAT_SUBJECT", "minibroker")

# What each Kafka serves of the APIs that minibroker has handlers for.
KAFKA_39 = {
    "produce": (0, 11),
    "fetch": (0, 17),
    "list_offsets": (0, 9),
    "metadata": (0, 12),
    "api_versions": (0, 4),
    "create_topics": (0, 7),
    "delete_topics": (0, 6),
    "delete_records": (0, 2),
    "init_producer_id": (0, 5),
    "offset_for_leader_epoch": (0, 4),
    "add_partitions_to_txn": (0, 5),
    "add_offsets_to_txn": (0, 4),
    "end_txn": (0, 4),
    "write_txn_markers": (0, 1),
    "describe_configs": (0, 4),
    "alter_configs": (0, 2),
    "alter_replica_log_dirs": (0, 2),
    "describe_log_dirs": (0, 4),
    "create_partitions": (0, 3),
    "incremental_alter_configs": (0, 1),
    "txn_offset_commit": (0, 4),
    "offset_delete": (0, 0),
    "describe_client_quotas": (0, 1),
    "alter_client_quotas": (0, 1),
    "offset_commit": (0, 9),
    "offset_fetch": (0, 9),
    "find_coordinator": (0, 6),
    "join_group": (0, 9),
    "heartbeat": (0, 4),
    "leave_group": (0, 5),
    "sync_group": (0, 5),
    "describe_groups": (0, 5),
    "list_groups": (0, 5),
    "delete_groups": (0, 2),
    "sasl_handshake": (0, 1),
    "describe_acls": (0, 3),
    "create_acls": (0, 3),
    "delete_acls": (0, 3),
    "sasl_authenticate": (0, 2),
    "create_delegation_token": (0, 3),
    "renew_delegation_token": (0, 2),
    "expire_delegation_token": (0, 2),
    "describe_delegation_token": (0, 3),
    "describe_user_scram_credentials": (0, 0),
    "alter_user_scram_credentials": (0, 0),
    "elect_leaders": (0, 2),
    "alter_partition_reassignments": (0, 0),
    "list_partition_reassignments": (0, 0),
    "update_features": (0, 1),
    "describe_cluster": (0, 1),
    "describe_producers": (0, 0),
    "describe_transactions": (0, 0),
    "list_transactions": (0, 1),
}
KAFKA_44 = {
    "produce": (3, 13),
    "fetch": (4, 18),
    "list_offsets": (1, 11),
    "metadata": (0, 13),
    "api_versions": (0, 4),
    "create_topics": (2, 7),
    "delete_topics": (1, 6),
    "delete_records": (0, 2),
    "init_producer_id": (0, 5),  # 6 needs a feature that is off by default
    "offset_for_leader_epoch": (2, 4),
    "add_partitions_to_txn": (0, 5),
    "add_offsets_to_txn": (0, 4),
    "end_txn": (0, 5),
    "write_txn_markers": (1, 2),
    "describe_configs": (1, 4),
    "alter_configs": (0, 2),
    "alter_replica_log_dirs": (1, 2),
    "describe_log_dirs": (1, 5),
    "create_partitions": (0, 3),
    "incremental_alter_configs": (0, 1),
    "txn_offset_commit": (0, 6),
    "offset_delete": (0, 0),
    "describe_client_quotas": (0, 1),
    "alter_client_quotas": (0, 1),
    "offset_commit": (2, 10),
    "offset_fetch": (1, 10),
    "find_coordinator": (0, 6),
    "join_group": (0, 9),
    "heartbeat": (0, 4),
    "leave_group": (0, 5),
    "sync_group": (0, 5),
    "describe_groups": (0, 6),
    "list_groups": (0, 5),
    "delete_groups": (0, 3),
    "sasl_handshake": (0, 1),
    "describe_acls": (1, 3),
    "create_acls": (1, 3),
    "delete_acls": (1, 3),
    "sasl_authenticate": (0, 2),
    "create_delegation_token": (1, 3),
    "renew_delegation_token": (1, 2),
    "expire_delegation_token": (1, 2),
    "describe_delegation_token": (1, 3),
    "describe_user_scram_credentials": (0, 0),
    "alter_user_scram_credentials": (0, 0),
    "describe_quorum": (0, 2),
    "unregister_broker": (0, 0),
    "elect_leaders": (0, 2),
    "alter_partition_reassignments": (0, 1),
    "list_partition_reassignments": (0, 0),
    "update_features": (0, 2),
    "describe_cluster": (0, 2),
    "describe_producers": (0, 0),
    "describe_transactions": (0, 0),
    "list_transactions": (0, 2),
    "consumer_group_heartbeat": (0, 1),
    "consumer_group_describe": (0, 1),
    "list_config_resources": (0, 1),
    "describe_topic_partitions": (0, 0),
}


def peer_of(scenario: Scenario, version: int) -> str | None:
    """Which Kafka judges this version; None when none of them serves it."""
    old, new = KAFKA_39.get(scenario.api, (0, -1)), KAFKA_44.get(scenario.api, (0, -1))
    if SUBJECT == "4.4.0" and not new[0] <= version <= new[1]:
        return None
    if old[0] <= version <= old[1] and scenario.peer != "4.4.0":
        return "3.9.1"
    return "4.4.0" if new[0] <= version <= new[1] and scenario.peer != "3.9.1" else None


def cases() -> list[Any]:
    """(scenario, version, peer) for all that can be compared."""
    found = []
    for scenario in load_all():
        oldest, newest = versions_of(scenario.api)
        first, last = max(oldest, scenario.min_version), min(newest, scenario.max_version)
        for version in range(first, last + 1):
            peer = peer_of(scenario, version)
            if peer is not None and peer != SUBJECT:
                name = f"{scenario.name}-v{version}"
                found.append(pytest.param(scenario, version, peer, id=name))
    return found


def transcript_of(
    broker: KafkaPeer | Minibroker, scenario: Scenario, version: int
) -> dict[str, Any]:
    """Run the scenario; every leaf of every answer by its path."""
    talk = Dialogue(
        broker.host, broker.port, scenario=scenario.name, api=scenario.api, version=version
    )
    try:
        scenario.talk(talk)
    finally:
        talk.close()
    return flatten(talk.transcript)


@pytest.fixture(scope="session")
def subject(request: pytest.FixtureRequest) -> KafkaPeer | Minibroker:
    """minibroker, or the Kafka that stands in for it."""
    name = "kafka_44" if SUBJECT == "4.4.0" else "minibroker"
    broker: KafkaPeer | Minibroker = request.getfixturevalue(name)
    return broker


@pytest.mark.parametrize(("scenario", "version", "peer"), cases())
def test_answers_are_equal(
    scenario: Scenario,
    version: int,
    peer: str,
    subject: KafkaPeer | Minibroker,
    request: pytest.FixtureRequest,
) -> None:
    kafka = request.getfixturevalue("kafka_39" if peer == "3.9.1" else "kafka_44")
    right = transcript_of(kafka, scenario, version)
    ours = transcript_of(subject, scenario, version)
    different = {
        path: (right.get(path, "absent"), ours.get(path, "absent"))
        for path in [*right, *(path for path in ours if path not in right)]
        if right.get(path, "absent") != ours.get(path, "absent")
    }
    known = differences_of(scenario.name, version, peer)
    unknown = [
        f"{path}: Kafka {peer} {theirs!r}, {SUBJECT} {mine!r}"
        for path, (theirs, mine) in different.items()
        if not any(line.covers(path) for line in known)
    ]
    gone = [line for line in known if not any(line.covers(path) for path in different)]
    assert not unknown, "\n  ".join(["differs from Kafka:", *unknown[:60]])
    assert not gone, f"known differences that are gone: {gone}"


def test_every_handler_has_scenarios() -> None:
    compared = {scenario.api for scenario in load_all()}
    assert sorted(set(HANDLERS.values()) - compared) == []


def test_known_differences_name_scenarios() -> None:
    names = {scenario.name for scenario in load_all()}
    strangers = [line for line in KNOWN_DIFFERENCES if line.scenario not in names]
    assert not strangers
    assert all(line.reason for line in KNOWN_DIFFERENCES)
