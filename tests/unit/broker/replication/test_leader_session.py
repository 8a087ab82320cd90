"""The follower's side of a fetch session: what a request names, what an answer means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.fetch_session import EPOCH_MAX
from minibroker.broker.partitions.role import Follower
from minibroker.broker.replication.leader_session import (
    FollowerPosition,
    LeaderSession,
    position_of,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from tests.unit.broker.replication.records import append, until_equal

if TYPE_CHECKING:
    from tests.unit.broker.replication.conftest import Pair

ONE, TWO = TopicPartition("t", 1), TopicPartition("t", 2)
PARTITION: Any = object()
ID, OTHER_ID = b"\1" * 16, b"\2" * 16


def position_at(offset: int = 0, topic_id: bytes = ID) -> FollowerPosition:
    return FollowerPosition(PARTITION, topic_id, 0, offset, 0, 0)


@pytest.fixture
def session() -> LeaderSession:
    """A session 7, in which partition 1 is asked for."""
    new_session = LeaderSession()
    assert new_session.is_full
    assert new_session.tell(ONE, position_at())
    assert new_session.on_answer(7)
    return new_session


def test_only_what_changed_is_named(session: LeaderSession) -> None:
    assert (session.id, session.epoch, session.is_full) == (7, 1, False)
    assert not session.tell(ONE, position_at())
    assert session.tell(ONE, position_at(offset=5))
    assert session.tell(TWO, position_at())
    assert session.on_answer(7)
    assert session.epoch == 2
    assert set(session.positions) == {ONE, TWO}


def test_a_partition_that_is_not_wanted_any_more_is_taken_back_once(session: LeaderSession) -> None:
    session.forget(ONE)
    session.forget(TWO)  # nobody asked for it
    assert session.take_removals() == [(ID, ONE)]
    assert session.take_removals() == []
    assert session.positions == {}


def test_a_partition_that_is_wanted_again_is_named_and_not_taken_back(
    session: LeaderSession,
) -> None:
    session.forget(ONE)
    assert session.tell(ONE, position_at())
    assert session.take_removals() == []


def test_a_topic_that_was_made_anew_replaces_the_old_one(session: LeaderSession) -> None:
    assert session.tell(ONE, position_at(topic_id=OTHER_ID))
    assert session.take_removals() == [(ID, ONE)]
    assert session.positions[ONE].topic_id == OTHER_ID


def test_a_full_request_takes_nothing_back() -> None:
    session = LeaderSession()
    session.tell(ONE, position_at())
    session.forget(ONE)
    assert not session.has_a_request
    assert session.take_removals() == []


def test_a_partition_dropped_during_the_full_request_is_taken_back_by_the_next() -> None:
    session = LeaderSession()
    session.tell(ONE, position_at())
    session.take_removals()
    session.forget(ONE)
    session.on_answer(7)
    assert session.has_a_request
    assert session.take_removals() == [(ID, ONE)]


def test_an_unknown_session_is_begun_anew(session: LeaderSession) -> None:
    session.on_lost(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert (session.id, session.epoch, session.positions) == (0, 0, {})


@pytest.mark.parametrize("code", [ErrorCode.INVALID_FETCH_SESSION_EPOCH, None])
def test_a_session_in_another_state_is_ended_by_the_next_request(
    session: LeaderSession, code: ErrorCode | None
) -> None:
    session.on_lost(code)
    assert (session.id, session.epoch, session.positions) == (7, 0, {})


def test_an_incremental_answer_without_an_id_ended_the_session(session: LeaderSession) -> None:
    assert not session.on_answer(0)
    assert (session.id, session.is_full, session.has_room) == (0, True, True)


def test_a_leader_without_room_gets_full_requests_until_it_has_room() -> None:
    session = LeaderSession()
    session.tell(ONE, position_at())
    assert not session.on_answer(0)
    assert (session.is_full, session.has_room) == (True, False)
    assert session.tell(ONE, position_at())
    assert session.on_answer(9)
    assert session.has_room


def test_the_epoch_begins_again_behind_the_last_one(session: LeaderSession) -> None:
    session.epoch = EPOCH_MAX
    session.on_answer(7)
    assert session.epoch == 1


async def test_an_answer_fits_until_the_role_or_the_log_changes(pair: Pair) -> None:
    await pair.create()
    append(pair, b"a", b"b")
    await until_equal(pair)
    await pair.by_id[1].broker.replication.close()
    partition = pair.on(1)
    role = partition.role
    assert isinstance(role, Follower)
    position = position_of(partition, role)
    message = position.to_message(0, 1000)
    assert (message.partition, message.partition_max_bytes) == (0, 1000)
    assert (message.fetch_offset, message.last_fetched_epoch, message.log_start_offset) == (2, 0, 0)
    assert position.is_unchanged
    assert position == position_of(partition, role)

    partition.take_role(role._replace(epoch=role.epoch + 1))
    assert not position.is_unchanged
    partition.take_role(role)
    pair.by_id[1].partitions.truncate(partition, 1)
    assert not position.is_unchanged
    assert position_of(partition, role).offset == 1
