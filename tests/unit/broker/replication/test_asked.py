"""A part of a follower's request, and whether the answer still fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.partitions.role import Follower
from minibroker.broker.replication.asked import asked_of
from tests.unit.broker.replication.records import append, until_equal

if TYPE_CHECKING:
    from tests.unit.broker.replication.conftest import Pair


async def test_an_answer_fits_until_the_role_or_the_log_changes(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a", b"b")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()
    partition = pair.on(1)
    role = partition.role
    assert isinstance(role, Follower)
    asked = asked_of(partition, role)
    message = asked.to_message(0, 1000)
    assert (message.partition, message.partition_max_bytes) == (0, 1000)
    assert (message.fetch_offset, message.last_fetched_epoch, message.log_start_offset) == (2, 0, 0)
    assert asked.is_as_before
    assert asked == asked_of(partition, role)

    partition.take_role(role._replace(epoch=role.epoch + 1))
    assert not asked.is_as_before
    partition.take_role(role)
    pair.by_id[1].partitions.truncate(partition, 1)
    assert not asked.is_as_before
    assert asked_of(partition, role).offset == 1
