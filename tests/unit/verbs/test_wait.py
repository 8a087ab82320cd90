"""`minibroker wait`: what it waits for, and what it says when the time is over."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from minibroker.client.member import MemberSession
from minibroker.client.settings import client_settings
from minibroker.testing import Broker
from minibroker.verbs import waiting
from minibroker.verbs.connecting import ClusterOptions, reader_of
from tests.unit.verbs.conftest import Program

if TYPE_CHECKING:
    from collections.abc import Callable


def missing(*conditions: Callable[[], str | None]) -> list[str]:
    """Wait until conditions hold; return what was missing meanwhile, each sentence once."""
    lines: list[str] = []
    waiting.wait_for(conditions, 60, lines.append)
    return list(dict.fromkeys(lines))


def test_a_broker_that_starts_is_waited_for() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refused = Program(f"127.0.0.1:{port}").run("wait", "--timeout", "50ms")
    assert refused.code == 1
    assert "after 0.05 s no broker answers" in refused.errors
    assert "Connection refused" in refused.errors
    started = threading.Event()
    client = waiting.impatient(reader_of(ClusterOptions(f"127.0.0.1:{port}")), 60)
    brokers: list[Broker] = []

    def begin(_: str) -> None:
        if not started.is_set():
            started.set()
            brokers.append(Broker(config={"listeners": f"PLAINTEXT://127.0.0.1:{port}"}))
            brokers[0].start()

    waiting.wait_for([waiting.broker_answers(client)], 60, begin)
    assert started.is_set()
    brokers[0].stop()


def test_a_topic_is_waited_for(program: Program, broker: Broker) -> None:
    ran = program.run("wait", "--topic", "later:2", "-t", "1ms")
    assert (ran.code, ran.out) == (1, b"")
    assert "after 0.001 s there is no topic later" in ran.errors
    broker.create_topic("later", partitions=1)
    ran = program.run("wait", "--topic", "later:2", "-t", "1ms")
    assert "topic later has 1 partitions, expected 2" in ran.errors
    assert program.run("wait", "--topic", "later").code == 0


def test_a_group_is_waited_for(program: Program, broker: Broker) -> None:
    broker.create_topic("read", partitions=2)
    broker.produce("read", [b"x"] * 3, partition=0)
    ran = program.run("wait", "--group", "readers", "-t", "1ms")
    assert "there is no group readers" in ran.errors
    ran = program.run("wait", "--group", "readers", "--lag", "0", "-t", "1ms")
    assert "there is no group readers" in ran.errors
    settings = client_settings({"bootstrap.servers": program.bootstrap, "client.id": "c"})
    member = MemberSession(settings, "readers", ["read"])
    partitions = member.join()
    assert program.run("wait", "--group", "readers").code == 0
    ran = program.run("wait", "--group", "readers", "--members", "2", "-t", "1ms")
    assert "group readers is Stable with 1 of 2 members: c (2 partitions)" in ran.errors
    ran = program.run("wait", "--group", "readers", "--lag", "0", "-t", "1ms")
    assert "is 0 records behind: read-0 nothing committed" in ran.errors
    member.commit(dict.fromkeys(partitions, 0) | {partitions[0]: 1})
    ran = program.run("wait", "--group", "readers", "--lag", "1", "-t", "1ms")
    assert "group readers (Stable) is 2 records behind: read-0 2" in ran.errors
    assert program.run("wait", "--group", "readers", "--lag", "2").code == 0
    member.commit({partitions[0]: 3})
    assert program.run("wait", "--group", "readers", "--lag", "0", "--members", "1").code == 0
    member.leave()


def test_a_refused_login_is_not_waited_for() -> None:
    with Broker(security="SASL_PLAINTEXT", users={"alice": "right"}) as broker:
        program = Program(broker.bootstrap)
        ran = program.run("wait", "--user", "alice:wrong")
        assert (ran.code, "credentials" in ran.errors) == (1, True)
        assert program.run("wait", "--user", "alice:right").code == 0


@pytest.mark.parametrize("words", [("--members", "2"), ("--lag", "0"), ("--topic", "t:0")])
def test_wrong_usage(program: Program, words: tuple[str, ...]) -> None:
    assert program.run("wait", *words).code == 2
