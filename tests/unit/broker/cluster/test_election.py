"""Election of the controller: winning, losing, and writing only while elected; over both homes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.codecs import encode_controller
from minibroker.broker.cluster.context import ClusterContext
from minibroker.broker.cluster.election import Election
from minibroker.broker.cluster.image import NO_CONTROLLER, BrokerInfo, MetadataImage
from minibroker.broker.cluster.partition_states import PartitionStates
from minibroker.broker.cluster.paths import FEATURE
from minibroker.broker.cluster.tree import Create
from minibroker.broker.cluster.updates import ImageUpdater
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.cluster.tree import Operation, Tree


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
