"""Administration with real clients and Kafka's tools: credentials, leaders, moves, features, ACLs.

confluent-kafka has no quotas, and kafka-python neither: those are Java's (`test_quotas.py`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.support import java
from tests.support.kafka_tools import run_commands
from tests.support.peers import KafkaPeer
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from minibroker.testing import Broker
    from tests.support.broker import Minibroker
    from tests.support.peers import ZooKeeper

# kafka-python reads its schemas the old way while it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")

SECONDS = 180
TOOLS = "org.apache.kafka.tools"


@pytest.fixture
def confluent(kafka: Broker) -> AdminClient:
    """Return confluent-kafka's admin client (librdkafka)."""
    return AdminClient({"bootstrap.servers": kafka.bootstrap})


@pytest.fixture
def kafka_python(kafka: Broker) -> Iterator[Any]:
    """Yield kafka-python's admin client."""
    from kafka import KafkaAdminClient  # noqa: PLC0415  it warns while it is imported

    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    yield client
    client.close()


def test_confluent_kafka_sets_tells_and_removes_credentials(confluent: AdminClient) -> None:
    user = "confluent user"
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    change = UserScramCredentialUpsertion(user, info, b"secret", b"salt")
    confluent.alter_user_scram_credentials([change])[user].result(SECONDS)
    description = confluent.describe_user_scram_credentials([user])[user].result(SECONDS)
    (credential,) = description.scram_credential_infos
    assert (credential.mechanism, credential.iterations) == (ScramMechanism.SCRAM_SHA_512, 8192)
    away = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512)
    confluent.alter_user_scram_credentials([away])[user].result(SECONDS)
    with pytest.raises(KafkaException) as caught:
        confluent.describe_user_scram_credentials([user])[user].result(SECONDS)
    assert caught.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND


def test_confluent_kafka_is_told_that_no_election_is_needed(
    confluent: AdminClient, kafka_python: Any
) -> None:
    kafka_python.create_topics({"elected": {"num_partitions": 1, "replication_factor": 1}})
    partition = TopicPartition("elected", 0)
    future = confluent.elect_leaders(ElectionType.PREFERRED, [partition])
    error = future.result(SECONDS)[partition]
    assert error.code() == KafkaError.ELECTION_NOT_NEEDED


def test_confluent_kafka_is_told_that_there_is_no_authorizer(confluent: AdminClient) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    with pytest.raises(KafkaException) as refused:
        confluent.create_acls([binding])[binding].result(SECONDS)
    assert refused.value.args[0].code() == KafkaError.SECURITY_DISABLED


def test_kafka_python_reads_and_sets_features(kafka_python: Any) -> None:
    def transactions() -> dict[str, Any]:
        levels: dict[str, Any] = kafka_python.describe_features()["transaction.version"]
        return levels

    old_levels = transactions()
    assert old_levels["finalized"] == (2, 2)
    try:
        kafka_python.update_features({"transaction.version": ("SAFE_DOWNGRADE", 1)})
        lower = transactions()
        assert lower["finalized"] == (1, 1)
        assert lower["finalized_epoch"] == old_levels["finalized_epoch"] + 1
    finally:
        kafka_python.update_features({"transaction.version": 2})
    assert transactions()["finalized"] == (2, 2)


def test_kafka_python_lists_no_moves(kafka_python: Any) -> None:
    assert not kafka_python.list_partition_reassignments()


@pytest.mark.java
def test_kafkas_tools_move_elect_and_set_levels(minibroker: Minibroker, tmp_path: Path) -> None:
    topic = "moved-by-tools"
    with WireClient(minibroker.host, minibroker.port) as client:
        wish = {"name": topic, "num_partitions": 2, "replication_factor": 1}
        client.call("create_topics", 4, topics=[wish], timeout_ms=30_000)
    partitions = [{"topic": topic, "partition": index, "replicas": [0]} for index in range(2)]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    at = ("--bootstrap-server", minibroker.address)
    moves = (f"{TOOLS}.reassign.ReassignPartitionsCommand", *at)
    plan_options = ("--reassignment-json-file", str(plan))
    elections = (f"{TOOLS}.LeaderElectionCommand", *at, "--election-type", "preferred")
    features = (f"{TOOLS}.FeatureCommand", *at)
    elr = "eligible.leader.replicas.version"
    started, listing, verified, elected, lower, higher, enabled, described, off = run_commands(
        java.TOOLS_43,
        (*moves, "--execute", *plan_options, "--throttle", "1000000"),
        (*moves, "--list"),
        (*moves, "--verify", *plan_options),
        (*elections, "--topic", topic, "--partition", "0"),
        (*features, "downgrade", "--feature", "transaction.version=1"),
        (*features, "upgrade", "--feature", "transaction.version=2"),
        (*features, "upgrade", "--feature", f"{elr}=1"),
        (*features, "describe"),
        (*features, "disable", "--feature", elr),
    )
    outcomes = (started, listing, verified, elected, lower, higher, enabled, described, off)
    assert [outcome.failure for outcome in outcomes] == [None] * len(outcomes)
    assert "inter-broker throttle limit was set to 1000000 B/s" in started.text
    assert "Successfully started partition reassignments" in started.text
    assert "No partition reassignments found" in listing.text
    assert verified.text.count("is completed") == 2
    assert "Clearing broker-level throttles" in verified.text
    assert "Valid replica already elected" in elected.text
    assert "was downgraded to 1" in lower.text
    assert "was upgraded to 2" in higher.text
    assert re.search(r"transaction\.version .*FinalizedVersionLevel: 2", described.text)
    assert f"{elr} was upgraded to 1" in enabled.text
    assert re.search(
        rf"{re.escape(elr)} .*SupportedMaxVersion: 1 .*FinalizedVersionLevel: 1", described.text
    )
    # These tools are older than the newest level, and print the same of Kafka 4.4.0.
    assert re.search(r"metadata\.version .*FinalizedVersionLevel: UNKNOWN 33", described.text)
    assert f"{elr} was disabled" in off.text
    with WireClient(minibroker.host, minibroker.port) as client:
        # Other tests share this broker: what the feature wrote goes as well.
        change = {"name": "min.insync.replicas", "config_operation": 1, "value": None}
        resource = {"resource_type": 4, "resource_name": "", "configs": [change]}
        answer = client.call("incremental_alter_configs", 1, resources=[resource])
    assert answer["responses"][0]["error_code"] == 0


@pytest.mark.java
@pytest.mark.slow
def test_kafka_3_9_starts_where_levels_were_changed(
    zookeeper: ZooKeeper, new_broker: Callable[..., Minibroker], tmp_path: Path
) -> None:
    """Features in Kafka's own znode would end it: with ZooKeeper it has none."""
    connect = f"{zookeeper.connect}/levels"
    ours = new_broker(zookeeper=connect)
    with WireClient(ours.host, ours.port) as client:
        down = {"feature": "transaction.version", "max_version_level": 1, "upgrade_type": 2}
        answer = client.call("update_features", 1, timeout_ms=60_000, feature_updates=[down])
        assert answer["error_code"] == 0, answer
    ours.stop()
    kafka = KafkaPeer("3.9.1", tmp_path / "kafka", zookeeper=connect, settings={"broker.id": "1"})
    try:
        kafka.start()
    finally:
        kafka.kill()
