"""Groups of real clients under the consumer protocol (KIP-848), and migration while they read.

Members are processes: one is killed, one is added, protocols are changed, and some member reads
every record. Only records that a killed member had not committed are read twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.dialogue import Dialogue
from tests.compat.scenarios.consumer_group_migration import consumer_group_heartbeat_upgrade
from tests.compat.scenarios.consumer_groups import consumer_group_heartbeat_regex
from tests.support.groups import read_by, stop_all
from tests.support.java import TOOLS_43, run_java
from tests.support.read_group import COUNT, PARTITIONS, QUICK, Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.broker import Minibroker

CLIENTS = ["confluent", pytest.param("java", marks=pytest.mark.java)]


@pytest.fixture
def session_ms() -> int:
    """Return the session time-out of the group's members, as by default; a test may override it.

    A short one ends where the machine is busy, and then records are read twice.
    """
    return 45_000


@pytest.fixture
def group(
    new_broker: Callable[..., Minibroker], tmp_path: Path, session_ms: int
) -> Iterator[Group]:
    settings = {**QUICK, "group.consumer.session.timeout.ms": str(session_ms)}
    new_group = Group(new_broker(settings=settings), tmp_path)
    yield new_group
    stop_all(new_group.members.values())


@pytest.mark.parametrize("session_ms", [5000])
@pytest.mark.parametrize("client", CLIENTS)
def test_three_members_one_killed_one_added(group: Group, client: str) -> None:
    for name in ("a", "b", "c"):
        group.start(client, name, "consumer")
    group.settle("a", "b", "c")
    group.write()
    group.wait_for_all("a")
    assert group.type() == "consumer"
    group.members["b"].kill()
    group.write()
    group.settle("a", "c")
    group.wait_for_all("a")
    group.start(client, "d", "consumer")
    group.settle("a", "c", "d")
    group.write()
    group.wait_for_all("a")
    group.members["a"].leave()
    group.settle("c", "d")
    group.write()
    group.wait_for_all("c")
    repeated = len(read_by(group.members.values())) - len(group.written)
    assert repeated <= COUNT, "more than the killed member can have had uncommitted"


@pytest.mark.parametrize("client", CLIENTS)
def test_group_migrates_to_the_consumer_protocol_and_back(group: Group, client: str) -> None:
    """Members are replaced one by one, first by the new protocol, then by the old one.

    A record is read once: the next member comes when all is committed.
    """
    group.start(client, "old-1", "classic")
    group.start(client, "old-2", "classic")
    group.settle("old-1", "old-2")
    group.write()
    group.wait_for_all_commits("old-1")
    assert group.type() == "classic"
    group.start(client, "new-1", "consumer")
    group.settle("old-1", "old-2", "new-1")
    assert group.type() == "consumer"
    group.write()
    group.wait_for_all_commits("new-1")
    group.members["old-1"].leave()
    group.members["old-2"].leave()
    group.start(client, "new-2", "consumer")
    group.settle("new-1", "new-2")
    group.write()
    group.wait_for_all_commits("new-1")
    group.start(client, "back", "classic")
    group.settle("new-1", "new-2", "back")
    group.members["new-1"].leave()
    group.members["new-2"].leave()
    group.settle("back")
    assert group.type() == "classic"
    group.write()
    group.wait_for_all_commits("back")
    assert sorted(read_by(group.members.values())) == sorted(group.written)


def test_pattern_finds_topics_that_come_later(group: Group) -> None:
    member = group.start("confluent", "a", "consumer", topic="/read-by-.*")
    member.wait_until(lambda: len(member.has) == PARTITIONS, "the topic that is there")
    admin = AdminClient({"bootstrap.servers": group.broker.address})
    admin.create_topics([NewTopic("read-by-others", 2, 1)])["read-by-others"].result(180)
    member.wait_until(lambda: len(member.has) == PARTITIONS + 2, "the topic that came")


def test_group_goes_on_after_a_restart(group: Group) -> None:
    """The broker is killed: its members keep their epochs and partitions, and read on.

    A client tries to connect less often the longer the broker is away, and must not lose its
    session meanwhile.
    """
    group.start("confluent", "a", "consumer")
    group.start("confluent", "b", "consumer")
    group.settle("a", "b")
    group.write()
    group.wait_for_all("a")
    old_shares = [group.members[name].assignments for name in ("a", "b")]
    group.broker.kill()
    group.broker.start()
    group.write()
    group.wait_for_all("a")
    assert old_shares == [group.members[name].assignments for name in ("a", "b")]


@pytest.mark.java
def test_kafkas_dump_log_segments_reads_the_records(new_broker: Callable[..., Minibroker]) -> None:
    """The tool that comes with Kafka 4 knows every record, and finds no member it cannot read."""
    broker = new_broker(settings={**QUICK, "offsets.topic.num.partitions": "1"})
    for scenario in (consumer_group_heartbeat_upgrade, consumer_group_heartbeat_regex):
        talk = Dialogue(
            broker.host,
            broker.port,
            scenario=scenario.__name__,
            api="consumer_group_heartbeat",
            version=1,
        )
        scenario(talk)
        talk.close()
    broker.stop()
    segment = broker.data_dir / "__consumer_offsets-0" / "00000000000000000000.log"
    output = run_java(
        TOOLS_43,
        "org.apache.kafka.tools.DumpLogSegments",
        "--offsets-decoder",
        "--print-data-log",
        "--files",
        str(segment),
    )
    kinds = {int(kind) for kind in re.findall(r'key: \{"type":"(\d+)"', output)}
    assert kinds == {2, 3, 4, 5, 6, 7, 8, 16}
    assert "Error" not in output
    assert "Could not" not in output
    members = re.findall(r'"type":"5".*payload: (\{.*)', output)
    new = [member for member in members if '"clientId":"wire"' in member and "range" not in member]
    assert all('"classicMemberMetadata":null' in member for member in new)
    assert any('"supportedProtocols":[{"name":"range"' in member for member in members)
