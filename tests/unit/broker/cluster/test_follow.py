"""Following a tree that others change, without a server: two clusters on one embedded tree.

The embedded home says that it is shared here, so that everything is watched as in ZooKeeper.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster import announcements, paths
from minibroker.broker.cluster.auto_creation import CREATED_AT_ONCE
from minibroker.broker.cluster.cluster import Cluster
from minibroker.broker.cluster.codecs import (
    PartitionState,
    encode_broker,
    encode_cluster_id,
    encode_config,
    encode_state,
    encode_topic,
)
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.image import NO_LEADER, BrokerInfo, Endpoint
from minibroker.broker.cluster.internal_topics import NewTopic
from minibroker.broker.cluster.tree import Create, Delete, SessionEvent
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import TopicPartition
from tests.support.cluster import Recorder, add_topic_of_kafka, stop_following
from tests.support.evidence import MARKED
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.cluster.tree import Cancel, Operation, Stat

WAIT_S = 180


Pair = tuple[Cluster, "Watcher", Cluster, "Watcher"]


class SharedTree(EmbeddedTree):
    """An embedded tree with the manners of ZooKeeper: watched, may be away, sessions may end."""

    is_shared = True

    def __init__(self, path: Path) -> None:
        super().__init__(path, SystemClock())
        self.users = 0
        self.is_away = False
        self.session_callbacks: list[Callable[[SessionEvent], None]] = []

    async def open(self) -> None:
        self.users += 1
        if self.users == 1:
            await super().open()

    async def close(self) -> None:
        self.users -= 1
        if self.users == 0:
            await super().close()

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        self.session_callbacks.append(callback)

    def tell(self, event: SessionEvent) -> None:
        """Report a session event to everybody."""
        for callback in self.session_callbacks:
            callback(event)

    async def children(self, path: str) -> list[str]:
        self.check_reachable()
        return await super().children(path)

    async def exists(self, path: str) -> Stat | None:
        self.check_reachable()
        return await super().exists(path)

    def check_reachable(self) -> None:
        """Raise while it is away."""
        if self.is_away:
            raise CoordinationError("away")


class Watcher(Recorder):
    """A recorder that one can wait on."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Event()

    def __getattribute__(self, name: str) -> object:
        if name.startswith("on_"):
            super().__getattribute__("changed").set()
        return super().__getattribute__(name)

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Return when the condition is true; it is tried after every call."""
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await self.changed.wait()
                self.changed.clear()


@pytest.fixture
def shared(tmp_path: Path) -> SharedTree:
    """The tree of both clusters."""
    return SharedTree(tmp_path / "metadata.db")


async def started(shared: SharedTree, broker_id: int) -> tuple[Cluster, Watcher]:
    heard = Watcher()
    cluster = Cluster(
        broker_id=broker_id,
        tree=shared,
        clock=SystemClock(),
        endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id)],
    )
    cluster.subscribe(heard)
    await cluster.start()
    return cluster, heard


@pytest.fixture
async def pair(shared: SharedTree) -> AsyncIterator[Pair]:
    """Broker 1, the controller, and broker 2."""
    first, first_heard = await started(shared, 1)
    second, second_heard = await started(shared, 2)

    def delete(_broker_id: int, topic: TopicImage) -> asyncio.Future[bool]:
        second._updater.begin_deletion(topic, MARKED)  # as a request of the controller does
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        done.set_result(True)
        return done

    first.have_brokers_delete(delete)
    yield first, first_heard, second, second_heard
    await second.close()
    await first.close()


async def test_brokers_see_each_other_come_and_go(shared: SharedTree) -> None:
    second, _ = await started(shared, 2)
    first, heard = await started(shared, 1)
    assert set(first.image.brokers) == {1, 2}
    await add_topic_of_kafka(first, shared, "t", [1, 2])
    await second.close()
    await heard.wait_until(lambda: first.image.topics["t"].partitions[0].offline == [2])
    assert set(first.image.brokers) == {1}
    second, _ = await started(shared, 2)
    await heard.wait_until(lambda: first.image.topics["t"].partitions[0].offline == [])
    await second.close()
    await first.close()


async def test_listeners_advertised_later_arrive_at_the_other(pair: Pair) -> None:
    first, _, second, _ = pair
    later = Endpoint("PLAINTEXT", "kafka.example", 19092)
    await first.advertise([later])
    assert first.image.brokers[1].endpoints == (later,)
    async with asyncio.timeout(WAIT_S):
        while second.image.brokers[1].endpoints != (later,):  # noqa: ASYNC110  nobody is told
            await asyncio.sleep(0)


@pytest.mark.parametrize("event", [SessionEvent.RESUMED, None])
async def test_listeners_that_changed_while_the_tree_was_away_are_advertised_when_it_is_back(
    pair: Pair, event: SessionEvent | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection may have stayed, and the answer was late."""
    first, _, second, _ = pair
    later = Endpoint("PLAINTEXT", "kafka.example", 19092)

    async def refuse(*_: object) -> int:
        raise CoordinationError("away")

    with monkeypatch.context() as away:
        away.setattr(second.tree, "set", refuse)
        with pytest.raises(CoordinationError):
            await second.advertise([later])
    if event is not None:
        second._follower._on_session(event)
    await eventually(lambda: first.image.brokers[2].endpoints == (later,))
    await eventually(lambda: second.image.brokers[2].endpoints == (later,))


async def test_topic_made_by_the_other_is_led_by_the_controller(pair: Pair) -> None:
    first, _, second, heard = pair
    topic = await second.create_topic("t", assignment={0: [2]}, configs={"a": "b"})
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (2, [2])
    assert first.config_of("topics", "t") == {"a": "b"}
    grown = await second.topics.add_partitions("t", 2, [[1]])
    assert [partition.leader for partition in grown.partitions] == [2, 1]
    await second.delete_topic("t")
    assert first.image.topics == second.image.topics == {}
    assert [event[0] for event in heard.take()][-1] == "deleted"


async def test_topics_begun_beside_the_controller_get_their_leaders_from_it(pair: Pair) -> None:
    first, first_heard, second, heard = pair
    names = [f"t{number}" for number in range(CREATED_AT_ONCE + 10)]
    second.auto_creation.begin({name: NewTopic(2, 1, {"retention.ms": "1"}) for name in names})

    def have_leaders(cluster: Cluster) -> bool:
        topics = [cluster.image.topics.get(name) for name in names]
        return all(
            topic is not None and all(partition.leader in (1, 2) for partition in topic.partitions)
            for topic in topics
        )

    await heard.wait_until(lambda: have_leaders(second))
    await first_heard.wait_until(lambda: have_leaders(first))
    assert first.config_of("topics", names[-1]) == {"retention.ms": "1"}


async def test_a_leader_that_goes_is_replaced_by_a_replica_in_sync(
    pair: Pair, shared: SharedTree
) -> None:
    first, heard, second, _ = pair
    await add_topic_of_kafka(first, shared, "in sync", [2, 1])
    await add_topic_of_kafka(first, shared, "behind", [2, 1], isr=[2])
    topics = first.image.topics
    await second.close()
    await heard.wait_until(
        lambda: all(topic.partitions[0].leader != 2 for topic in topics.values())
    )
    (in_sync,), (behind,) = topics["in sync"].partitions, topics["behind"].partitions
    assert (in_sync.leader, in_sync.leader_epoch, in_sync.isr) == (1, 1, [1])
    assert (behind.leader, behind.leader_epoch, behind.isr) == (NO_LEADER, 1, [2])


async def test_a_broker_that_goes_and_comes_back_between_two_looks_is_noticed(
    pair: Pair, shared: SharedTree
) -> None:
    """The registration looks as before, but its epoch is another one (KIP-380)."""
    first, heard, second, _ = pair
    await first.create_topic("t", assignment={0: [2]})
    await first.create_topic("own", assignment={0: [1]})
    data, stat = await shared.get(paths.broker(2))
    async with first._context.lock:  # broker 1 looks when both are done
        await shared.delete(paths.broker(2))
        await shared.create(paths.broker(2), data)
    await heard.wait_until(lambda: first.image.topics["t"].partitions[0].leader_epoch == 2)
    led = first.image.topics["t"].partitions[0]
    assert (led.leader, led.isr) == (2, [2])
    assert ("leadership", "t", 0) in heard.take()
    assert first.image.topics["own"].partitions[0].leader_epoch == 0
    assert first.image.brokers[2].epoch > stat.czxid
    assert second.image.controller_id == 1


async def test_a_bounce_that_the_tree_interrupted_is_not_forgotten(
    pair: Pair, shared: SharedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, heard, _, _ = pair
    await first.create_topic("t", assignment={0: [2]})
    data, _ = await shared.get(paths.broker(2))
    multi = shared.multi
    refusals = [CoordinationError("away")]

    async def once_away(operations: Sequence[Operation]) -> list[str | int]:
        if refusals and any(
            operation.path == paths.partition_state("t", 0) for operation in operations
        ):
            raise refusals.pop()
        return await multi(operations)

    async with first._context.lock:
        await shared.delete(paths.broker(2))
        await shared.create(paths.broker(2), data)
        monkeypatch.setattr(shared, "multi", once_away)
    await heard.wait_until(lambda: first.image.topics["t"].partitions[0].leader_epoch == 2)
    assert not refusals
    assert first.image.topics["t"].partitions[0].leader == 2


async def test_second_takes_over_from_a_controller_that_goes(pair: Pair) -> None:
    first, _, second, heard = pair
    await first.create_topic("t", assignment={0: [1]})
    await heard.wait_until(lambda: "t" in second.image.topics)
    await first.close()
    await heard.wait_until(lambda: second.image.topics["t"].partitions[0].leader == NO_LEADER)
    assert second.is_controller
    assert second.image.controller_epoch == 2


async def test_the_controller_stays_when_a_broker_of_kafka_comes(
    pair: Pair, shared: SharedTree
) -> None:
    first, heard, second, _ = pair
    kafka = BrokerInfo(7, (Endpoint("PLAINTEXT", "127.0.0.1", 9007),))
    await shared.create(paths.broker(7), encode_broker(kafka, 0))
    async with asyncio.timeout(WAIT_S):
        while 7 not in first.image.brokers:  # noqa: ASYNC110  nobody is told
            await asyncio.sleep(0)
    assert first.is_controller
    await second.create_topic("t", assignment={0: [7, 1]})
    await heard.wait_until(lambda: "t" in first.image.topics)
    assert first.image.topics["t"].partitions[0].leader == 7


async def test_replicas_of_a_broker_that_was_started_again_are_online(
    pair: Pair, shared: SharedTree
) -> None:
    """Its log directory failed before."""
    first, heard, _, _ = pair
    kafka = BrokerInfo(7, (Endpoint("PLAINTEXT", "127.0.0.1", 9007),))
    await shared.create(paths.broker(7), encode_broker(kafka, 0))
    async with asyncio.timeout(WAIT_S):
        while 7 not in first.image.brokers:  # noqa: ASYNC110  nobody is told
            await asyncio.sleep(0)
        await first.create_topic("t", assignment={0: [7]})
        await first.leadership.replicas_failed([TopicPartition("t", 0)], broker_id=7)
        assert first.image.topics["t"].partitions[0].leader == NO_LEADER
        await shared.delete(paths.broker(7))
        await shared.create(paths.broker(7), encode_broker(kafka, 0))
    await heard.wait_until(lambda: first.image.topics["t"].partitions[0].leader == 7)


async def test_configs_changed_by_others_arrive(pair: Pair, shared: SharedTree) -> None:
    first, heard, second, _ = pair
    await second.alter_config("users", "u/clients/c", {"producer_byte_rate": "1"})
    await heard.wait_until(lambda: bool(first.config_of("users", "u/clients/c")))
    # As old tools write it: the node, then a notification of version 1; and a broken one before.
    await shared.create("/config/clients/old", encode_config({"x": "y"}))
    await shared.create("/config/changes/config_change_", b"nonsense", sequence=True)
    notification = b'{"version":1,"entity_type":"clients","entity_name":"old"}'
    await shared.create("/config/changes/config_change_", notification, sequence=True)
    await heard.wait_until(lambda: first.config_of("clients", "old") == {"x": "y"})


async def test_a_topic_that_is_made_while_a_broker_starts_has_its_config(
    shared: SharedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The config of a new topic is not announced. That broker would go by its own settings."""
    first, _ = await started(shared, 1)
    await stop_following(first)
    children = shared.children
    missing = ["t"]

    async def children_after_a_new_topic(path: str) -> list[str]:
        if path == paths.ADMIN_DELETE_TOPICS and missing:  # the last look before the topics
            await first.create_topic(missing.pop(), assignment={0: [1]}, configs={"a": "b"})
        return await children(path)

    monkeypatch.setattr(shared, "children", children_after_a_new_topic)
    second, _ = await started(shared, 2)
    assert second.image.topics.keys() == {"t"}
    assert second.config_of("topics", "t") == {"a": "b"}
    await second.close()
    await first.close()


async def test_old_notifications_are_removed(
    pair: Pair, shared: SharedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, heard, second, _ = pair
    await second.alter_config("clients", "a", {"x": "1"})
    await heard.wait_until(lambda: bool(first.config_of("clients", "a")))
    monkeypatch.setattr(announcements, "EXPIRATION_MS", -1)
    await second.alter_config("clients", "b", {"x": "1"})
    await heard.wait_until(lambda: bool(first.config_of("clients", "b")))
    async with first._context.lock:
        names = await shared.children("/config/changes")
    assert "config_change_0000000000" not in names


async def test_topic_made_again_by_others_is_another_topic(pair: Pair, shared: SharedTree) -> None:
    """Deleted and created between two looks: the id tells; its config is read again."""
    first, heard, _, _ = pair
    old = await first.create_topic("t", configs={"a": "old"})
    new_id = new_topic_id()
    async with first._context.lock:  # nobody looks meanwhile
        await shared.set("/config/topics/t", encode_config({"a": "new"}))
        await shared.set("/brokers/topics/t", encode_topic(new_id, [[1]]))
    await heard.wait_until(lambda: new_id in first.image.topic_by_id)
    assert old.topic_id not in first.image.topic_by_id
    assert first.config_of("topics", "t") == {"a": "new"}


async def remove_by_hand(tree: SharedTree, name: str) -> list[Create]:
    """Delete a topic's nodes as a user does; return what makes them again."""
    paths_below = await tree.subtree(paths.topic(name))
    operations = [Create(path, (await tree.get(path))[0]) for path in paths_below]
    await tree.multi([Delete(path) for path in reversed(paths_below)])
    return operations


async def test_a_topic_that_is_missing_in_the_tree_is_not_served_and_not_deleted(
    pair: Pair, shared: SharedTree
) -> None:
    first, heard, second, others = pair
    topic = await first.create_topic("t")
    await others.wait_until(lambda: "t" in second.image.topics)
    heard.take()
    nodes = await remove_by_hand(shared, "t")
    await heard.wait_until(lambda: "t" not in first.image.topics)
    await others.wait_until(lambda: "t" not in second.image.topics)
    for recorder in (heard, others):
        assert ("missing", "t") in recorder.events
        assert "deleted" not in [event[0] for event in recorder.events]
    heard.take()
    await shared.multi(nodes)
    await heard.wait_until(lambda: topic.topic_id in first.image.topic_by_id)
    assert ("created", "t", 1) in heard.take()


async def test_renewed_session_registers_and_reads_again(shared: SharedTree) -> None:
    """The ephemeral nodes are gone; after the news they are there again."""
    cluster, _ = await started(shared, 1)
    await cluster.create_topic("t")
    shared.tell(SessionEvent.SUSPENDED)
    shared.is_away = True
    shared.tell(SessionEvent.EXPIRED)
    assert not cluster.is_controller
    assert cluster.image.controller_id == -1
    await shared.delete("/brokers/ids/1")
    await shared.delete("/controller")
    elected = asyncio.Event()
    await shared.watch("/controller", elected.set)
    shared.tell(SessionEvent.RENEWED)
    await asyncio.sleep(0)  # a first try fails: still away
    shared.is_away = False
    async with asyncio.timeout(WAIT_S):
        await elected.wait()
    assert json.loads((await shared.get("/controller"))[0])["brokerid"] == 1
    assert await shared.exists("/brokers/ids/1") is not None
    assert (await cluster.create_topic("after")).partitions[0].controller_epoch == 2
    await cluster.close()


@pytest.mark.parametrize("state", [None, "anotherClusterAnotherId"])
async def test_a_new_session_with_the_tree_of_another_cluster_stops_the_broker(
    shared: SharedTree, state: str | None
) -> None:
    """ZooKeeper came back empty, say. Nothing is read from that tree, or written to it."""
    reasons: list[str] = []
    cluster, heard = await started(shared, 1)
    cluster.when_tree_is_foreign(reasons.append)
    await cluster.create_topic("t")
    ours = cluster.image.cluster_id
    heard.take()
    shared.tell(SessionEvent.EXPIRED)
    async with cluster._context.lock:
        for path in ("/brokers/ids/1", "/controller", *reversed(await shared.subtree("/cluster"))):
            await shared.delete(path)
        await remove_by_hand(shared, "t")
        if state is not None:
            await shared.create("/cluster/id", encode_cluster_id(state), make_parents=True)
        other = encode_broker(BrokerInfo(1, ()), 0)
        await shared.create("/brokers/ids/1", other)
    shared.tell(SessionEvent.RENEWED)
    await eventually(lambda: reasons)
    assert ours in reasons[0]
    assert (state or "has no cluster id") in reasons[0]
    assert not cluster.is_controller
    assert await shared.exists("/controller") is None
    assert "t" in cluster.image.topics
    assert heard.take() == []
    await shared.open()
    await cluster.close()
    assert (await shared.get("/brokers/ids/1"))[0] == other
    await shared.close()


async def test_a_request_that_waited_while_the_session_ended_writes_nothing(
    shared: SharedTree,
) -> None:
    """The broker is not the controller any more, and nobody else is yet."""
    cluster, _ = await started(shared, 1)
    await cluster.create_topic("t")
    await stop_following(cluster)  # it would run for controller again
    _, node = await shared.get("/brokers/topics/t")
    _, state = await shared.get("/brokers/topics/t/partitions/0/state")
    async with cluster._context.lock:
        request = asyncio.create_task(cluster.reassignments.alter("t", 0, [1]))
        await eventually(lambda: cluster._context.lock._waiters)
        shared.tell(SessionEvent.EXPIRED)
    with pytest.raises(KafkaError) as caught:
        await request
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    for path, stat in (("", node), ("/partitions/0/state", state)):
        _, new_stat = await shared.get(f"/brokers/topics/t{path}")
        assert (new_stat.version, new_stat.czxid) == (stat.version, stat.czxid)
    await cluster.close()


class FaultyListener(Recorder):
    """A listener that fails at topics."""

    def on_topic_created(self, topic: TopicImage) -> None:
        raise RuntimeError(f"cannot take {topic.name}")


async def test_fault_of_a_listener_is_logged_and_the_rest_followed(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    first, _, second, heard = pair
    second.subscribe(FaultyListener())
    await first.create_topic("t")
    await first.alter_config("clients", "a", {"x": "1"})
    await heard.wait_until(lambda: bool(second.config_of("clients", "a")))
    assert "cannot take t" in caplog.text


async def test_a_read_that_a_bug_broke_off_is_repeated(
    pair: Pair, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, second, heard = pair
    refresh = second._configs.refresh
    failures = [RuntimeError("a bug")]

    async def refresh_at_the_second_try(entity_type: str, entity_name: str) -> None:
        if failures:
            raise failures.pop()
        await refresh(entity_type, entity_name)

    monkeypatch.setattr(second._configs, "refresh", refresh_at_the_second_try)
    await first.alter_config("clients", "a", {"x": "1"})
    await heard.wait_until(lambda: bool(second.config_of("clients", "a")))
    assert "could not refresh config changes; trying again" in caplog.text


async def test_topic_that_could_not_be_watched_at_first_is_followed_all_the_same(
    shared: SharedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool makes a topic; the tree refuses one watch on it, the second one that is set."""
    first, heard = await started(shared, 1)
    state_path = paths.partition_state("t", 0)
    watch = shared.watch
    refusals = [CoordinationError("away")]

    async def once_away(path: str, callback: Callable[[], None]) -> Cancel:
        if path == state_path and refusals:
            raise refusals.pop()
        return await watch(path, callback)

    monkeypatch.setattr(shared, "watch", once_away)
    await shared.create(paths.topic("t"), encode_topic(new_topic_id(), [[1]]))

    def epoch() -> int:
        """Return the leader epoch of the partition, -1 before it has a leader."""
        topic = first.image.topics.get("t")
        has_leader = topic is not None and topic.partitions[0].leader == 1
        return topic.partitions[0].leader_epoch if topic is not None and has_leader else -1

    await heard.wait_until(lambda: epoch() == 0)
    assert not refusals
    await shared.set(state_path, encode_state(PartitionState(1, 7, [1], 1)))
    await heard.wait_until(lambda: epoch() == 7)
    await first.close()


async def test_a_wide_topic_is_watched_and_read_in_a_few_round_trips(
    shared: SharedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the cluster's lock, where nobody else can go on."""
    first, heard = await started(shared, 1)
    round_trips = []
    watch = shared.watch

    async def counted_watch(path: str, callback: Callable[[], None]) -> Cancel:
        round_trips.append("watch")
        return await watch(path, callback)

    async def counted_many(callbacks: Mapping[str, Callable[[], None]]) -> list[Cancel]:
        round_trips.append("watch_many")
        return [await watch(path, callback) for path, callback in callbacks.items()]

    monkeypatch.setattr(shared, "watch", counted_watch)
    monkeypatch.setattr(shared, "watch_many", counted_many, raising=False)
    await shared.create(paths.topic("t"), encode_topic(new_topic_id(), [[1]] * 300))
    await heard.wait_until(
        lambda: (
            (topic := first.image.topics.get("t")) is not None
            and all(partition.leader == 1 for partition in topic.partitions)
        )
    )
    await shared.set(paths.partition_state("t", 299), encode_state(PartitionState(1, 7, [1], 1)))
    await heard.wait_until(lambda: first.image.topics["t"].partitions[299].leader_epoch == 7)
    assert 2 <= len(round_trips) < 300 / 10
    await first.close()


async def test_state_written_by_a_leader_does_not_hold_up_the_controller(
    pair: Pair, shared: SharedTree
) -> None:
    """The controller hears at once that a broker went and that its image is out of date."""
    first, heard, _, _ = pair
    await first.create_topic("t", assignment={0: [2]})
    state_path = paths.partition_state("t", 0)
    async with asyncio.timeout(WAIT_S):
        while state_path not in first._follower._watches.get("t", ()):  # noqa: ASYNC110  nobody is told
            await asyncio.sleep(0)
    await shared.set(state_path, encode_state(PartitionState(2, 7, [2], 1)))
    await shared.delete(paths.broker(2))
    await heard.wait_until(lambda: first.image.topics["t"].partitions[0].leader == NO_LEADER)
    assert first.image.topics["t"].partitions[0].leader_epoch == 8


async def away(_operations: object) -> list[str | int]:
    """Stand for `multi` of a tree that is out of reach."""
    raise CoordinationError("away")


async def test_a_failed_directory_is_told_when_the_tree_is_back(
    shared: SharedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, heard = await started(shared, 1)
    await cluster.create_topic("t")
    with monkeypatch.context() as patched:
        patched.setattr(shared, "multi", away)
        with pytest.raises(CoordinationError):
            await cluster.leadership.replicas_failed([TopicPartition("t", 0)])
        assert cluster.image.topics["t"].partitions[0].offline == [1]
        assert cluster.image.topics["t"].partitions[0].leader == 1
    shared.tell(SessionEvent.RESUMED)
    await heard.wait_until(lambda: cluster.image.topics["t"].partitions[0].leader == -1)
    state = json.loads((await shared.get("/brokers/topics/t/partitions/0/state"))[0])
    assert state["leader"] == -1
    await cluster.close()


async def test_a_deletion_goes_on_when_the_tree_is_back(
    shared: SharedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, heard = await started(shared, 1)
    await cluster.create_topic("t")
    async with cluster._context.lock:  # before the watch of the mark is heard
        await shared.create("/admin/delete_topics/t")
        with monkeypatch.context() as patched:
            patched.setattr(shared, "multi", away)
            with pytest.raises(CoordinationError):
                await cluster._deletions.begin("t")
        assert "t" in cluster.image.topics
    shared.tell(SessionEvent.RESUMED)
    await heard.wait_until(lambda: "t" not in cluster.image.topics)
    async with asyncio.timeout(WAIT_S):
        while await shared.exists("/admin/delete_topics/t"):  # noqa: ASYNC110  nobody is told
            await asyncio.sleep(0)
    await cluster.close()
