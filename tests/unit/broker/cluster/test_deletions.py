"""Deletions of topics: marks, replicas on brokers that live or are dead, nodes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import decode_state, encode_broker
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.image import BrokerInfo, Endpoint, TopicImage
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import Delete
from minibroker.broker.cluster.updates import FailedReplicas
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError, StorageError
from minibroker.kafka.ids import TopicPartition
from tests.support.cluster import Recorder, add_topic_of_kafka, code_of, new_cluster
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.cluster.tree import Operation, Tree
    from minibroker.broker.evidence import DeletionEvidence


MARK = "/admin/delete_topics/t"


class Others:
    """The controller, broker 0, and brokers that are nodes in the tree, and answer when a test
    says so.
    """

    def __init__(self, directory: Path) -> None:
        self.home = SharedTree(directory / "metadata.db", SystemClock())
        self.tree = self.home.session()
        self.cluster = self.new_cluster(self.tree)
        self.asked_epochs: list[tuple[int, asyncio.Future[bool]]] = []
        self.names = {"t"}
        """Topics that are deleted."""

    def new_cluster(self, tree: Tree, broker_id: int = 0) -> Cluster:
        cluster = new_cluster(tree, Recorder(), broker_id)
        cluster.have_brokers_delete(self._ask)
        return cluster

    def _ask(self, broker_id: int, topic: TopicImage) -> asyncio.Future[bool]:
        assert topic.name in self.names
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.asked_epochs.append((broker_id, answer))
        return answer

    def brokers_asked(self) -> list[int]:
        return [broker_id for broker_id, _ in self.asked_epochs]

    def answer(self, broker_id: int, *, is_done: bool = True) -> None:
        """Answer every question that was asked of this broker."""
        for partitions, answer in self.asked_epochs:
            if partitions == broker_id and not answer.done():
                answer.set_result(is_done)

    async def add(self, broker_id: int) -> None:
        """Register a broker; the controller knows it when this returns."""
        info = BrokerInfo(broker_id, (Endpoint("PLAINTEXT", "127.0.0.1", 9093),))
        await self.tree.create(paths.broker(broker_id), encode_broker(info, 0))
        await eventually(lambda: broker_id in self.cluster.image.brokers)

    async def remove(self, broker_id: int) -> None:
        await self.tree.delete(paths.broker(broker_id))
        await eventually(lambda: broker_id not in self.cluster.image.brokers)

    async def is_marked(self) -> bool:
        return await self.tree.exists(MARK) is not None

    async def until_gone(self) -> None:
        """Wait until the tree has neither topic nor mark."""
        async with asyncio.timeout(60):
            while any(await nodes_of_topic(self.tree)):  # noqa: ASYNC110  nobody is told
                await asyncio.sleep(0)


@pytest.fixture
async def others(tmp_path: Path) -> AsyncIterator[Others]:
    """A controller with the brokers 1 and 2, and a topic on 0 and 1."""
    new_others = Others(tmp_path)
    await new_others.cluster.start()
    await new_others.add(1)
    await new_others.add(2)
    await new_others.cluster.create_topic("t", assignment={0: [0, 1]})
    yield new_others
    await new_others.cluster.close()


async def cluster_with_topic(tree: Tree, partitions: int = 1, **options: Any) -> Cluster:
    """A started cluster of one broker with a topic `t`; `options` as `Cluster` takes them."""
    cluster = new_cluster(tree, Recorder(), **options)
    await cluster.start()
    await cluster.create_topic("t", partitions, configs={"a": "b"})
    return cluster


async def nodes_of_topic(tree: Tree) -> list[bool]:
    """Return whether the tree has the topic `t`, its config and its mark."""
    names = ("/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t")
    return [await tree.exists(name) is not None for name in names]


async def test_deletion_that_broke_off_is_finished_at_start(new_tree: Callable[[], Tree]) -> None:
    tree = new_tree()
    first = await cluster_with_topic(tree)
    await tree.create("/admin/delete_topics/t")
    await first.close()
    deleted = []

    async def delete_logs(topic: TopicImage, _evidence: DeletionEvidence) -> None:
        deleted.append(topic.name)

    tree = new_tree()
    second = new_cluster(tree, Recorder(), delete_logs=delete_logs)
    await second.start()
    assert second.image.topics == {}
    assert deleted == ["t"]
    assert await nodes_of_topic(tree) == [False, False, False]
    await second.close()


async def test_logs_go_before_the_topic_does_and_behind_a_durable_mark(
    new_tree: Callable[[], Tree], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = new_tree()
    steps: list[object] = []

    async def delete_logs(topic: TopicImage, _evidence: DeletionEvidence) -> None:
        assert topic.name == "t"
        assert cluster.image.topics == {}
        steps.append(await nodes_of_topic(tree))

    cluster = await cluster_with_topic(tree, delete_logs=delete_logs)
    flush = tree.flush

    async def noted_flush() -> None:
        assert await nodes_of_topic(tree) == [True, True, True]
        steps.append("flush")
        await flush()

    monkeypatch.setattr(tree, "flush", noted_flush)
    await cluster.delete_topic("t")
    assert steps == ["flush", [True, True, True]]
    assert await nodes_of_topic(tree) == [False, False, False]
    await cluster.close()


async def test_a_topic_whose_log_the_disk_keeps_stays_marked(
    new_tree: Callable[[], Tree],
) -> None:
    refusals = [StorageError("refused")] * 2

    async def delete_logs(_topic: TopicImage, _evidence: DeletionEvidence) -> None:
        if refusals:
            raise refusals.pop()

    tree = new_tree()
    first = await cluster_with_topic(tree, delete_logs=delete_logs)
    with pytest.raises(StorageError, match="refused"):
        await first.delete_topic("t")
    assert await nodes_of_topic(tree) == [True, True, True]
    assert first.image.topics == {}
    await first.close()
    for attempt in ("refused again: the broker starts all the same", "done"):
        tree = new_tree()
        second = new_cluster(tree, Recorder(), delete_logs=delete_logs)
        await second.start()
        assert second.image.topics == {}
        assert await nodes_of_topic(tree) == [attempt != "done"] * 3
        await second.close()


async def test_a_wide_topic_whose_deletion_broke_off_in_the_tree(
    new_tree: Callable[[], Tree], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not leave in one transaction; the mark is in the last one."""
    tree = new_tree()
    first = await cluster_with_topic(tree, 300)
    multi, calls = tree.multi, []

    async def once(operations: Sequence[Operation]) -> list[str | int]:
        if len(operations) > 2:  # more than the check of the controller's epoch
            calls.append(len(operations))
        if len(calls) > 1:
            raise CoordinationError("gone")
        return await multi(operations)

    monkeypatch.setattr(tree, "multi", once)
    with pytest.raises(CoordinationError):
        await first.delete_topic("t")
    monkeypatch.undo()
    assert len(calls) == 2
    assert await nodes_of_topic(tree) == [True, True, True]
    await first.close()
    tree = new_tree()
    second = new_cluster(tree, Recorder())
    await second.start()
    assert second.image.topics == {}
    assert await nodes_of_topic(tree) == [False, False, False]
    await second.close()


async def test_a_deposed_controller_deletes_no_topic(new_tree: Callable[[], Tree]) -> None:
    tree = new_tree()
    cluster = await cluster_with_topic(tree)
    if tree.is_shared:
        async with cluster._context.lock:  # before the news of it arrive
            await tree.set("/controller_epoch", b"7")
            with pytest.raises(KafkaError) as caught:
                await cluster._deletions.begin("t")
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        assert await nodes_of_topic(tree) == [True, True, False]
    await cluster.close()


async def test_nodes_that_change_while_they_are_deleted(
    new_tree: Callable[[], Tree], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another broker deletes some of them, and a partition gets a state."""
    tree = new_tree()
    cluster = await cluster_with_topic(tree, 2)
    multi = tree.multi
    state = "/brokers/topics/t/partitions/1/state"

    async def after_another(operations: Sequence[Operation]) -> list[str | int]:
        if any(operation.path == state for operation in operations):
            monkeypatch.undo()
            await tree.delete(state)
            await tree.create("/brokers/topics/t/partitions/0/other")
        return await multi(operations)

    monkeypatch.setattr(tree, "multi", after_another)
    await cluster.delete_topic("t")
    assert await nodes_of_topic(tree) == [False, False, False]
    await cluster.close()


async def test_an_election_may_end_while_the_last_nodes_are_deleted(
    others: Others, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    multi = others.tree.multi

    async def and_lose_the_election(operations: Sequence[Operation]) -> list[str | int]:
        results = await multi(operations)
        if any(isinstance(each, Delete) and each.path == MARK for each in operations):
            others.cluster._deletions._on_election(False)
        return results

    monkeypatch.setattr(others.tree, "multi", and_lose_the_election)
    deletion = asyncio.ensure_future(others.cluster.delete_topic("t"))
    await eventually(lambda: 1 in others.brokers_asked())
    others.answer(1)
    await others.until_gone()
    await eventually(lambda: "t" not in others.cluster.image.topics)
    await asyncio.wait([deletion])
    assert not others.cluster._deletions._under_way
    assert not [record for record in caplog.records if record.exc_info]


async def test_where_topics_are_not_deleted_the_marks_go(new_tree: Callable[[], Tree]) -> None:
    tree = new_tree()
    first = await cluster_with_topic(tree)
    await first.close()
    tree = new_tree()
    await tree.open()
    await tree.create("/admin/delete_topics/t")
    await tree.close()
    tree = new_tree()
    second = new_cluster(tree, Recorder(), deletes_topics=False)
    await second.start()
    assert "t" in second.image.topics
    assert await nodes_of_topic(tree) == [True, True, False]
    await second.close()


async def test_a_topic_is_gone_when_every_broker_has_deleted_its_replicas(others: Others) -> None:
    deletion = asyncio.create_task(others.cluster.delete_topic("t"))
    await eventually(lambda: len(others.asked_epochs) == 2)
    assert sorted(others.brokers_asked()) == [1, 2]
    assert others.cluster.image.topics == {}
    await others.cluster.create_topic("other")  # the lock is free meanwhile
    others.answer(2)
    assert await nodes_of_topic(others.tree) == [True, True, True]
    assert not deletion.done()
    others.answer(1)
    await deletion
    assert await nodes_of_topic(others.tree) == [False, False, False]


async def test_a_mark_is_about_the_topic_that_the_tree_has(others: Others) -> None:
    """ZooKeeper is an older copy, say: the marked topic was deleted and made again since."""
    cluster, heard = others.cluster, Recorder()
    cluster.subscribe(heard)
    old = cluster.image.topics["t"]
    async with cluster._context.lock:
        cluster._updater.withdraw_topic("t")
        newer = TopicImage("t", new_topic_id(), old.partitions)
        await cluster._updater.apply_topic(newer)
        heard.take()
        await others.tree.create(MARK)
    await eventually(lambda: cluster._deletions.is_queued("t"))
    assert heard.take() == [("missing", "t")]
    deleted = cluster._deletions.topic("t")
    assert deleted is not None
    assert deleted.topic_id == old.topic_id


async def test_a_broker_without_a_replica_is_not_waited_for(others: Others) -> None:
    deletion = asyncio.create_task(others.cluster.delete_topic("t"))
    await eventually(lambda: len(others.asked_epochs) == 2)
    others.answer(1)
    await deletion
    assert await nodes_of_topic(others.tree) == [False, False, False]


async def test_a_dead_broker_keeps_the_mark_until_it_is_back_and_has_deleted(
    others: Others,
) -> None:
    await others.remove(1)
    await others.cluster.delete_topic("t")
    assert others.brokers_asked() == [2]
    assert others.cluster.image.topics == {}
    assert await nodes_of_topic(others.tree) == [True, True, True]
    for call, code in (
        (others.cluster.create_topic("t"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (others.cluster.delete_topic("t"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (others.cluster.topics.add_partitions("t", 2), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (
            others.cluster.leadership.elect("t", 0, unclean=False),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ),
        (
            others.cluster.reassignments.alter("t", 0, [0]),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
    ):
        with pytest.raises(KafkaError) as caught:
            await call
        assert caught.value.code is code
    await others.add(1)
    await eventually(lambda: others.brokers_asked() == [2, 1])
    others.answer(1)
    await others.until_gone()
    await others.cluster.create_topic("t")


async def test_a_broker_that_dies_before_it_answers_is_asked_again(others: Others) -> None:
    deletion = asyncio.create_task(others.cluster.delete_topic("t"))
    await eventually(lambda: len(others.asked_epochs) == 2)
    others.asked_epochs[others.brokers_asked().index(1)][1].cancel()  # as its outbox does
    await deletion
    assert await others.is_marked()
    await others.remove(1)
    await others.add(1)
    await eventually(lambda: others.brokers_asked().count(1) == 2)
    others.answer(1)
    await others.until_gone()


async def test_a_broker_that_is_back_before_its_question_ends_is_asked_again(
    others: Others,
) -> None:
    deletion = asyncio.create_task(others.cluster.delete_topic("t"))
    await eventually(lambda: len(others.asked_epochs) == 2)
    question = others.asked_epochs[others.brokers_asked().index(1)][1]
    await others.remove(1)
    await others.add(1)
    await others.add(3)
    await eventually(lambda: 3 in others.brokers_asked())
    assert others.brokers_asked().count(1) == 1
    question.cancel()
    await deletion
    await eventually(lambda: others.brokers_asked().count(1) == 2)
    others.answer(1)
    await others.until_gone()


async def test_a_broker_that_could_not_delete_is_asked_again_when_it_was_restarted(
    others: Others,
) -> None:
    deletion = asyncio.create_task(others.cluster.delete_topic("t"))
    await eventually(lambda: len(others.asked_epochs) == 2)
    others.answer(1, is_done=False)
    await deletion
    await others.add(3)  # the brokers change
    await eventually(lambda: 3 in others.brokers_asked())
    assert others.brokers_asked().count(1) == 1
    await others.remove(1)
    await others.add(1)
    await eventually(lambda: others.brokers_asked().count(1) == 2)
    others.answer(1)
    await others.until_gone()


async def test_a_request_waits_for_a_silent_broker_until_its_time_is_over(others: Others) -> None:
    await others.cluster.delete_topic("t", timeout_s=0.01)
    assert await others.is_marked()
    others.answer(1)
    await others.until_gone()


async def test_the_next_controller_asks_all_brokers_again(others: Others) -> None:
    await others.remove(1)
    await others.cluster.delete_topic("t")
    second = others.new_cluster(others.home.session(), broker_id=4)
    await second.start()
    assert second.image.topics == {}  # a broker that comes does not show what is on its way out
    await eventually(lambda: 4 in others.brokers_asked())  # by the first controller
    others.asked_epochs.clear()
    await second.become_controller()
    await eventually(lambda: set(others.brokers_asked()) == {0, 2})
    assert not others.cluster._deletions.is_queued("t") or others.cluster.is_controller
    others.answer(0)
    assert await others.is_marked()
    await others.add(1)
    await eventually(lambda: 1 in others.brokers_asked())
    others.answer(1)
    await others.until_gone()
    await second.close()


async def test_a_topic_that_moves_is_deleted_and_the_move_cannot_be_taken_back(
    others: Others,
) -> None:
    await others.cluster.reassignments.alter("t", 0, [2])
    await others.cluster.delete_topic("t", timeout_s=0.01)
    assert others.cluster.image.topics == {}
    with pytest.raises(KafkaError) as caught:
        await others.cluster.reassignments.alter("t", 0, None)
    assert code_of(caught) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "The partition does not exist.",
    )
    others.answer(1)
    assert await others.is_marked()
    others.answer(2)
    await others.until_gone()


@pytest.mark.parametrize(
    ("replicas", "isr", "leader", "state"),
    [
        ([0, 1, 2], [0, 1, 2], 0, (-1, [2], 3)),
        ([0, 1, 2], [0, 2], 2, (-1, [2], 2)),
        ([0, 1], [1], 1, (-1, [1], 1)),
        ([0, 5], [0], 0, (-1, [0], 1)),
        ([5, 0], [5], -1, (-1, [5], 0)),
    ],
)
async def test_partitions_on_their_way_out_have_no_leader(
    others: Others,
    replicas: list[int],
    isr: list[int],
    leader: int,
    state: tuple[int, list[int], int],
) -> None:
    """Broker 5 is dead. Each replica that leaves the ISR begins a leader epoch."""
    await add_topic_of_kafka(others.cluster, others.tree, "going", replicas, leader=leader, isr=isr)
    others.names.add("going")
    await others.cluster.delete_topic("going", timeout_s=0.01)
    path = paths.partition_state("going", 0)
    decoded = decode_state(path, (await others.tree.get(path))[0])
    assert (decoded.leader, decoded.isr, decoded.leader_epoch) == state


async def test_a_topic_whose_mark_is_taken_away_is_shown_again(others: Others) -> None:
    """A controller with `delete.topic.enable=false` takes it away."""
    await others.cluster._follower.close()  # this controller deletes nothing
    await others.tree.create(MARK)
    second = others.new_cluster(others.home.session(), broker_id=4)
    await second.start()
    assert second.image.topics == {}
    await others.tree.delete(MARK)
    await eventually(lambda: "t" in second.image.topics)
    await second.close()


# Replicas count as failed until their broker is started again, or their topic is gone.


@pytest.fixture
def failed() -> FailedReplicas:
    """Broker 1 failed with `t-0` and `u-3`, broker 2 with `t-0`."""
    replicas = FailedReplicas()
    replicas.add(1, [TopicPartition("t", 0), TopicPartition("u", 3)])
    replicas.add(2, [TopicPartition("t", 0)])
    return replicas


def test_replicas_are_known_by_partition_and_by_broker(failed: FailedReplicas) -> None:
    assert (set(failed.of("t", 0)), set(failed.of("u", 3))) == ({1, 2}, {1})
    assert not failed.of("t", 1)
    assert not failed.of("v", 0)
    assert (failed.has_broker(1), failed.has_broker(3)) == (True, False)


def test_a_controller_says_all_of_a_partition(failed: FailedReplicas) -> None:
    failed.replace("t", 0, {2, 5})
    failed.replace("u", 3, set())
    failed.replace("unknown", 0, set())
    assert set(failed.of("t", 0)) == {2, 5}
    assert not failed.has_broker(1)


def test_brokers_that_are_started_again_have_all_their_replicas(failed: FailedReplicas) -> None:
    assert failed.forget_brokers([]) == []
    assert set(failed.forget_brokers([1])) == {"t", "u"}
    assert (set(failed.of("t", 0)), failed.has_broker(1)) == ({2}, False)


def test_a_topic_that_is_gone_is_forgotten(failed: FailedReplicas) -> None:
    failed.forget_topic("t")
    failed.forget_topic("unknown")
    assert not failed.has_broker(2)
