"""Offsets that old consumers commit with version 0, in both homes of the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.consumer_offsets import get_offset, set_offset
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.tree import Tree


async def test_an_offset_stands_where_kafka_kept_it(new_tree: Callable[[], Tree]) -> None:
    tree = new_tree()
    await tree.open()
    try:
        assert await get_offset(tree, "g", "t", 0) is None
        await set_offset(tree, "g", "t", 0, 41)
        await set_offset(tree, "g", "t", 0, 42)
        await set_offset(tree, "g", "t", 1, -1)
        assert await get_offset(tree, "g", "t", 0) == 42
        assert await get_offset(tree, "g", "t", 1) == -1
        data, _ = await tree.get("/consumers/g/offsets/t/0")
        assert data == b"42"
        await tree.set("/consumers/g/offsets/t/0", b"many")
        with pytest.raises(CoordinationError, match="'many', expected an offset"):
            await get_offset(tree, "g", "t", 0)
        for group_id in ("", "..", "a\0b"):
            with pytest.raises(ValueError, match="not a path"):
                await set_offset(tree, group_id, "t", 0, 1)
    finally:
        await tree.close()
