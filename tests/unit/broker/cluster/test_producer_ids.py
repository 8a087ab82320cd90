"""Producer ids and their blocks, over both homes."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.codecs import ProducerIdBlock, encode_producer_id_block
from minibroker.broker.cluster.paths import PRODUCER_ID_BLOCK
from minibroker.broker.cluster.producer_ids import BLOCK_SIZE, ProducerIds, take_block
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.tree import Tree


async def draw(ids: ProducerIds) -> int:
    """One id, waited for when it must be."""
    drawn = ids.next()
    return drawn if isinstance(drawn, int) else await drawn


async def test_ids_are_fresh_and_start_at_zero(tree: Tree) -> None:
    ids = ProducerIds(tree, 0)
    assert [await draw(ids) for _ in range(3)] == [0, 1, 2]
    await ids.close()


async def test_block_is_taken_as_kafka_writes_it(tree: Tree) -> None:
    block = await take_block(tree, 7)
    assert (block.broker_id, block.first, block.last) == (7, 0, 999)
    data, stat = await tree.get(PRODUCER_ID_BLOCK)
    assert data == b'{"version":1,"broker":7,"block_start":"0","block_end":"999"}'
    assert stat.version == 1
    block = await take_block(tree, 8)
    assert (block.broker_id, block.first, block.last) == (8, 1000, 1999)
    data, _ = await tree.get(PRODUCER_ID_BLOCK)
    assert json.loads(data)["block_start"] == "1000"


async def test_two_brokers_never_share_an_id(tree: Tree) -> None:
    first, second = ProducerIds(tree, 1), ProducerIds(tree, 2)

    async def draw_many(ids: ProducerIds) -> list[int]:
        return [await draw(ids) for _ in range(5 * BLOCK_SIZE)]

    ones, others = await asyncio.gather(draw_many(first), draw_many(second))
    assert len(set(ones) | set(others)) == 10 * BLOCK_SIZE
    assert ones == sorted(ones)
    await first.close()
    await second.close()


async def test_restart_skips_ids_and_repeats_none(new_tree: Callable[[], Tree]) -> None:
    drawn = []
    for _ in range(3):
        tree = new_tree()
        await tree.open()
        ids = ProducerIds(tree, 0)
        drawn += [await draw(ids) for _ in range(10)]
        await ids.close()
        await tree.close()
    assert len(set(drawn)) == 30
    assert drawn[10] == BLOCK_SIZE


async def test_waiting_callers_share_one_fetch(tree: Tree) -> None:
    ids = ProducerIds(tree, 0)
    drawn = await asyncio.gather(*(draw(ids) for _ in range(BLOCK_SIZE // 2)))
    assert sorted(drawn) == list(range(BLOCK_SIZE // 2))
    data, _ = await tree.get(PRODUCER_ID_BLOCK)
    assert json.loads(data)["block_end"] == "999"
    await ids.close()


async def test_more_waiting_callers_than_a_block_holds(tree: Tree) -> None:
    ids = ProducerIds(tree, 0)
    drawn = await asyncio.gather(*(draw(ids) for _ in range(2 * BLOCK_SIZE + 5)))
    assert len(set(drawn)) == 2 * BLOCK_SIZE + 5
    await ids.close()


async def test_next_block_is_there_before_the_current_one_ends(tree: Tree) -> None:
    """After nine tenths of a block every id comes at once, over the block's border too."""
    ids = ProducerIds(tree, 0)
    for _ in range(BLOCK_SIZE - 50):
        await draw(ids)
    assert ids._fetch is not None
    await ids._fetch
    drawn = [ids.next() for _ in range(100)]
    assert drawn == list(range(BLOCK_SIZE - 50, BLOCK_SIZE + 50))
    await ids.close()


class AwayTree:
    """A tree that cannot be reached while `away` is set; counts how often it was asked."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.away = True
        self.call_count = 0

    async def get(self, path: str) -> object:
        self.call_count += 1
        if self.away:
            raise CoordinationError("away")
        return await self.tree.get(path)

    def __getattr__(self, name: str) -> object:
        return getattr(self.tree, name)


async def test_block_is_on_the_disk_before_its_first_id_is_given(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut after the first id must not bring the same block back."""
    flushed_at = []
    flush = tree.flush

    async def note() -> None:
        flushed_at.append((await tree.get(PRODUCER_ID_BLOCK))[1].version)
        await flush()

    monkeypatch.setattr(tree, "flush", note)
    ids = ProducerIds(tree, 0)
    assert await draw(ids) == 0
    assert flushed_at == [1]
    await ids.close()


async def test_tree_out_of_reach_is_a_retriable_error_and_heals(tree: Tree) -> None:
    away = AwayTree(tree)
    ids = ProducerIds(away, 0)  # type: ignore[arg-type]
    outcomes = await asyncio.gather(*(draw(ids) for _ in range(5)), return_exceptions=True)
    assert all(
        isinstance(outcome, KafkaError) and outcome.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        for outcome in outcomes
    )
    assert away.call_count == 1
    away.away = False
    assert await draw(ids) == 0
    await ids.close()


async def test_failed_prefetch_costs_nobody_an_id(tree: Tree) -> None:
    """The tree goes away at nine tenths: the rest of the block is still given out at once."""
    away = AwayTree(tree)
    away.away = False
    ids = ProducerIds(away, 0)  # type: ignore[arg-type]
    await draw(ids)
    away.away = True
    drawn = [ids.next() for _ in range(BLOCK_SIZE - 1)]
    assert drawn == list(range(1, BLOCK_SIZE))
    with pytest.raises(KafkaError):
        await draw(ids)
    away.away = False
    assert await draw(ids) == BLOCK_SIZE
    await ids.close()


async def test_cancelled_waiter_leaves_the_fetch_to_the_others(tree: Tree) -> None:
    ids = ProducerIds(tree, 0)
    first = asyncio.ensure_future(draw(ids))
    second = asyncio.ensure_future(draw(ids))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 0
    await ids.close()


@pytest.mark.parametrize("last", [2**63 - 1, 2**63 - 1000])
async def test_exhausted_ids_are_a_fatal_error(tree: Tree, last: int) -> None:
    block = ProducerIdBlock(0, last - 999, last)
    await tree.create(PRODUCER_ID_BLOCK, encode_producer_id_block(block))
    ids = ProducerIds(tree, 0)
    with pytest.raises(KafkaError) as caught:
        await draw(ids)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert caught.value.detail == "Have exhausted all producerIds."
    assert (await tree.exists(PRODUCER_ID_BLOCK)).version == 0  # type: ignore[union-attr]
    await ids.close()


async def test_last_block_below_the_limit_is_given(tree: Tree) -> None:
    last = 2**63 - 1 - BLOCK_SIZE
    block = ProducerIdBlock(0, last - 999, last)
    await tree.create(PRODUCER_ID_BLOCK, encode_producer_id_block(block))
    assert (await take_block(tree, 0)).last == 2**63 - 1


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"version":1}',
        b'{"broker":0,"block_start":"5","block_end":"4"}',
    ],
)
async def test_broken_block_is_named_not_overwritten(tree: Tree, data: bytes) -> None:
    await tree.create(PRODUCER_ID_BLOCK, data)
    with pytest.raises(CoordinationError, match="latest_producer_id_block"):
        await take_block(tree, 0)
    assert (await tree.get(PRODUCER_ID_BLOCK))[0] == data
