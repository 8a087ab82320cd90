"""`minibroker groups`, and `consume --group`, which makes them."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from minibroker.client.group_details import GroupDetails
from minibroker.client.member import MemberSession
from minibroker.client.settings import client_settings
from minibroker.verbs import waiting
from minibroker.verbs.connecting import ClusterOptions, reader_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.testing import Broker
    from tests.unit.verbs.conftest import Program


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    broker.create_topic("orders", partitions=2)
    for partition in (0, 1):
        broker.produce("orders", [b"%d" % number for number in range(5)], partition=partition)
    return "orders"


@pytest.fixture
def member(program: Program, topic: str) -> Iterator[MemberSession]:
    """Return a member of the group live that has both partitions."""
    settings = {"bootstrap.servers": program.bootstrap, "client.id": "tester"}
    session = MemberSession(client_settings(settings), "live", [topic])
    session.join()
    yield session
    session.leave()


def test_a_group_goes_on_where_it_ended(program: Program, broker: Broker, topic: str) -> None:
    first = program.run("consume", topic, "--group", "reader", "-n", "4")
    rest = program.run("consume", topic, "--group", "reader")
    assert sorted(first.lines + rest.lines) == sorted("0123401234")
    assert program.run("consume", topic, "--group", "reader").lines == []
    assert broker.committed("reader") == {(topic, 0): 5, (topic, 1): 5}
    assert broker.members("reader") == []
    broker.create_topic("silent")
    program.run("consume", "silent", "--group", "silent")
    assert broker.committed("silent") == {("silent", 0): 0}, "it has read everything"
    late = program.run("consume", topic, "--group", "late", "--from", "-1")
    assert late.lines == ["4", "4"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_group_has_read_as_many_records_as_were_shown(
    program: Program, broker: Broker, count: int
) -> None:
    """Several batches come in one answer; those behind the last shown record stay unread."""
    name = f"counted{count}"
    broker.create_topic(name)
    for start in (0, 2, 4):
        broker.produce(name, [b"%d" % number for number in range(start, start + 2)])
    words = ("consume", name, "--group", name)
    assert program.run(*words, "-n", str(count)).lines == [str(n) for n in range(count)]
    assert broker.committed(name) == {(name, 0): count}
    assert program.run(*words).lines == [str(n) for n in range(count, 6)]


def test_groups_are_listed_and_described(
    program: Program, topic: str, member: MemberSession
) -> None:
    program.run("consume", topic, "--group", "reader", "-n", "4", "--from", "beginning")
    rows = {row["name"]: row for row in json.loads(program.run("groups", "--json").out)}
    assert (rows["reader"]["state"], rows["reader"]["members"]) == ("Empty", 0)
    assert (rows["live"]["state"], rows["live"]["members"]) == ("Stable", 1)
    text = "\n".join(program.run("groups", "live").lines)
    assert text.startswith("live: Stable, 1 member, protocol classic, assigned by range")
    assert "tester" in text
    assert "orders: 0,1" in text
    view = json.loads(program.run("groups", "live", "--json").out)
    assert view["stable"] is True
    assert [part["lag"] for part in view["partitions"]] == [None, None], "nothing is committed"


def test_a_reset_is_shown_and_done(program: Program, broker: Broker, topic: str) -> None:
    program.run("consume", topic, "--group", "moved")
    answer = program.run("groups", "moved", "--reset-to", "-2", "--dry-run")
    assert [line.split() for line in answer.lines[2:4]] == [
        [topic, "0", "5", "3"],
        [topic, "1", "5", "3"],
    ]
    assert "nothing is committed" in answer.lines[-1]
    assert set(broker.committed("moved").values()) == {5}
    moves = json.loads(program.run("groups", "moved", "--reset-to", "1", "--json").out)
    assert [move["after"] for move in moves] == [1, 1]
    assert set(broker.committed("moved").values()) == {1}
    assert sorted(program.run("consume", topic, "--group", "moved").lines) == sorted("12341234")
    program.run("groups", "fresh", "--reset-to", "beginning", "--topic", topic)
    assert broker.committed("fresh") == {(topic, 0): 0, (topic, 1): 0}
    assert program.run("groups", "fresh", "--delete").lines == ["fresh is deleted"]
    assert "fresh" not in broker.groups


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("nobody",), 1, "there is no group nobody"),
        (("nobody", "--delete"), 1, "there is no group nobody"),
        (("nobody", "--reset-to", "end"), 1, "name the topic that it is to read (--topic)"),
        (("live", "--reset-to", "end", "--topic", "orders"), 1, "group live has members: stop"),
        (("live", "--delete"), 1, "group live has members: stop them before (tester"),
        (("--delete",), 2, "--delete needs the name of a group"),
        (("g", "--dry-run"), 2, "--dry-run is for --reset-to"),
        (("g", "--reset-to", "soon"), 2, "--reset-to 'soon': expected beginning"),
    ],
)
def test_a_refusal_is_one_sentence(
    program: Program, member: MemberSession, words: tuple[str, ...], code: int, sentence: str
) -> None:
    ran = program.run("groups", *words)
    assert (ran.code, sentence in ran.errors) == (code, True), ran.errors


def test_a_signal_commits_and_leaves(program: Program, broker: Broker, topic: str) -> None:
    """The members share the partitions while both run; the one that ends gives them up at once."""
    process = program.start("consume", topic, "--group", "signalled", "--follow")
    assert process.stdout is not None
    for _ in range(10):
        process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    process.communicate()
    assert broker.committed("signalled") == {(topic, 0): 5, (topic, 1): 5}
    assert broker.members("signalled") == []


def test_a_group_of_the_new_protocol_is_described_and_takes_the_verb(
    program: Program, topic: str
) -> None:
    """One of KIP-848: `consume --group` is a classic member beside one of the new protocol."""
    from confluent_kafka import Consumer  # noqa: PLC0415  librdkafka, for this test alone

    consumer = Consumer(
        {
            "bootstrap.servers": program.bootstrap,
            "group.id": "modern",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    while consumer.poll(10) is None:
        pass
    view = json.loads(program.run("groups", "modern", "--json").out)
    assert (view["state"], view["protocol"], view["stable"]) == ("Stable", "consumer", True)
    assert view["members"][0]["partitions"] == [[topic, 0], [topic, 1]]

    process = program.start("consume", topic, "--group", "modern", "--follow")
    is_shared = waiting.group_is_stable(reader_of(ClusterOptions(program.bootstrap)), "modern", 2)
    while is_shared() is not None:
        consumer.poll(0.1)
    view = json.loads(program.run("groups", "modern", "--json").out)
    shares = {each["client_id"]: len(each["partitions"]) for each in view["members"]}
    assert shares == {"rdkafka": 1, "minibroker": 1}
    consumer.close()
    process.terminate()
    process.communicate(timeout=60)


def test_a_group_without_a_member_is_not_stable() -> None:
    assert not GroupDetails("g", "Empty", "classic", "", ()).is_stable
