"""Membership carries out the steps: records before answers, timers, all are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.groups.classic.group import (
    TOPICS_MAX,
    ClassicGroup,
    State,
    subscribed_topics,
    topics_of,
)
from minibroker.broker.groups.classic.group_value import group_of
from minibroker.broker.groups.classic.member import Member
from minibroker.broker.groups.classic.membership import ClassicMembership, new_member_id
from minibroker.broker.groups.group import CLASSIC, Group
from minibroker.broker.groups.member_requests import Departure, Join, JoinAnswer, Sync
from minibroker.broker.groups.records import decode_record
from minibroker.broker.groups.steps import ClassicSettings
from minibroker.broker.timers import Timers
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.support.in_process import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.groups.group import GroupRecord


SESSION_MS = 10_000


class Shard:
    """The part of a `GroupShard` that membership needs: groups, and a journal that may refuse."""

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self.groups: dict[str, Group] = {}
        self.deleted_groups: set[str] = set()
        self.records: list[GroupRecord] = []
        self.failure: ErrorCode | None = None

    def write(
        self,
        records: list[GroupRecord],
        *,
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None = None,
        apply: Callable[[], None] | None = None,
    ) -> None:
        if self.failure is not None:
            raise KafkaError(self.failure)
        self.records += records
        if apply is not None:
            apply()
        else:
            group = self.last_stored()
            self.groups[group.group_id] = group
        then()

    def when_visible(
        self, then: Callable[[], None], failed: Callable[[ErrorCode], None] | None = None
    ) -> None:
        then()

    def last_stored(self) -> ClassicGroup:
        entry = decode_record(*self.records[-1])
        assert entry is not None
        return group_of(entry.key.group, entry.value)


class Rig:
    """Membership on a clock moved by hand, with one shard."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.shard: Any = Shard()
        self.membership = ClassicMembership(
            clock=self.clock,
            timers=self.timers,
            settings=ClassicSettings(0, 10, 1_000, 60_000),
            new_member_id=lambda name: f"{name}-1",
        )

    @property
    def group(self) -> ClassicGroup:
        group = self.shard.groups["g"]
        assert isinstance(group, ClassicGroup)
        return group

    def join(self, name: str, member_id: str = "", **other: Any) -> list[Any]:
        """Join; the answers, at most one, come into the list."""
        answers: list[Any] = []
        join = Join(
            member_id, None, name, "/h", "consumer", (("range", b""),), SESSION_MS, SESSION_MS
        )
        self.membership.join(self.shard, "g", join._replace(**other), answers.append)
        return answers

    def sync(self, member_id: str, generation: int, **shares: bytes) -> list[Any]:
        answers: list[Any] = []
        shares_by_name = {name.replace("_", "-"): share for name, share in shares.items()}
        sync = Sync(member_id, None, generation, None, None, shares_by_name)
        self.membership.sync(self.shard, "g", sync, answers.append)
        return answers

    def leave(self, *leaving: Departure) -> Any:
        """One code per entry, or the error of the whole request."""
        answers: list[Any] = []
        self.membership.leave(self.shard, "g", leaving, answers.append)
        (codes,) = answers
        return codes

    def stable(self) -> None:
        """One member, a-1, in generation 1."""
        joined = self.join("a")
        self.clock.advance(0)
        assert joined[0].error is ErrorCode.NONE
        assert self.sync("a-1", 1, a_1=b"share")[0].assignment == b"share"


@pytest.fixture
async def rig() -> Rig:
    return Rig()


def test_the_id_of_a_new_member_can_be_answered() -> None:
    """A longer one made the answer impossible, and every later DescribeGroups of the group."""
    member_id = new_member_id("ä" * 32_767)
    assert member_id.startswith("ä" * 8_000)
    assert len(member_id.encode()) < 32_767


def test_member_ids_are_the_clients_name_and_random() -> None:
    first, second = new_member_id("client"), new_member_id("client")
    assert first != second
    assert first.startswith("client-")
    assert len(first) == len("client-") + 36


async def test_a_new_group_is_stored_before_anything_else(rig: Rig) -> None:
    rig.join("a")
    stored = rig.shard.last_stored()
    assert stored.is_simple
    assert stored.generation_id == 0


async def test_a_group_that_cannot_be_stored_does_not_come_to_be(rig: Rig) -> None:
    rig.shard.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    (answer,) = rig.join("a")
    assert (answer.error, answer.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert rig.shard.groups == {}
    assert len(rig.timers) == 0


async def test_shares_are_stored_before_they_are_given(rig: Rig) -> None:
    rig.stable()
    assert rig.shard.last_stored().members["a-1"].assignment == b"share"
    assert rig.group.state is State.STABLE


async def test_shares_that_cannot_be_stored_are_not_given(rig: Rig) -> None:
    joined = rig.join("a")
    rig.clock.advance(0)
    assert joined[0].generation_id == 1
    rig.shard.failure = ErrorCode.NOT_COORDINATOR
    (answer,) = rig.sync("a-1", 1, a_1=b"share")
    assert (answer.error, answer.assignment) == (ErrorCode.NOT_COORDINATOR, b"")
    assert rig.group.state is State.PREPARING_REBALANCE


@pytest.mark.parametrize("session_ms", [999, 60_001])
async def test_sessions_out_of_bounds_are_refused(rig: Rig, session_ms: int) -> None:
    (answer,) = rig.join("a", session_timeout_ms=session_ms)
    assert answer.error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert rig.shard.groups == {}


async def test_a_member_id_makes_no_group(rig: Rig) -> None:
    (answer,) = rig.join("a", "a-1")
    assert (answer.error, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "a-1")
    assert rig.shard.groups == {}


async def test_requests_to_a_group_that_is_not_there(rig: Rig) -> None:
    assert rig.sync("a-1", 1)[0].error is ErrorCode.UNKNOWN_MEMBER_ID
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.membership.heartbeat(rig.shard, "g", "a-1", None, 1) is unknown
    assert rig.leave(*[Departure("a-1", None)] * 2) == [unknown] * 2


async def test_a_silent_member_goes_and_a_heartbeat_keeps_it(rig: Rig) -> None:
    rig.stable()
    rig.clock.advance(SESSION_MS - 1)
    assert rig.membership.heartbeat(rig.shard, "g", "a-1", None, 1) is ErrorCode.NONE
    rig.clock.advance(SESSION_MS - 1)
    rig.membership.keep_alive(rig.shard, rig.group, "a-1")
    rig.clock.advance(SESSION_MS - 1)
    assert rig.group.state is State.STABLE
    rig.clock.advance(1)
    assert rig.group.state is State.EMPTY
    assert rig.shard.last_stored().is_empty
    assert len(rig.timers) == 0


async def test_many_heartbeats_make_no_timers(rig: Rig) -> None:
    rig.stable()
    first_count = len(rig.timers._heap)
    for _ in range(1000):
        rig.membership.heartbeat(rig.shard, "g", "a-1", None, 1)
        rig.clock.advance(1)
    assert len(rig.timers._heap) == first_count


async def test_the_last_member_that_leaves_ends_the_group(rig: Rig) -> None:
    rig.stable()
    codes = rig.leave(Departure("a-1", None))
    assert codes == [ErrorCode.NONE]
    assert rig.shard.last_stored().is_empty
    assert len(rig.timers) == 0


async def test_a_leave_whose_record_is_refused_is_an_error(rig: Rig) -> None:
    """The member is out all the same, as in Kafka 4.4."""
    rig.stable()
    rig.shard.failure = ErrorCode.NOT_COORDINATOR
    refused = rig.leave(Departure("a-1", None))
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.NOT_COORDINATOR
    assert rig.group.is_empty


async def test_a_loaded_group_has_its_sessions(rig: Rig) -> None:
    rig.shard.groups["g"] = ClassicGroup("g", 0)
    rig.stable()
    rig.shard.groups["g"] = rig.shard.last_stored()
    rig.membership.on_shard_unloaded(Shard(1))  # type: ignore[arg-type]
    rig.membership.on_shard_loaded(rig.shard)
    rig.clock.advance(SESSION_MS)
    assert rig.group.state is State.EMPTY


async def test_a_waiting_member_is_answered_when_the_partition_goes(rig: Rig) -> None:
    rig.stable()
    joining = rig.join("b")
    rig.membership.on_shard_unloaded(rig.shard)
    assert joining == [JoinAnswer(ErrorCode.NOT_COORDINATOR, "b-1")]
    assert len(rig.timers) == 0
    rig.clock.advance(SESSION_MS)
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        rig.leave(Departure("a-1", None))


async def test_a_released_group_has_no_timers(rig: Rig) -> None:
    rig.stable()
    invited = rig.join("b", is_member_id_required=True)
    assert invited[0].error is ErrorCode.MEMBER_ID_REQUIRED
    joining = rig.join("c")
    rig.membership.release(rig.shard, rig.group, ErrorCode.REBALANCE_IN_PROGRESS)
    assert joining[0].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(rig.timers) == 0


async def test_an_adopted_group_rebalances_if_there_is_a_reason(rig: Rig) -> None:
    rig.stable()
    rig.membership.adopt(rig.shard, rig.group)
    assert rig.group.state is State.STABLE
    rig.membership.adopt(rig.shard, rig.group, "somebody left")
    assert rig.group.state is State.PREPARING_REBALANCE
    rig.clock.advance(SESSION_MS)
    assert rig.group.state is State.EMPTY


async def test_a_group_that_somebody_joined_meanwhile_is_adopted_in_its_rebalance(rig: Rig) -> None:
    rig.stable()
    joining = rig.join("b")
    assert rig.group.state is State.PREPARING_REBALANCE
    rig.membership.adopt(rig.shard, rig.group, "somebody left")
    rig.clock.advance(SESSION_MS)
    assert joining[0].error is ErrorCode.NONE
    assert set(rig.group.members) == {"b-1"}


async def test_an_empty_group_of_another_kind_gives_way(rig: Rig) -> None:
    class Empty(Group):
        serving_kind = CLASSIC

        def tombstones(self) -> list[GroupRecord]:
            return [(b"its key", None)]

    rig.shard.groups["g"] = Empty("g")
    rig.join("a")
    assert rig.shard.records[0] == (b"its key", None)
    assert rig.group.members


async def test_static_members_need_a_record_that_names_them(rig: Rig) -> None:
    old = ClassicMembership(
        clock=rig.clock, timers=rig.timers, settings=ClassicSettings(0, 10, 1, 2), value_version=2
    )
    old.check_instance_id(None)
    rig.membership.check_instance_id("one")
    with pytest.raises(KafkaError, match="UNSUPPORTED_VERSION"):
        old.check_instance_id("one")


class LateShard(Shard):
    """A shard whose records are visible, or late, when the test says so."""

    def __init__(self, group: ClassicGroup) -> None:
        super().__init__()
        self.groups[group.group_id] = group
        self.outcomes: list[tuple[Callable[[], None], Callable[[ErrorCode], None] | None]] = []
        """The two ends of each write: it is visible, or it is late."""

    def write(
        self,
        records: list[GroupRecord],
        *,
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None = None,
        apply: Callable[[], None] | None = None,
    ) -> None:
        super().write(records, then=lambda: None, apply=apply)
        self.outcomes.append((then, failed))


async def test_a_late_replacement_does_not_take_back_the_next_one(rig: Rig) -> None:
    """The member is replaced twice, and the record of the first time is not visible in time."""
    ids = (f"one-{number}" for number in range(1, 4))
    rig.membership._new_member_id = lambda _name: next(ids)
    rig.join("a", instance_id="one")
    rig.clock.advance(0)
    assert rig.sync("one-1", 1, one_1=b"share")[0].assignment == b"share"
    rig.shard = late = LateShard(rig.group)
    first_answers = rig.join("a", instance_id="one")
    second_answers = rig.join("a", instance_id="one")
    (_, refuse), (show, _) = late.outcomes
    assert [answer.error for answer in first_answers] == [ErrorCode.FENCED_INSTANCE_ID]
    assert refuse is not None
    refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    show()
    (answer,) = second_answers
    assert (answer.error, answer.member_id) == (ErrorCode.NONE, "one-3")
    codes = [
        rig.membership.heartbeat(rig.shard, "g", f"one-{number}", "one", 1) for number in (1, 2, 3)
    ]
    assert codes == [ErrorCode.FENCED_INSTANCE_ID] * 2 + [ErrorCode.NONE]


async def test_a_late_replacement_takes_nothing_back_from_a_member_of_the_next_generation(
    rig: Rig,
) -> None:
    """The other member joins again before the record of the new id is visible."""
    numbers = iter(range(1, 4))
    rig.membership._new_member_id = lambda name: f"{name}-{next(numbers)}"
    rig.join("a", instance_id="one")
    rig.join("b")
    rig.clock.advance(0)
    rig.sync("b-2", 1)
    assert rig.sync("one-1", 1, one_1=b"share")[0].assignment == b"share"
    rig.shard = late = LateShard(rig.group)
    answers = rig.join("a", instance_id="one")
    rig.join("b", "b-2", protocols=(("range", b"other"),))
    ((_, refuse),) = late.outcomes
    assert [(answer.member_id, answer.generation_id) for answer in answers] == [("one-3", 2)]
    assert refuse is not None
    refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    codes = [
        rig.membership.heartbeat(rig.shard, "g", f"one-{number}", "one", 2) for number in (1, 3)
    ]
    assert codes == [ErrorCode.FENCED_INSTANCE_ID, ErrorCode.NONE]
    assert len(answers) == 1


# One member: its protocols and its vote.


def member(*protocols: tuple[str, bytes], instance_id: str | None = None) -> Member:
    return Member(
        "m-1",
        instance_id=instance_id,
        client_id="m",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=2000,
        session_timeout_ms=1000,
        protocols=protocols,
    )


def test_it_votes_for_what_it_likes_best_of_what_all_can_do() -> None:
    protocol = member(("a", b""), ("b", b""), ("c", b""))
    assert protocol.vote({"c", "b"}) == "b"


def test_metadata_of_a_protocol_that_it_lacks_is_empty() -> None:
    protocol = member(("a", b"meta"))
    assert protocol.metadata_of("a") == b"meta"
    assert protocol.metadata_of("b") == protocol.metadata_of(None) == b""


def test_a_protocol_named_twice_counts_once() -> None:
    assert member(("a", b"1"), ("a", b"2")).names == {"a"}


def test_a_waiting_member_needs_no_heartbeat_unless_it_is_new() -> None:
    protocol = member(("a", b""))
    assert not protocol.is_alive_without_heartbeat
    protocol.join_waiter = lambda answer: None
    assert protocol.is_alive_without_heartbeat
    protocol.is_new = True
    assert not protocol.is_alive_without_heartbeat
    protocol.is_new, protocol.join_waiter, protocol.sync_waiter = False, None, lambda answer: None
    assert protocol.is_alive_without_heartbeat


def test_it_says_who_it_is() -> None:
    assert repr(member()) == "m-1 (client 'm' at /127.0.0.1)"
    assert repr(member(instance_id="i")) == "m-1, i (client 'm' at /127.0.0.1)"


# Subscriptions of members, parsed from their own bytes.


def subscription(*topics: str, version: int = 0) -> bytes:
    return ConsumerProtocolSubscription(
        topics=list(topics),
        user_data=b"anything",
        owned_partitions=[TopicPartition(topic="t", partitions=[1])],
        generation_id=3,
        rack_id="r",
    ).to_bytes(version)


@pytest.mark.parametrize("version", range(4))
def test_topics_of_every_version(version: int) -> None:
    assert topics_of(subscription("a", "b", version=version)) == ["a", "b"]


def test_topics_of_a_version_to_come() -> None:
    """Every version begins as version 0 does."""
    assert topics_of(b"\0\x63" + subscription("a", version=3)[2:] + b"more") == ["a"]


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0",
        b"what is this?",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\0\5ab",
        subscription("a")[:-1],
    ],
)
def test_malformed_subscriptions(metadata: bytes) -> None:
    with pytest.raises(ProtocolError):
        topics_of(metadata)
    assert subscribed_topics([subscription("a"), metadata]) is None


def test_a_list_that_nobody_means_is_not_read() -> None:
    count = TOPICS_MAX + 1
    with pytest.raises(ProtocolError, match="at most"):
        topics_of(b"\0\0" + count.to_bytes(4, "big") + b"\0\0" * count + b"\xff\xff\xff\xff")


def test_all_members_together() -> None:
    assert subscribed_topics([subscription("a", "b"), subscription("b", "c")]) == {"a", "b", "c"}
    assert subscribed_topics([]) == frozenset()
