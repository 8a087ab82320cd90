"""Commits that a group refuses, as users of Kafka's own client see them: CommitFailedException.

In one case the consumer was too slow (`max.poll.interval.ms`) or paused longer than its session,
and the group went on without it. In the other a consumer with assign() commits into a group that
has members.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from tests.support.groups import JAVA_CLIENTS, GroupMember, java_options
from tests.support.java import compiled, java_command
from tests.support.read_group import QUICK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from minibroker.testing import Broker

PARTITIONS = 2
SETTINGS = {
    **QUICK,
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}
REFUSED = "CommitFailedException"

pytestmark = pytest.mark.kafka(topics=[f"t:{PARTITIONS}"], config=SETTINGS)


@pytest.fixture
def start(kafka_broker: Broker, tmp_path: Path) -> Iterator[Callable[..., GroupMember]]:
    """Yield a function that starts CommitFailed.java with a client's version and a protocol."""
    started: list[GroupMember] = []

    def start(client: str, *protocols: str) -> GroupMember:
        command = java_command(
            JAVA_CLIENTS[client],
            "CommitFailed",
            *(kafka_broker.bootstrap, "t", str(tmp_path), *protocols),
            options=java_options(),
            classes=compiled("CommitFailed"),
        )
        started.append(GroupMember(command, tmp_path / "client.log"))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def take_over(broker: Broker, stopped: GroupMember, protocol: str) -> None:
    """Let another member of the group get all partitions while `stopped` is paused."""
    other = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"paused-{protocol}",
            "group.protocol": protocol,
            "enable.auto.commit": False,
        }
    )
    stopped.process.popen.send_signal(signal.SIGSTOP)
    try:
        other.subscribe(["t"])
        while len(other.assignment()) < PARTITIONS:
            other.poll(0.1)
        (stopped.process.log_path.parent / protocol).touch()  # now it may commit
        stopped.process.popen.send_signal(signal.SIGCONT)
        stopped.wait_until(lambda: "paused" in outcomes(stopped, protocol), "the commit")
    finally:
        stopped.process.popen.send_signal(signal.SIGCONT)
        other.close()


def outcomes(member: GroupMember, protocol: str) -> dict[str, str]:
    """Return step → committed or the exception; empty for a step without one."""
    return {step: outcome for step, outcome, *_ in ([*line, ""] for line in member.lines(protocol))}


@pytest.mark.java
@pytest.mark.parametrize(
    ("client", "protocols"), [("java-3.9.1", ["classic"]), ("java-4.4.0", ["classic", "consumer"])]
)
def test_java_gets_commit_failed_exception(
    kafka_broker: Broker,
    start: Callable[..., GroupMember],
    caplog: pytest.LogCaptureFixture,
    client: str,
    protocols: list[str],
) -> None:
    member = start(client, *protocols)
    for protocol in protocols:
        member.wait_until(
            lambda protocol=protocol: "stop-me" in outcomes(member, protocol), "a paused member"
        )
        take_over(kafka_broker, member, protocol)
        assert outcomes(member, protocol) == {
            "late": REFUSED,
            "stranger": REFUSED,
            "again": "committed",
            "alone": "committed",
            "stop-me": "",
            "paused": REFUSED,
        }
    warnings = [line for line in caplog.messages if "by-hand" in line]
    assert len(warnings) == len(protocols)
    assert all("assign()" in line for line in warnings)
