"""`wait_for_group`, `wait_until_read`, `consumer_ready`: the request that each waits for."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from confluent_kafka import Producer

from minibroker.kafka.errors import KafkaError
from minibroker.testing import Broker, Cluster
from tests.support.waiting import wait_until
from tests.unit.rig.group_actors import (
    commit,
    connect,
    coordinator_of,
    fetch,
    join,
    new_member_id,
    receive_join,
    send_join,
    sync,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.testing import GroupMember
    from tests.support.wire import Answer, WireClient


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(topics=["t:2"]) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


def lack(broker: Broker, group: str = "g", members: int | None = None) -> str:
    """Return what `wait_for_group` says there is, at once."""
    with pytest.raises(TimeoutError) as caught:
        broker.wait_for_group(group, members, timeout_s=0)
    return str(caught.value)


def ready(broker: Broker, group: str = "g", members: int | None = None) -> list[GroupMember]:
    return broker.wait_for_group(group, members, timeout_s=0)


def remainder(broker: Broker, *, fetched: bool = False) -> str:
    with pytest.raises(TimeoutError) as caught:
        broker.wait_until_read("g", fetched=fetched, timeout_s=0)
    return str(caught.value)


def lone_member(client: WireClient, group: str = "g") -> Answer:
    """Join as the only member, with both partitions of the topic."""
    joined = join(client, group, "t")
    sync(client, group, joined, {joined["member_id"]: {"t": [0, 1]}})
    return joined


def moved_member(client: WireClient, fetched: dict[int, int] | None = None) -> int:
    """Join as the only member, and get a second share; return the id of a fetch session that began
    before.
    """
    joined = lone_member(client)
    session: int = fetch(client, "t", fetched or {}, session_epoch=0)["session_id"]
    again = receive_join(client, send_join(client, "g", ["t"], joined["member_id"]))
    sync(client, "g", again, {joined["member_id"]: {"t": [0, 1]}})
    return session


# A group.


def test_a_group_that_does_not_exist_is_said_with_those_that_do(broker: Broker) -> None:
    assert lack(broker) == ("waited 0 s until group 'g' is ready: there is no such group")
    with connect(broker) as client:
        lone_member(client, "other")
        assert lack(broker, members=2) == (
            "waited 0 s until group 'g' is ready with 2 members: there is no such group; "
            "there are 'other' (Stable)"
        )


def test_a_member_is_ready_with_the_first_fetch_of_each_partition(broker: Broker) -> None:
    broker.produce("t", "old", partition=0)
    with connect(broker) as client:
        joined = join(client, "g", "t")
        assert "CompletingRebalance with 1 member" in lack(broker)
        sync(client, "g", joined, {joined["member_id"]: {"t": [0, 1]}})
        member = f"{joined['member_id']} (client 'wire' at /127.0.0.1)"
        assert lack(broker).endswith(f"{member} has t-0, not fetched yet, t-1, not fetched yet")
        fetch(client, "t", {0: 1})
        assert lack(broker).endswith(f"{member} has t-0 at 1, t-1, not fetched yet")
        fetch(client, "t", {1: 0})
        assert [view.partitions for view in ready(broker)] == [(("t", 0), ("t", 1))]
        assert "ready with 2 members: it is Stable with 1 member" in lack(broker, members=2)


def test_a_fetch_behind_the_end_of_the_log_is_no_position(broker: Broker) -> None:
    with connect(broker) as client:
        lone_member(client)
        fetch(client, "t", {0: 0, 1: 7})
        assert "t-0 at 0, t-1, not fetched yet" in lack(broker)


def test_a_fetch_before_the_share_or_of_another_client_does_not_count(broker: Broker) -> None:
    with connect(broker) as client, connect(broker, "other") as other:
        fetch(client, "t", {0: 0, 1: 0})
        lone_member(client)
        fetch(other, "t", {0: 0, 1: 0})
        assert "t-0, not fetched yet, t-1, not fetched yet" in lack(broker)


def test_a_fetch_of_a_session_counts_for_each_of_its_partitions(broker: Broker) -> None:
    with connect(broker) as client:
        session = fetch(client, "t", {0: 0, 1: 0}, session_epoch=0)["session_id"]
        joined = lone_member(client)
        assert "not fetched yet" in lack(broker)
        answer = fetch(client, "t", {}, session_id=session, session_epoch=1)
        assert answer["error_code"] == 0
        assert ready(broker)[0].member_id == joined["member_id"]
        forgotten = [{"topic": "t", "partitions": [1]}]
        fetch(client, "t", {}, session_id=session, session_epoch=2, forgotten_topics_data=forgotten)
        assert "t-0 at 0, t-1, not fetched yet" in lack(broker)


def test_a_partition_that_joins_the_session_late_is_fetched_twice_too(broker: Broker) -> None:
    """Java looks up its positions one after the other, and names a partition once."""
    with connect(broker) as client:
        session = moved_member(client)
        fetch(client, "t", {0: 0}, session_id=session, session_epoch=1)
        fetch(client, "t", {}, session_id=session, session_epoch=2)
        assert "t-0 at 0, t-1, not fetched yet" in lack(broker)
        fetch(client, "t", {1: 0}, session_id=session, session_epoch=3)
        assert "t-0 at 0, t-1, not fetched yet" in lack(broker)
        fetch(client, "t", {}, session_id=session, session_epoch=4)
        assert ready(broker)


def test_a_fetch_that_names_partitions_of_its_session_counts_once(broker: Broker) -> None:
    with connect(broker) as client:
        session = moved_member(client, {0: 0, 1: 0})
        fetch(client, "t", {0: 0, 1: 0}, session_id=session, session_epoch=1)
        assert "t-0, not fetched yet, t-1, not fetched yet" in lack(broker)
        fetch(client, "t", {}, session_id=session, session_epoch=2)
        assert ready(broker)


def test_a_closed_connection_reads_no_more(broker: Broker) -> None:
    with connect(broker) as member:
        lone_member(member)
        with connect(broker) as reader:
            fetch(reader, "t", {0: 0, 1: 0})
            assert ready(broker)
        assert "not fetched yet" in lack(broker)


def test_each_rebalance_asks_for_positions_again(broker: Broker) -> None:
    with connect(broker) as first, connect(broker, "second") as second:
        joined = lone_member(first)
        fetch(first, "t", {0: 0, 1: 0})
        assert ready(broker, members=1)
        new_id = new_member_id(second, "g", "t")
        new_join = second, send_join(second, "g", ["t"], new_id)
        rejoined = receive_join(first, send_join(first, "g", ["t"], joined["member_id"]))
        other = receive_join(*new_join)
        shares = {joined["member_id"]: {"t": [0]}, other["member_id"]: {"t": [1]}}
        sync(first, "g", rejoined, shares)
        assert f"{new_id} (client 'second' at /127.0.0.1) has not asked" in lack(broker)
        sync(second, "g", other, {})
        fetch(second, "t", {1: 0})
        assert "has t-0, not fetched yet" in lack(broker)
        fetch(first, "t", {0: 0})
        assert "has t-0, not fetched yet" in lack(broker)  # it had another share before
        fetch(first, "t", {0: 0})
        assert {view.client_id: view.partitions for view in ready(broker, members=2)} == {
            "wire": (("t", 0),),
            "second": (("t", 1),),
        }


def test_a_partition_without_a_member_and_a_topic_that_is_missing_are_said(broker: Broker) -> None:
    with connect(broker) as client:
        joined = join(client, "g", "t", "missing")
        sync(client, "g", joined, {joined["member_id"]: {"t": [0]}})
        fetch(client, "t", {0: 0})
        assert lack(broker).endswith("has t-0 at 0; no member has t-1; there is no topic missing")


def test_two_groups_of_one_client_need_two_connections(broker: Broker) -> None:
    with connect(broker) as first, connect(broker) as second:
        lone_member(first, "g")
        lone_member(second, "h")
        fetch(first, "t", {0: 0, 1: 0})
        assert "which 1 member of other groups with this client.id and address" in lack(broker)
        fetch(second, "t", {0: 0, 1: 0})
        assert ready(broker, "g")
        assert ready(broker, "h")


def test_a_member_whose_connection_is_closed_is_no_other_reader(broker: Broker) -> None:
    with connect(broker) as first:
        lone_member(first, "g")
        with connect(broker) as second:
            lone_member(second, "h")
            fetch(first, "t", {0: 0, 1: 0})
            assert "1 member of other groups" in lack(broker)
        assert "t-0, not fetched yet" in lack(broker)
        fetch(first, "t", {0: 0, 1: 0})
        assert ready(broker, "g")
        assert broker.groups["h"] == "Stable"


def test_a_reader_that_stops_is_not_taken_for_another_member(broker: Broker) -> None:
    with connect(broker) as stopping, connect(broker) as member, connect(broker) as reader:
        other = lone_member(stopping, "h")
        lone_member(member, "g")
        fetch(reader, "t", {0: 0, 1: 0})
        stopping.call("leave_group", 1, group_id="h", member_id=other["member_id"])
        assert "t-0, not fetched yet" in lack(broker)
        fetch(member, "t", {0: 0, 1: 0})
        assert ready(broker, "g")


def test_a_member_of_the_consumer_protocol_is_ready_likewise(broker: Broker) -> None:
    with connect(broker) as client:
        coordinator_of(client, "g")
        answer = client.call(
            "consumer_group_heartbeat",
            1,
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        assert answer["error_code"] == 0
        if answer["assignment"] is None or not answer["assignment"]["topic_partitions"]:
            answer = client.call(
                "consumer_group_heartbeat",
                1,
                group_id="g",
                member_id="m",
                member_epoch=answer["member_epoch"],
            )
        assert "m (client 'wire' at /127.0.0.1) has t-0, not fetched yet" in lack(broker)
        fetch(client, "t", {0: 0, 1: 0})
        assert ready(broker, members=1)[0].member_id == "m"


async def test_a_wait_ends_with_the_request_that_it_is_for(broker: Broker) -> None:
    waiting = asyncio.ensure_future(broker.wait_for_group_async("g", 1, timeout_s=60))
    with connect(broker) as client:
        await asyncio.to_thread(lone_member, client)
        assert not waiting.done()
        await asyncio.to_thread(fetch, client, "t", {0: 0, 1: 0})
        (member,) = await waiting
        reading = asyncio.ensure_future(broker.wait_until_read_async("g", timeout_s=60))
        assert await reading == {("t", 0): 0, ("t", 1): 0}
    assert member.client_id == "wire"


def test_arguments_that_no_group_fits_are_refused(broker: Broker) -> None:
    with pytest.raises(ValueError, match="members=0: a group that is ready has one member"):
        broker.wait_for_group("g", 0)
    with pytest.raises(KafkaError, match="the group id is empty"):
        broker.wait_for_group("")


def test_members_with_a_protocol_of_their_own_need_only_their_shares(broker: Broker) -> None:
    with connect(broker) as client:
        coordinator_of(client, "connect")
        protocols = [{"name": "default", "metadata": b"workers"}]
        fields = {
            "group_id": "connect",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "connect",
            "protocols": protocols,
        }
        member_id = client.call("join_group", 5, member_id="", **fields)["member_id"]
        joined = client.call("join_group", 5, member_id=member_id, **fields)
        assert "CompletingRebalance" in lack(broker, "connect")
        sync(client, "connect", joined, {})
        assert ready(broker, "connect")[0].partitions == ()


# Everything is read.


def test_a_group_has_read_all_once_it_committed_the_end(broker: Broker) -> None:
    broker.produce("t", "old", partition=0)
    with connect(broker) as client:
        joined = lone_member(client)
        assert "t-0 ends at 1, nothing is committed; it is Stable" in remainder(broker)
        fetch(client, "t", {0: 1, 1: 0})
        # `auto.offset.reset=latest`: the record before its first Fetch is none of its.
        assert broker.wait_until_read("g", timeout_s=0) == {("t", 0): 1, ("t", 1): 0}
        broker.produce("t", ["a", "b"], partition=1)
        fetch(client, "t", {0: 1, 1: 2})
        assert "t-1 ends at 2, committed up to 0" in remainder(broker)
        assert broker.wait_until_read("g", fetched=True, timeout_s=0)["t", 1] == 2
        commit(client, "g", joined, "t", {1: 1})
        assert "t-1 ends at 2, committed up to 1" in remainder(broker)
        commit(client, "g", joined, "t", {1: 2})
        assert broker.wait_until_read("g", timeout_s=0) == {("t", 0): 1, ("t", 1): 2}
        broker.produce("t", "c", partition=0)
        assert "t-0 ends at 2, fetched up to 1" in remainder(broker, fetched=True)


def test_without_members_the_committed_offsets_count(broker: Broker) -> None:
    broker.produce("t", ["a", "b"], partition=0)
    nobody = {"generation_id": -1, "member_id": ""}
    with connect(broker) as client:
        coordinator_of(client, "g")
        commit(client, "g", nobody, "t", {0: 1})
        assert remainder(broker).endswith(
            "t-0 ends at 2, committed up to 1; it is Empty with 0 members"
        )
        commit(client, "g", nobody, "t", {0: 2})
        assert broker.wait_until_read("g", timeout_s=0) == {("t", 0): 2}


# A consumer without a group.


def test_a_consumer_without_a_group_is_ready_with_its_fetches(broker: Broker) -> None:
    with connect(broker) as client:
        fetch(client, "t", {1: 0})
        assert broker.consumer_ready("t", partitions=[1], timeout_s=0) == {("t", 1): 0}
        with pytest.raises(TimeoutError) as caught:
            broker.consumer_ready("t", timeout_s=0)
    assert str(caught.value) == (
        "waited 0 s until a consumer reads topic 't': "
        "t-0 is read by nobody, t-1 is read by 'wire' at /127.0.0.1"
    )
    with connect(broker, "mine") as client:
        fetch(client, "t", {0: 0, 1: 0})
        offsets = broker.consumer_ready("t", client_id="mine", timeout_s=0)
        assert offsets == {("t", 0): 0, ("t", 1): 0}
        with pytest.raises(TimeoutError, match="a consumer 'yours' reads t-0: t-0 is read by 'mi"):
            broker.consumer_ready("t", partitions=[0], client_id="yours", timeout_s=0)
    with pytest.raises(TimeoutError, match="there is no such topic"):
        broker.consumer_ready("missing", timeout_s=0)


# Several brokers.


def test_a_group_of_a_cluster_reads_from_several_brokers() -> None:
    with Cluster(2, topics=["t:2:1"]) as cluster:
        leaders = {index: cluster.broker(cluster.leader("t", index)) for index in (0, 1)}
        assert len({leader.broker_id for leader in leaders.values()}) == 2
        with connect(cluster.broker(0)) as client:
            coordinator = coordinator_of(client, "g")
        with connect(cluster.broker(coordinator)) as member:
            joined = join(member, "g", "t")
            sync(member, "g", joined, {joined["member_id"]: {"t": [0, 1]}})
            readers = {index: connect(leader) for index, leader in leaders.items()}
            fetch(readers[0], "t", {0: 0})
            with pytest.raises(TimeoutError, match="t-0 at 0, t-1, not fetched yet"):
                cluster.wait_for_group("g", timeout_s=0)
            fetch(readers[1], "t", {1: 0})
            assert cluster.wait_for_group("g", timeout_s=0)
            assert leaders[0].wait_until_read("g", timeout_s=0) == {("t", 0): 0, ("t", 1): 0}
            assert set(cluster.consumer_ready("t", timeout_s=0)) == {("t", 0), ("t", 1)}
            for reader in readers.values():
                reader.close()


def test_a_record_that_replicas_lack_is_not_read() -> None:
    """Readers do not see it yet, and a new leader may not know yet that they do."""
    settings = {"offsets.topic.replication.factor": "1"}
    with Cluster(2, topics=["t"], config=settings) as cluster, ThreadPoolExecutor(1) as pool:
        with connect(cluster.broker(0)) as client:
            coordinator = coordinator_of(client, "g")
        cluster.make_leader(coordinator, "t")
        leader = cluster.broker(coordinator)
        with cluster.pause(1 - coordinator, may_miss=True):
            producer = Producer({"bootstrap.servers": leader.bootstrap, "acks": 1})
            producer.produce("t", b"v")
            assert producer.flush(60) == 0
            with connect(leader) as client:
                nobody = {"generation_id": -1, "member_id": ""}
                commit(client, "g", nobody, "t", {0: 0})
                with pytest.raises(TimeoutError) as caught:
                    cluster.wait_until_read("g", timeout_s=0)
                commit(client, "g", nobody, "t", {0: 1})
            expected = "t-0 ends at 1 (readers see 0: replicas in sync lack the rest), committed up"
            assert expected in str(caught.value)
            reading = pool.submit(cluster.wait_until_read, "g", timeout_s=60)
            fetching = cluster.node(0).fetching
            wait_until(lambda: bool(fetching._waiting) or reading.done(), "it waits")
            assert not reading.done()
        assert reading.result(60) == {("t", 0): 1}


def test_markers_and_aborted_records_are_no_records_to_read(broker: Broker) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "x", "log_level": 0}
    )
    producer.init_transactions(60)
    with connect(broker) as client:
        joined = lone_member(client)
        fetch(client, "t", {0: 0, 1: 0})
        for end in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            producer.produce("t", b"v", partition=0)
            producer.flush(60)
            end(60)
        assert "t-0 ends at 4, committed up to 0" in remainder(broker)
        commit(client, "g", joined, "t", {0: 1})
        assert broker.wait_until_read("g", timeout_s=0)["t", 0] == 1
        committed = broker.records("t", isolation="read_committed")
        assert [record.offset for record in committed] == [0]


async def test_offsets_of_a_transaction_count_once_it_is_committed(broker: Broker) -> None:
    broker.produce("t", "v", partition=0)
    waiting = asyncio.ensure_future(broker.wait_until_read_async("g", timeout_s=60))
    async with AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap, transactional_id="y"
    ) as producer:
        async with producer.transaction():
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
            assert not waiting.done()
        assert await waiting == {("t", 0): 1}
