"""Throttled replication (KIP-73): a replica that is behind gets its records at the given rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.in_process import batch_of
from tests.support.waiting import eventually
from tests.unit.broker.replication.records import append, until_equal

if TYPE_CHECKING:
    from tests.unit.broker.replication.conftest import Pair

RATE = 1000
VALUE = b"x" * 400
BATCH_BYTES = len(batch_of(VALUE))
BATCHES = 10
ONE_BATCH = {"replica.fetch.max.bytes": str(BATCH_BYTES)}
ROUNDS = 5


async def fall_behind(pair: Pair, side: str) -> None:
    """Let broker 1 miss ten batches of `t`, which is throttled on the side `leader` or `follower`.

    It is started again, and the side has its rate.
    """
    await pair.create(**{f"{side}.replication.throttled.replicas": "*"})
    append(pair, b"first")
    await until_equal(pair)
    await pair.stop(1)
    for _ in range(BATCHES):
        append(pair, VALUE)
    await eventually(lambda: pair.on(0).high_watermark == BATCHES + 1)
    limit(pair, 0, side)


def limit(pair: Pair, broker_id: int, side: str) -> None:
    dynamic = pair.by_id[broker_id].broker.dynamic
    dynamic.set_broker({f"{side}.replication.throttled.rate": str(RATE)})


async def rounds(pair: Pair, count: int = ROUNDS) -> None:
    """Wait until broker 1 has looked `count` times at what it may ask for."""
    (fetcher,) = pair.by_id[1].broker.replication._fetchers.values()
    looks = 0
    look = type(fetcher)._look

    async def counted(self: object) -> object:
        nonlocal looks
        looks += 1
        return await look(self)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(fetcher), "_look", counted)
        await eventually(lambda: looks >= count)


async def catch_up(pair: Pair) -> tuple[int, int]:
    """Move the clock by 500 ms again and again; return the ms and the bytes of the way."""
    began_ms, began_offset = pair.clock.now_ms(), pair.on(1).log_end_offset
    while pair.on(1).log_end_offset < pair.on(0).log_end_offset:
        pair.clock.advance(500)
        await rounds(pair, 2)
    return pair.clock.now_ms() - began_ms, (BATCHES + 1 - began_offset) * BATCH_BYTES


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_replica_that_is_behind_is_filled_at_the_rate(pair: Pair, side: str) -> None:
    await fall_behind(pair, side)
    await pair.start(1, **ONE_BATCH, **{"replica.fetch.response.max.bytes": "1"})
    limit(pair, 1, side)
    quota = pair.by_id[0 if side == "leader" else 1].broker.replication_quotas
    throttle = quota.leader if side == "leader" else quota.follower
    await eventually(lambda: throttle.is_exceeded or pair.on(1).log_end_offset == BATCHES + 1)

    await rounds(pair)
    held_at = pair.on(1).log_end_offset
    await rounds(pair)
    assert pair.on(1).log_end_offset == held_at < BATCHES + 1

    elapsed_ms, size_bytes = await catch_up(pair)
    assert size_bytes <= RATE * elapsed_ms / 1000 + 2 * BATCH_BYTES
    await until_equal(pair)
    await eventually(lambda: sorted(pair.on(0).replicas.isr) == [0, 1])  # type: ignore[union-attr]


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_replica_in_sync_is_not_throttled(pair: Pair, side: str) -> None:
    await pair.create(**{f"{side}.replication.throttled.replicas": "0:0,0:1"})
    append(pair, b"first")
    await until_equal(pair)
    for broker_id in (0, 1):
        limit(pair, broker_id, side)
        quotas = pair.by_id[broker_id].broker.replication_quotas
        quotas.leader.record(1 << 30)
        quotas.follower.record(1 << 30)
    for _ in range(3):
        append(pair, VALUE)
        await until_equal(pair)


async def test_the_throttle_of_another_partition_holds_nobody(pair: Pair) -> None:
    await pair.create(**{"follower.replication.throttled.replicas": "7:1"})
    limit(pair, 1, "follower")
    pair.by_id[1].broker.replication_quotas.follower.record(1 << 30)
    append(pair, VALUE)
    await until_equal(pair)
