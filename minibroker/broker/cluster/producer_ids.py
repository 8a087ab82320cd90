"""Producer ids: unique over every broker that shares the tree, forever (KIP-98).

Ids come in blocks of 1,000. A block is taken by moving /latest_producer_id_block from the value
read to the next thousand, on condition that no other broker moved it meanwhile (compare-and-set by
version). A block that was written but never confirmed (crash, lost connection) is skipped, never
given again.

The next block is fetched when nine tenths of the current one are used, so that InitProducerId
rarely waits. All waiting requests share one fetch.

Source: KIP-98; Kafka's ZkProducerIdManager and RPCProducerIdManager (its prefetch threshold).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.codecs import (
    PRODUCER_ID_MAX,
    ProducerIdBlock,
    decode_producer_id_block,
    encode_producer_id_block,
)
from minibroker.broker.cluster.paths import PRODUCER_ID_BLOCK
from minibroker.broker.cluster.tree import BadVersion, NodeExists, NoNode
from minibroker.broker.event_loop import cancel_all
from minibroker.client.daemons import mark_retrieved
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.cluster.tree import Tree

BLOCK_SIZE: Final = 1_000
PREFETCH_AT: Final = 100
"""Ids left in the current block when the next one is fetched."""


class ProducerIds:
    """The id source of one broker. Loop thread only."""

    __slots__ = ("_broker_id", "_fetch", "_last", "_next", "_reserve", "_tree")

    def __init__(self, tree: Tree, broker_id: int) -> None:
        self._tree = tree
        self._broker_id = broker_id
        self._next = 0
        self._last = -1  # inclusive; below `_next`: nothing left
        self._reserve: ProducerIdBlock | None = None
        self._fetch: asyncio.Task[None] | None = None

    def next(self) -> int | Awaitable[int]:
        """Return a fresh id: at once if one is at hand, else an awaitable of it.

        The awaitable raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS (retriable) while the tree is
        out of reach, UNKNOWN_SERVER_ERROR when all 2**63 ids are used up.
        """
        producer_id = self._take()
        return producer_id if producer_id >= 0 else self._wait()

    def _take(self) -> int:
        """Return an id at hand, -1 if there is none."""
        if self._next > self._last:
            if self._reserve is None:
                return -1
            self._next, self._last = self._reserve.first, self._reserve.last
            self._reserve = None
        producer_id = self._next
        self._next = producer_id + 1
        if self._last - producer_id < PREFETCH_AT and self._reserve is None:
            self._start_fetch()
        return producer_id

    async def close(self) -> None:
        """Stop a fetch that is under way."""
        await cancel_all(self._fetch)

    async def _wait(self) -> int:
        while True:  # more waiters than ids in a block: the later ones wait for another block
            fetch = self._start_fetch()
            try:
                await asyncio.shield(fetch)
            except CoordinationError as error:
                raise KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    "Producer ID block is full. Waiting for next block",
                ) from error
            producer_id = self._take()
            if producer_id >= 0:
                return producer_id

    def _start_fetch(self) -> asyncio.Task[None]:
        if self._fetch is None or self._fetch.done():
            self._fetch = asyncio.get_running_loop().create_task(self._fetch_block())
            # A prefetch may fail where nobody waits: the next caller fetches again.
            self._fetch.add_done_callback(mark_retrieved)
        return self._fetch

    async def _fetch_block(self) -> None:
        self._reserve = await take_block(self._tree, self._broker_id)


async def take_block(tree: Tree, broker_id: int) -> ProducerIdBlock:
    """Take the next block out of the tree; it is on disk when this returns.

    Raises CoordinationError (tree out of reach) and KafkaError (no ids left).
    """
    while True:
        try:
            data, stat = await tree.get(PRODUCER_ID_BLOCK)
        except NoNode:
            with suppress(NodeExists):  # another broker was faster: read it
                await tree.create(PRODUCER_ID_BLOCK)
            continue
        latest = decode_producer_id_block(PRODUCER_ID_BLOCK, data)
        first = 0 if latest is None else latest.last + 1
        if first - 1 > PRODUCER_ID_MAX - BLOCK_SIZE:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Have exhausted all producerIds.")
        block = ProducerIdBlock(broker_id, first, first + BLOCK_SIZE - 1)
        try:
            await tree.set(PRODUCER_ID_BLOCK, encode_producer_id_block(block), stat.version)
        except (BadVersion, NoNode):
            continue
        await tree.flush()
        return block
