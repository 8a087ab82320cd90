"""Generated ids: one after the other, above those that a configuration may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.broker_ids import generate_broker_id
from minibroker.broker.cluster.shared import SharedTree
from minibroker.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path


async def test_each_broker_gets_the_next_id(tmp_path: Path) -> None:
    home = SharedTree(tmp_path / "metadata.db", SystemClock())
    keeper = home.session()
    await keeper.open()
    assert [await generate_broker_id(home.session(), 1000) for _ in range(3)] == [1001, 1002, 1003]
    assert await generate_broker_id(home.session(), 5) == 9
    await keeper.close()
