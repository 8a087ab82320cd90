"""Apache Kafka's command line tools for clusters, against three minibrokers.

kafka-topics, kafka-leader-election, kafka-reassign-partitions, kafka-configs and DumpLogSegments
run in one JVM, kafka-replica-verification in its own: it runs until it is ended.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.compat_cluster.playing import make_internal_topics
from tests.compat_cluster.scene import Scene
from tests.compat_cluster.three_brokers import IDS, three_minibrokers
from tests.compat_cluster.tree import WAIT_S, ClusterTree
from tests.compat_cluster.verification import verify_replicas
from tests.support import java
from tests.support.kafka_tools import tool_session
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.kafka_tools import Outcome
    from tests.support.peers import ZooKeeper

    Tool = Callable[..., Outcome]

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOOLS = "org.apache.kafka.tools"


@pytest.fixture
def on(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Scene]:
    """Yield a scene on three minibrokers."""
    connect = f"{zookeeper.connect}/tools"
    with ClusterTree(connect) as tree:
        brokers = three_minibrokers(tmp_path, connect, tree)
        try:
            brokers.start_all()
            make_internal_topics(brokers)
            scene = Scene("tools", brokers)
            yield scene
            scene.close()
        finally:
            brokers.kill_all()


def output_of(outcome: Outcome) -> str:
    """Return the output of a command that succeeded."""
    assert outcome.failure is None, f"{outcome.text}{outcome.failure}"
    return outcome.text


def test_kafkas_tools_find_move_and_elect(on: Scene, tmp_path: Path) -> None:
    topic = on.topic([1, 0, 2])
    only = on.topic([1], name="only")
    strict = on.topic([1, 2], name="strict", min_insync_replicas="2")
    on.produce("before", topic, "a", "b", at=1)
    on.brokers.kill(1)
    on.until(topic, 0, [0, 2])
    on.until(only, -1, [1])
    on.until(strict, 2, [2])
    bootstrap = ("--bootstrap-server", "{}:{}".format(*on.brokers.address(0)))
    topics = (f"{TOOLS}.TopicCommand", *bootstrap, "--describe")
    with tool_session(java.KAFKA_39) as run:
        behind = output_of(run(*topics, "--under-replicated-partitions"))
        assert f"Topic: {topic}\tPartition: 0\tLeader: 0\tReplicas: 1,0,2" in behind
        assert f"Topic: {strict}\tPartition: 0\tLeader: 2\tReplicas: 1,2\tIsr: 2" in behind
        unavailable = output_of(run(*topics, "--unavailable-partitions"))
        assert f"Topic: {only}\tPartition: 0\tLeader: none\tReplicas: 1\tIsr: 1" in unavailable
        assert topic not in unavailable
        few = output_of(run(*topics, "--under-min-isr-partitions"))
        assert strict in few
        assert topic not in few

        on.brokers.start(1)
        on.until(topic, 0, [0, 1, 2])
        on.until(strict, 2, [1, 2])
        on.until("__consumer_offsets", 0, [0, 1, 2])
        on.until("__transaction_state", 0, [0, 1, 2])
        wait_until(
            lambda: "Topic:" not in output_of(run(*topics, "--under-replicated-partitions")),
            "broker 0 knows that all replicas are in sync",
            WAIT_S,
        )
        elections = (f"{TOOLS}.LeaderElectionCommand", *bootstrap, "--election-type", "preferred")
        elected = output_of(run(*elections, "--topic", topic, "--partition", "0"))
        assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in (
            elected
        )
        on.until(topic, 1, [0, 1, 2])

        _move(run, on, topic, bootstrap, tmp_path / "plan.json")
        _configure(run, topic, bootstrap)
        on.produce("after", topic, "c", at=2)
        on.logs("moved", topic, on=[0, 2])
        dumped = {
            output_of(run("kafka.tools.DumpLogSegments", *_files(on, broker_id, topic)))
            for broker_id in (0, 2)
        }
        assert len({text.split("\n", 1)[1] for text in dumped}) == 1, dumped
        assert "payload: c" in dumped.pop()
    verify_replicas(on.brokers.bootstrap, topic, 1, tmp_path / "verification.log")


def _files(on: Scene, n: int, topic: str) -> tuple[str, ...]:
    segments = sorted((on.brokers.log_dir(n) / f"{topic}-0").glob("*.log"))
    return ("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, segments)))


def _move(run: Tool, on: Scene, topic: str, bootstrap: tuple[str, ...], plan: Path) -> None:
    """Move the topic with a throttle, which goes when the move is over."""
    partition = {"topic": topic, "partition": 0, "replicas": [2, 0]}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    moves = (f"{TOOLS}.reassign.ReassignPartitionsCommand", *bootstrap)
    options = ("--reassignment-json-file", str(plan))
    first_lines = output_of(run(*moves, "--execute", *options, "--throttle", "1000000"))
    assert f"Successfully started partition reassignment for {topic}-0" in first_lines
    on.until_moved(topic)
    on.until(topic, 2, [0, 2])
    verified = output_of(run(*moves, "--verify", *options))
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert "Clearing broker-level throttles on brokers 0,1,2" in verified
    for broker_id in IDS:
        node = on.tree.value(f"/config/brokers/{broker_id}") or {"config": {}}
        assert not [key for key in node["config"] if "throttled" in key], node


def _configure(run: Tool, topic: str, bootstrap: tuple[str, ...]) -> None:
    """Set and read a setting of the topic, and one of a broker.

    The tool may ask a broker that has not followed the tree yet.
    """
    configs = ("kafka.admin.ConfigCommand", *bootstrap)
    for kind, name, setting in (
        ("topics", topic, "retention.ms=86400001"),
        ("brokers", "2", "log.cleaner.threads=2"),
    ):
        entity = ("--entity-type", kind, "--entity-name", name)
        output_of(run(*configs, "--alter", *entity, "--add-config", setting))
        describe = (*configs, "--describe", *entity)
        wait_until(lambda: setting in output_of(run(*describe)), f"{setting} is shown", WAIT_S)  # noqa: B023
