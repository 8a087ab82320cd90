"""Changes of leaders that somebody asks for: under the lock, and on the controller only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.cluster.leader_balance import FIRST_LOOK_MS, BalanceRule, Imbalance
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import SessionEvent
from minibroker.broker.timers import Timers
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import TopicId, TopicPartition
from tests.support.cluster import Recorder, add_broker, add_topic_of_kafka, code_of, new_cluster
from tests.support.images import partition_image
from tests.support.in_process import ManualClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster

    Two = tuple[Cluster, Cluster]


NAME = TopicPartition("t", 0)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    """Broker 0, the controller, and broker 1; both have `t`, which broker 0 leads."""
    home = SharedTree(tmp_path / "metadata.db", SystemClock())
    clusters = [new_cluster(home.session(), Recorder(), broker_id) for broker_id in range(2)]
    for cluster in clusters:
        await cluster.start()
    await eventually(lambda: len(clusters[0].image.brokers) == 2)
    await clusters[0].create_topic("t", assignment={0: [0, 1]})
    await eventually(lambda: "t" in clusters[1].image.topics)
    yield clusters[0], clusters[1]
    for cluster in reversed(clusters):
        await cluster.close()


async def test_the_controller_moves_a_leader_and_elects_the_preferred_one(two: Two) -> None:
    controller, other = two
    await controller.leadership.move("t", 0, 1)
    await eventually(lambda: other.image.topics["t"].partitions[0].leader == 1)
    await controller.leadership.elect("t", 0, unclean=False)
    await eventually(lambda: other.image.topics["t"].partitions[0].leader == 0)


async def test_another_broker_refuses_what_only_the_controller_does(two: Two) -> None:
    leadership = two[1].leadership
    requests: list[Callable[[], Awaitable[object]]] = [
        lambda: leadership.move("t", 0, 1),
        lambda: leadership.shut_down_broker(0, -1),
        lambda: leadership.alter_isrs(0, {}),
    ]
    for ask in requests:
        with pytest.raises(KafkaError) as caught:
            await ask()
        assert code_of(caught)[0] == ErrorCode.NOT_CONTROLLER
    await leadership.allow_unclean(None)  # the controller hears of the setting, too


async def test_a_leader_writes_its_isr_whoever_is_controller(two: Two) -> None:
    controller, other = two
    await controller.leadership.move("t", 0, 1)
    await eventually(lambda: other.image.topics["t"].partitions[0].leader == 1)
    state = other.image.topics["t"].partitions[0]
    epochs = {"leader_epoch": state.leader_epoch, "partition_epoch": state.partition_epoch}
    assert await other.leadership.change_isr(NAME, [1], **epochs)
    assert not await other.leadership.change_isr(NAME, [0, 1], **epochs)  # it is an older state
    await eventually(lambda: controller.image.topics["t"].partitions[0].isr == [1])


async def test_the_controller_hears_of_a_failed_directory(two: Two) -> None:
    """Another broker tells it by a node in the tree; then the controller asks that broker."""
    controller, other = two
    await controller.leadership.replicas_failed([NAME], broker_id=0)
    partition = controller.image.topics["t"].partitions[0]
    assert (partition.leader, partition.offline) == (1, [0])
    requests: list[int] = []
    controller.have_replicas_asked(requests.append)
    await other.leadership.replicas_failed([NAME])
    assert other.image.topics["t"].partitions[0].offline == [1]
    await eventually(lambda: requests == [1])


async def test_the_controller_hears_of_a_directory_that_failed_while_the_tree_was_away(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, other = two
    requests: list[int] = []
    controller.have_replicas_asked(requests.append)

    async def refuse(*_: object, **__: object) -> str:
        raise CoordinationError("away")

    with monkeypatch.context() as away:
        away.setattr(other.tree, "create", refuse)
        with pytest.raises(CoordinationError):
            await other.leadership.replicas_failed([NAME])
    other._follower._on_session(SessionEvent.RESUMED)
    await eventually(lambda: requests == [1])


async def test_a_failed_directory_is_told_again_in_the_same_session(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree answers late once."""
    controller, other = two
    requests: list[int] = []
    controller.have_replicas_asked(requests.append)

    async def refuse(*_: object, **__: object) -> str:
        raise CoordinationError("late")

    with monkeypatch.context() as late:
        late.setattr(controller.tree, "multi", refuse)
        late.setattr(other.tree, "create", refuse)
        for cluster in two:
            with pytest.raises(CoordinationError):
                await cluster.leadership.replicas_failed([NAME])
    await eventually(lambda: controller.image.topics["t"].partitions[0].leader == 1)
    await eventually(lambda: requests == [1])


async def test_a_broker_that_was_started_again_has_its_disks(two: Two) -> None:
    """It told of a failed one in its former registration, and the lock was not free."""
    controller, _ = two
    epoch = controller.image.brokers[1].epoch
    leadership = controller.leadership
    await leadership.replicas_failed([NAME], broker_id=1, broker_epoch=epoch - 1)
    assert controller.image.topics["t"].partitions[0].offline == []
    await leadership.replicas_failed([NAME], broker_id=1, broker_epoch=epoch)
    assert controller.image.topics["t"].partitions[0].offline == [1]


# Leaders return to preferred replicas by themselves.


OTHER = 2
RULE = BalanceRule(interval_ms=300_000, percentage=10)


def topic(name: str, leaders: list[int], *, preferred: int = 1) -> TopicImage:
    """A topic with one partition a leader; broker `preferred` should lead each."""
    partitions = [
        partition_image(
            leader=leader,
            leader_epoch=3,
            replicas=[preferred, OTHER],
            isr=[preferred, OTHER],
            partition_epoch=4,
        )
        for leader in leaders
    ]
    return TopicImage(name, TopicId(bytes(16)), partitions)


@pytest.mark.parametrize(
    ("leaders", "percentage", "moves"),
    [
        ([1, 1], 10, []),
        ([1, OTHER], 10, [1]),
        ([OTHER, 1, -1], 10, [0, 2]),
        # A tenth is not more than a tenth.
        ([OTHER] + [1] * 9, 10, []),
        ([OTHER] * 2 + [1] * 8, 10, [0, 1]),
        ([OTHER] + [1] * 9, 0, [0]),
        ([OTHER, OTHER], 100, []),
    ],
)
def test_a_broker_gets_its_leaderships_if_it_lacks_more_than_a_share(
    leaders: list[int], percentage: int, moves: list[int]
) -> None:
    imbalance = Imbalance()
    imbalance.note(topic("t", leaders))
    imbalance.note(topic("other", [OTHER] * 20, preferred=OTHER))
    assert imbalance.to_elect(percentage) == ({"t": moves} if moves else {})


def test_partitions_without_a_state_do_not_count() -> None:
    imbalance = Imbalance()
    new = topic("t", [-1, -1])
    for partition in new.partitions:
        partition.partition_epoch = -1
    imbalance.note(new)
    assert imbalance.to_elect(10) == {}


class Balanced:
    """Broker 0, which is the controller, with its clock."""

    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock()
        self.tree = SharedTree(directory / "metadata.db", self.clock).session()
        self.timers = Timers(self.clock)
        self.cluster: Cluster = new_cluster(self.tree, Recorder(), balance=RULE, timers=self.timers)

    async def add_topic(self, name: str, isr: list[int]) -> None:
        """Make a topic that broker 0 should lead and broker 2 leads."""
        await add_topic_of_kafka(self.cluster, self.tree, name, [0, OTHER], leader=OTHER, isr=isr)

    def leader(self, name: str) -> int:
        return self.cluster.image.topics[name].partitions[0].leader


@pytest.fixture
async def balanced(tmp_path: Path) -> AsyncIterator[Balanced]:
    new_balanced = Balanced(tmp_path)
    await new_balanced.cluster.start()
    await add_broker(new_balanced.cluster, new_balanced.tree, OTHER)
    yield new_balanced
    await new_balanced.cluster.close()
    new_balanced.timers.close()


async def test_the_controller_looks_soon_and_then_from_time_to_time(balanced: Balanced) -> None:
    await balanced.add_topic("a", [OTHER, 0])
    await balanced.add_topic("lagging", [OTHER])
    balanced.clock.advance(FIRST_LOOK_MS - 1)
    assert len(balanced.timers) == 1
    balanced.clock.advance(1)
    await eventually(lambda: balanced.leader("a") == 0)
    partition = balanced.cluster.image.topics["a"].partitions[0]
    assert (partition.isr, partition.leader_epoch) == ([OTHER, 0], 1)
    assert balanced.leader("lagging") == OTHER
    await eventually(lambda: len(balanced.timers) == 1)
    await balanced.add_topic("b", [OTHER, 0])
    balanced.clock.advance(RULE.interval_ms)
    await eventually(lambda: balanced.leader("b") == 0)


@pytest.mark.parametrize(
    "error", [CoordinationError("the tree is away"), RuntimeError("a bug")], ids=["away", "bug"]
)
async def test_a_look_that_failed_is_followed_by_the_next(
    balanced: Balanced, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    await balanced.add_topic("a", [OTHER, 0])

    async def away(_operations: object) -> list[str | int]:
        raise error

    monkeypatch.setattr(balanced.tree, "multi", away)
    balanced.clock.advance(FIRST_LOOK_MS)
    await eventually(lambda: len(balanced.timers) == 1)
    assert balanced.leader("a") == OTHER
    monkeypatch.undo()
    balanced.clock.advance(RULE.interval_ms)
    await eventually(lambda: balanced.leader("a") == 0)


async def test_only_the_controller_looks(balanced: Balanced) -> None:
    assert len(balanced.timers) == 1
    balanced.cluster._election.lose()
    assert len(balanced.timers) == 0
