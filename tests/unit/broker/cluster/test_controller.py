"""Leader election: the pure rule, then what the controller writes."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.codecs import RECOVERING, PartitionState, encode_controller
from minibroker.broker.cluster.context import ClusterContext
from minibroker.broker.cluster.controller import (
    new_topic_id,
    next_state,
    preferred_state,
    shutdown_state,
    unclean_state,
)
from minibroker.broker.cluster.election import Election
from minibroker.broker.cluster.image import (
    NO_CONTROLLER,
    NO_LEADER,
    BrokerInfo,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from minibroker.broker.cluster.partition_states import PartitionStates
from minibroker.broker.cluster.paths import FEATURE
from minibroker.broker.cluster.tree import Create
from minibroker.broker.cluster.updates import ImageUpdater, replace_partition
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import TopicPartition, topic_id_to_text
from tests.support.cluster import Recorder, add_broker, add_topic_of_kafka, new_cluster
from tests.support.images import partition_image

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.tree import Operation, Tree


def partition(
    leader: int, isr: list[int], alive: set[int], *, epoch: int = 4, has_epoch: bool = True
) -> PartitionImage:
    """A partition with replicas 1, 2 and 3, of which those in `alive` are online."""
    replicas = [1, 2, 3]
    return partition_image(
        leader=leader,
        leader_epoch=epoch,
        replicas=replicas,
        isr=isr,
        offline=[replica for replica in replicas if replica not in alive],
        partition_epoch=0 if has_epoch else -1,
    )


@pytest.mark.parametrize(
    ("image", "after"),
    [
        # A new partition: the first live replica leads, and all of them are in sync.
        (partition(NO_LEADER, [], {1, 2, 3}, has_epoch=False), PartitionState(1, 0, [1, 2, 3], 9)),
        (partition(NO_LEADER, [], {3, 2}, has_epoch=False), PartitionState(2, 0, [2, 3], 9)),
        (partition(NO_LEADER, [], {5}, has_epoch=False), None),
        # Nothing to do.
        (partition(1, [1], {1, 2, 3}), None),
        (partition(2, [2], {2, 3}), None),
        (partition(1, [1, 2, 3], {1, 2, 3}), None),
        # A replica that is gone leaves the ISR.
        (partition(1, [1, 2, 3], {1, 3}), PartitionState(1, 5, [1, 3], 9)),
        # The leader is gone: the next of the assignment that is in sync leads.
        (partition(1, [3, 1, 2], {2, 3}), PartitionState(2, 5, [3, 2], 9)),
        (partition(1, [1, 3], {2, 3}), PartitionState(3, 5, [3], 9)),
        # Nobody in sync is left: no leader; the ISR remembers who may lead again.
        (partition(1, [1], {2, 3}), PartitionState(NO_LEADER, 5, [1], 9)),
        (partition(NO_LEADER, [1], {2, 3}), None),
        (partition(NO_LEADER, [1], {1, 2}), PartitionState(1, 5, [1], 9)),
        # All in sync are gone at once: the ISR is never empty.
        (partition(1, [1, 2], {3}), PartitionState(NO_LEADER, 5, [2], 9)),
    ],
)
def test_next_state(image: PartitionImage, after: PartitionState | None) -> None:
    assert next_state(image, 9) == after


@pytest.mark.parametrize(
    ("image", "after"),
    [
        # A replica in sync leads if there is one.
        (partition(1, [1, 2], {2, 3}), PartitionState(2, 5, [2], 9)),
        (partition(NO_LEADER, [2], {2, 3}), PartitionState(2, 5, [2], 9)),
        # Otherwise the first one that is alive, and it alone is in sync.
        (partition(1, [1], {3, 2}), PartitionState(2, 5, [2], 9, RECOVERING)),
        (partition(NO_LEADER, [1], {3}), PartitionState(3, 5, [3], 9, RECOVERING)),
        # Nobody is alive.
        (partition(1, [1], set()), PartitionState(NO_LEADER, 5, [1], 9)),
        (partition(NO_LEADER, [1], set()), None),
        (partition(1, [1, 2, 3], {1, 2, 3}), None),
    ],
)
def test_next_state_where_unclean_elections_are_allowed(
    image: PartitionImage, after: PartitionState | None
) -> None:
    assert next_state(image, 9, allows_unclean=True) == after


def test_a_recovering_leader_recovers_with_the_isr_that_it_writes() -> None:
    recovering = partition(2, [2], {1, 2})
    recovering.leader_recovery_state = RECOVERING
    recovering.isr = [2, 3]
    assert next_state(recovering, 9) == PartitionState(2, 5, [2], 9, RECOVERING)


@pytest.mark.parametrize(
    ("image", "after"),
    [
        # Broker 1 stops. It led: the next in sync leads, and it leaves the ISR.
        (partition(1, [1, 2, 3], {1, 2, 3}), PartitionState(2, 5, [2, 3], 9)),
        (partition(1, [3, 1], {1, 2, 3}), PartitionState(3, 5, [3], 9)),
        # Nobody else may lead: it stays as it is.
        (partition(1, [1], {1, 2, 3}), None),
        (partition(1, [1, 2], {1, 3}), None),
        # It followed: it leaves the ISR.
        (partition(2, [1, 2, 3], {1, 2, 3}), PartitionState(2, 5, [2, 3], 9)),
        (partition(2, [2, 3], {1, 2, 3}), None),
        (partition(NO_LEADER, [1], {1, 2}), None),
        (partition(NO_LEADER, [], {1}, has_epoch=False), None),
    ],
)
def test_shutdown_state(image: PartitionImage, after: PartitionState | None) -> None:
    assert shutdown_state(image, 1, 9, {1}) == after


def test_brokers_that_stop_together_do_not_lead_in_turn() -> None:
    led = partition(1, [1, 2, 3], {1, 2, 3})
    assert shutdown_state(led, 1, 9, {1, 2}) == PartitionState(3, 5, [3], 9)
    assert shutdown_state(led, 1, 9, {1, 2, 3}) is None


def test_the_only_replica_stays_the_leader_until_it_stops() -> None:
    alone = partition(1, [1], {1, 2, 3})
    alone.replicas = [1]
    assert shutdown_state(alone, 1, 9, {1}) is None


@pytest.mark.parametrize(
    ("image", "after"),
    [
        # Broker 1 stops, and is not elected meanwhile.
        (partition(3, [1, 2, 3], {1, 2}), PartitionState(2, 5, [1, 2], 9)),
        (partition(3, [1, 3], {1, 2}), PartitionState(NO_LEADER, 5, [1], 9)),
        (partition(NO_LEADER, [1], {1, 2}), None),
        (partition(NO_LEADER, [], {1, 2}, has_epoch=False), PartitionState(2, 0, [2], 9)),
        (partition(NO_LEADER, [], {1}, has_epoch=False), None),
        # It goes on leading while it is there.
        (partition(1, [1], {1, 2}), None),
        (partition(1, [1, 2, 3], {1, 2}), PartitionState(1, 5, [1, 2], 9)),
    ],
)
def test_next_state_while_a_broker_stops(
    image: PartitionImage, after: PartitionState | None
) -> None:
    assert next_state(image, 9, stopping_brokers={1}) == after


def test_a_broker_that_stops_is_not_elected_when_it_is_asked_for() -> None:
    with pytest.raises(KafkaError) as refused:
        preferred_state(partition(2, [2, 1], {1, 2}), 7, {1})
    assert refused.value.code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    offline = partition(NO_LEADER, [3], {1, 2})
    assert unclean_state(offline, 7, {1}) == PartitionState(2, 5, [2], 7, RECOVERING)


def test_topic_ids_are_random_uuids_whose_text_starts_well() -> None:
    ids = {new_topic_id() for _ in range(2000)}
    assert len(ids) == 2000
    assert not any(topic_id_to_text(topic_id).startswith("-") for topic_id in ids)
    assert all(topic_id[6] >> 4 == 4 and topic_id[8] >> 6 == 2 for topic_id in ids)


async def test_topic_without_id_gets_one(new_tree: Callable[[], Tree]) -> None:
    """Old tools and brokers wrote topics without an id and without states."""
    tree = new_tree()
    await tree.open()
    await tree.create(
        "/brokers/topics/old", b'{"version":1,"partitions":{"0":[0]}}', make_parents=True
    )
    await tree.close()
    tree = new_tree()
    cluster = new_cluster(tree, Recorder())
    await cluster.start()
    topic = cluster.image.topics["old"]
    assert topic.topic_id in cluster.image.topic_by_id
    assert topic.partitions[0].leader == 0
    value = json.loads((await tree.get("/brokers/topics/old"))[0])
    assert value["version"] == 3
    assert len(value["topic_id"]) == 22
    await cluster.close()


def test_the_preferred_leader_is_the_first_replica_if_it_is_in_sync() -> None:
    assert preferred_state(partition(2, [2, 1], {1, 2}), 7) == PartitionState(1, 5, [2, 1], 7)
    for image, code in (
        (partition(1, [1, 2], {1, 2}), ErrorCode.ELECTION_NOT_NEEDED),
        (partition(2, [2], {1, 2}), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (partition(2, [2, 1], {2}), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ):
        with pytest.raises(KafkaError) as refused:
            preferred_state(image, 7)
        assert refused.value.code == code


def test_an_unclean_election_takes_a_live_replica_and_prefers_one_in_sync() -> None:
    assert unclean_state(partition(NO_LEADER, [2], {1, 2}), 7) == PartitionState(2, 5, [2], 7)
    assert unclean_state(partition(1, [1, 3, 2], {2, 3}), 7) == PartitionState(2, 5, [3, 2], 7)
    recovering = PartitionState(1, 5, [1], 7, RECOVERING)
    assert unclean_state(partition(NO_LEADER, [2], {1}), 7) == recovering
    assert unclean_state(partition(2, [2], {1}), 7) == recovering
    for image, code in (
        (partition(1, [1], {1, 2}), ErrorCode.ELECTION_NOT_NEEDED),
        (partition(NO_LEADER, [1], {4}), ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ):
        with pytest.raises(KafkaError) as refused:
            unclean_state(image, 7)
        assert refused.value.code == code


def test_an_unclean_leader_is_not_marked_where_older_brokers_could_not_read_it() -> None:
    """`inter.broker.protocol.version` is below 3.2."""
    image = partition(NO_LEADER, [2], {1})
    after = PartitionState(1, 5, [1], 7)
    assert unclean_state(image, 7, marks_recovery=False) == after
    assert next_state(image, 7, allows_unclean=True, marks_recovery=False) == after


async def test_elections_are_written_and_told(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    await add_broker(cluster, cluster_tree, 2)
    await add_topic_of_kafka(cluster, cluster_tree, "t", [2, 0], leader=0)
    await cluster.leadership.elect("t", 0, unclean=False)
    elected = cluster.image.topics["t"].partitions[0]
    assert (elected.leader, elected.leader_epoch, elected.isr) == (2, 1, [2, 0])
    state = json.loads((await cluster_tree.get("/brokers/topics/t/partitions/0/state"))[0])
    assert (state["leader"], state["leader_epoch"]) == (2, 1)
    assert heard.take()[-1] == ("leadership", "t", 0)
    with pytest.raises(KafkaError) as refused:
        await cluster.leadership.elect("t", 1, unclean=False)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_broker_that_shuts_down_is_elected_after_it_registered_anew(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    await add_broker(cluster, cluster_tree, 2)
    await add_topic_of_kafka(cluster, cluster_tree, "led", [2, 0])
    await add_topic_of_kafka(cluster, cluster_tree, "alone", [2])
    await add_topic_of_kafka(cluster, cluster_tree, "lagging", [2, 0], isr=[2])
    topics = cluster.image.topics
    epoch = cluster.image.brokers[2].epoch
    assert await cluster.leadership.shut_down_broker(2, epoch) == [TopicPartition("lagging", 0)]
    led = topics["led"].partitions[0]
    assert (led.leader, led.isr, led.leader_epoch) == (0, [0], 1)
    assert topics["alone"].partitions[0].leader == 2
    assert topics["alone"].partitions[0].leader_epoch == 0
    with pytest.raises(KafkaError):
        await cluster.leadership.elect("led", 0, unclean=False)
    assert cluster._controller.stopping_brokers == {2}
    async with cluster._context.lock:
        other = cluster.image.brokers[2]
        brokers = {**cluster.image.brokers, 2: other._replace(epoch=epoch + 1)}
        await cluster._updater.apply_brokers(brokers)
    assert cluster._controller.stopping_brokers == set()


async def test_a_shutdown_is_refused_to_brokers_that_are_not_there(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    await add_broker(cluster, cluster_tree, 2)
    epoch = cluster.image.brokers[2].epoch
    for broker_id, broker_epoch, code in (
        (2, epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
        (7, -1, ErrorCode.BROKER_NOT_AVAILABLE),
        (7, 5, ErrorCode.UNKNOWN_SERVER_ERROR),
    ):
        with pytest.raises(KafkaError) as refused:
            await cluster.leadership.shut_down_broker(broker_id, broker_epoch)
        assert refused.value.code is code
    assert await cluster.leadership.shut_down_broker(2, -1) == []
    cluster._election.lose()
    with pytest.raises(KafkaError) as refused:
        await cluster.leadership.shut_down_broker(2, -1)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    assert cluster._controller.stopping_brokers == set()


async def test_a_leader_is_chosen_among_those_in_sync(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    await add_broker(cluster, cluster_tree, 2)
    await add_topic_of_kafka(cluster, cluster_tree, "t", [0, 2, 3], leader=0, isr=[0, 2])
    for _ in range(2):
        await cluster.leadership.move("t", 0, 2)
    moved = cluster.image.topics["t"].partitions[0]
    assert (moved.leader, moved.leader_epoch, moved.isr) == (2, 1, [0, 2])
    assert heard.take()[-1] == ("leadership", "t", 0)
    for place, broker_id, code in (
        (("t", 0), 3, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
        (("t", 1), 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        with pytest.raises(KafkaError) as refused:
            await cluster.leadership.move(*place, broker_id)
        assert refused.value.code == code


async def test_a_topic_that_another_controller_deleted_holds_no_other_topic_up(
    cluster: Cluster,
) -> None:
    """The image still has it, when this broker becomes the controller."""
    removed_topic = partition_image(leader=NO_LEADER, leader_epoch=3, partition_epoch=-1)
    await cluster.create_topic("there")
    updater = cluster._context.updater
    await updater.apply_topic(TopicImage("gone", new_topic_id(), [removed_topic]))
    present_topic = cluster.image.topics["there"]
    without_leader = replace_partition(
        present_topic.partitions[0], state=PartitionState(-1, 5, [0], 1)
    )
    await updater.apply_topic(TopicImage("there", present_topic.topic_id, [without_leader]))
    await cluster._controller.settle(["gone", "there"])
    assert cluster.image.topics["there"].partitions[0].leader == 0


# Election of the controller: winning, losing, and writing only while elected; over both homes.


def election_of(tree: Tree, broker_id: int) -> tuple[Election, MetadataImage, ClusterContext]:
    image = MetadataImage()
    context = ClusterContext(
        broker_id=broker_id,
        tree=tree,
        updater=ImageUpdater(image),
        clock=SystemClock(),
        log=logging.getLogger(__name__),
    )
    return Election(context), image, context


async def test_first_wins_second_follows_and_takes_over(tree: Tree) -> None:
    first, first_image, _ = election_of(tree, 1)
    second, second_image, _ = election_of(tree, 2)
    assert await first.run()
    assert not await first.run()
    assert not await second.run()
    assert (second_image.controller_id, second_image.controller_epoch) == (1, 1)
    assert (first.is_controller, second.is_controller) == (True, False)
    await first.resign()
    await first.resign()
    assert first_image.controller_id == NO_CONTROLLER
    assert await second.run()
    assert (second_image.controller_id, second_image.controller_epoch) == (2, 2)
    assert (await tree.get("/controller_epoch"))[0] == b"2"


async def test_a_take_over_deposes_the_controller(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, first_image, _ = election_of(tree, 1)
    second, second_image, _ = election_of(tree, 2)
    assert await second.take_over()  # there was none
    assert await first.take_over()
    assert not await first.take_over()
    assert (first_image.controller_id, first_image.controller_epoch) == (1, 2)
    assert not await second.run()
    assert not second.is_controller
    assert (second_image.controller_id, second_image.controller_epoch) == (1, 2)
    multi = tree.multi

    async def after_another(operations: Sequence[Operation]) -> list[str | int]:
        if any(operation.path == "/controller" for operation in operations):
            monkeypatch.undo()
            await tree.set("/controller_epoch", b"3")
        return await multi(operations)

    monkeypatch.setattr(tree, "multi", after_another)
    with pytest.raises(KafkaError, match="broker 2 cannot become the controller now"):
        await second.take_over()


async def test_a_controller_that_has_not_heard_of_the_next_one_leaves_its_node(tree: Tree) -> None:
    if not tree.is_shared:
        return  # there is no other
    first, _, _ = election_of(tree, 1)
    second, second_image, _ = election_of(tree, 2)
    assert await first.run()
    assert await second.take_over()
    await first.resign()
    assert not first.is_controller
    assert not await second.run()
    assert (second_image.controller_id, second_image.controller_epoch) == (2, 2)


async def test_controller_of_kafka_is_respected(tree: Tree) -> None:
    await tree.create("/controller", encode_controller(9, 0))
    await tree.create("/controller_epoch", b"41")
    election, image, _ = election_of(tree, 1)
    assert not await election.run()
    assert (image.controller_id, image.controller_epoch) == (9, 41)
    await tree.delete("/controller")
    assert await election.run()
    assert image.controller_epoch == 42


async def test_victory_whose_answer_was_lost_is_won_again(tree: Tree) -> None:
    await tree.create("/controller", encode_controller(1, 0), ephemeral=True)
    election, image, _ = election_of(tree, 1)
    assert await election.run()
    assert image.controller_id == 1


async def test_victory_that_broke_off_behind_the_write_is_won_again(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = tree.create
    refusals = [CoordinationError("away")]

    async def once_away(path: str, data: bytes = b"", **options: bool) -> str:
        if path == FEATURE and refusals:
            raise refusals.pop()
        return await create(path, data, **options)

    monkeypatch.setattr(tree, "create", once_away)
    election, image, _ = election_of(tree, 1)
    with pytest.raises(CoordinationError):
        await election.run()
    assert not election.is_controller
    assert await election.run()
    assert (election.is_controller, image.controller_id) == (True, 1)


async def test_deposed_controller_cannot_write(tree: Tree) -> None:
    """A raised epoch makes the guard stop the write, where several brokers can exist."""
    election, _, context = election_of(tree, 1)
    await election.run()
    states = PartitionStates(context, election)
    await states.multi([Create("/a")])
    await tree.set("/controller_epoch", b"7")
    if not tree.is_shared:
        assert election.guard() == []
        return
    with pytest.raises(KafkaError) as caught:
        await states.multi([Create("/b")])
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    assert not election.is_controller
    assert await tree.exists("/b") is None


async def test_a_controller_whose_session_ended_cannot_write(tree: Tree) -> None:
    election, _, context = election_of(tree, 1)
    await election.run()
    election.lose()
    if not tree.is_shared:  # its one session does not end before the broker
        return
    with pytest.raises(KafkaError) as caught:
        await PartitionStates(context, election).multi([Create("/b")])
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    assert await tree.exists("/b") is None


async def test_broken_epoch_is_named(tree: Tree) -> None:
    await tree.create("/controller_epoch", b"many")
    election, _, _ = election_of(tree, 1)
    with pytest.raises(CoordinationError, match="controller_epoch"):
        await election.run()


async def test_brokers_of_kafka_and_minibrokers_elect_each_other(tree: Tree) -> None:
    election, image, _ = election_of(tree, 1)
    image.brokers = {1: BrokerInfo(1, (), is_minibroker=True), 7: BrokerInfo(7, ())}
    assert await election.run()
    assert not await election.run()
    assert (image.controller_id, election.is_controller) == (1, True)
    await election.resign()
    await tree.create("/controller", encode_controller(7, 0))
    assert not await election.run()
    assert (image.controller_id, election.is_controller) == (7, False)
