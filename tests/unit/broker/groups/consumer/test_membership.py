"""The layer between handlers and steps: settings, ids, shards that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.groups.consumer.embedded_protocol import (
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from minibroker.broker.groups.consumer.heartbeat import Heartbeat
from minibroker.broker.groups.consumer.member import (
    Member,
    MemberState,
    holds_only,
    with_epoch,
    without_epochs,
)
from minibroker.broker.groups.consumer.membership import assignors_of, new_member_id, settings_of
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError, ProtocolError
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import ConsumerProtocolAssignment
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.scenario.consumer_rig import ConsumerRig
from tests.scenario.surroundings import ListRuntime
from tests.support.group_topics import ID, image_with, topic, topics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.groups.group import GroupRecord


def test_settings_are_kafka_4s_unless_said_otherwise() -> None:
    settings = settings_of(BrokerConfig({}), {})
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 5000)
    assert (settings.assignors, settings.migration_policy) == (
        ("uniform", "range"),
        "bidirectional",
    )
    assert settings.may_upgrade
    assert settings.may_downgrade


def test_a_policy_that_is_set_counts() -> None:
    for policy, may in (("upgrade", (True, False)), ("DOWNGRADE", (False, True))):
        config = BrokerConfig({"group.consumer.migration.policy": policy})
        settings = settings_of(config, {})
        assert (settings.may_upgrade, settings.may_downgrade) == may


def test_a_groups_own_keys_stay_within_the_brokers_limits() -> None:
    own = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "1"}
    settings = settings_of(BrokerConfig({}), own)
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (50_000, 5000)


def test_assignors_are_named_as_kafka_39_and_4_do() -> None:
    names = "range,org.apache.kafka.coordinator.group.assignor.UniformAssignor"
    assert assignors_of(BrokerConfig({"group.consumer.assignors": names})) == ("range", "uniform")
    with pytest.raises(ConfigError, match="served are uniform, range"):
        BrokerConfig({"group.consumer.assignors": "com.example.MyAssignor"})


def test_member_ids_are_like_kafkas() -> None:
    ids = {new_member_id() for _ in range(300)}
    assert len(ids) == 300
    assert {len(member_id) for member_id in ids} == {22}
    assert not any(member_id.startswith("-") for member_id in ids)


class LateRuntime(ListRuntime):
    """Records are visible when the test says so; `late` has those who are told when it is late."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[], None]] = []
        self.late: list[Callable[[ErrorCode], None]] = []

    def write(
        self,
        index: int,
        records: Sequence[GroupRecord],
        *,
        replay: Callable[[int], None],
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None = None,
        required_acks: int = -1,
    ) -> None:
        super().write(index, records, replay=replay, then=lambda: None)
        self.when_visible(index, then, failed)

    def when_visible(
        self,
        index: int,
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None = None,
    ) -> None:
        if failed is None:
            self.waiting.append(then)
        else:
            self.late.append(failed)


def test_the_session_of_a_member_whose_answer_was_late_begins_all_the_same() -> None:
    """The member is in the log. It may never come again, and then has to be fenced."""
    rig = ConsumerRig()
    rig.play("topic a 1")
    rig.runtime = late = LateRuntime()
    rig._begin()
    join = Heartbeat(
        "g", "m", 0, "client", "/host", None, None, 60_000, frozenset("a"), None, None, {}, 1
    )
    answers: list[object] = []
    rig.consumer.beat(rig.shard, join, answers.append)
    for refuse in late.late:
        refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    (answer,) = answers
    assert isinstance(answer, KafkaError)
    assert rig.group.member_count == 1
    for follow in late.waiting:
        follow()
    rig.play("advance 45000")
    assert rig.group.member_count == 0


def test_sessions_end_with_the_shard() -> None:
    rig = ConsumerRig()
    rig.play("topic a 1")
    rig.play("join m names=a")
    rig.consumer.on_shard_unloaded(rig.shard)
    assert rig.play("advance 100000") == []
    assert rig.group.member_count == 1


def test_a_look_up_ends_with_the_shard() -> None:
    """The partition may be led here again when the worker is done: its journal is another
    shard's state now, which must not find records in it that it has not made.
    """
    rig = ConsumerRig()
    rig.play("topic a 1")
    rig.play("join m regex=a")
    record_count = len(rig.runtime.records)
    rig.consumer.on_shard_unloaded(rig.shard)
    rig.play("resolve")
    assert len(rig.runtime.records) == record_count


def test_a_look_up_that_fails_is_asked_for_again() -> None:
    rig = ConsumerRig()
    rig.play("topic a 1")
    rig.play("join m regex=a")
    ((_, done),) = rig._worker.work
    rig._worker.work.clear()
    done(OSError("the worker is gone"))
    rig.play("beat m")
    assert len(rig._worker.work) == 1
    assert rig.play("resolve") == ["= Assigning epoch=2 target=1 members=m"]


# Members as values.


TOPIC, OTHER = b"t" * 16, b"o" * 16


def test_unknown_states_are_read_as_unknown() -> None:
    assert MemberState(1) is MemberState.UNREVOKED_PARTITIONS
    assert MemberState(99) is MemberState.UNKNOWN


def test_another_epoch_keeps_the_one_before() -> None:
    member = Member("m", member_epoch=4, previous_member_epoch=2).at_epoch(7)
    assert (member.member_epoch, member.previous_member_epoch) == (7, 4)


def test_reconciled_is_stable_at_the_epoch_of_the_target() -> None:
    member = Member("m", member_epoch=4)
    assert member.is_reconciled_to(4)
    assert not member.is_reconciled_to(5)
    assert not member._replace(state=MemberState.UNRELEASED_PARTITIONS).is_reconciled_to(4)


def test_epochs_of_partitions_come_and_go() -> None:
    owned = with_epoch({TOPIC: (0, 2)}, 5)
    assert owned == {TOPIC: {0: 5, 2: 5}}
    assert without_epochs(owned) == {TOPIC: (0, 2)}


def test_a_client_that_says_nothing_may_hold_anything() -> None:
    owned = with_epoch({TOPIC: (0, 1)}, 5)
    assert not holds_only(None, owned)
    assert holds_only({}, owned)
    assert holds_only({TOPIC: [1]}, owned)
    assert not holds_only({TOPIC: [1, 2]}, owned)
    assert not holds_only({OTHER: []}, owned)


# Subscriptions and assignments of classic consumers.


TOPICS = topics_of(image_with(topic(3)))


def test_a_subscription_is_read_with_ids_of_topics_that_exist() -> None:
    subscription = ConsumerProtocolSubscription(
        topics=["t", "u"],
        owned_partitions=[
            TopicPartition(topic="t", partitions=[2]),
            TopicPartition(topic="gone", partitions=[0]),
        ],
        rack_id="r",
    ).to_bytes(3)
    copy = read_subscription(subscription, TOPICS)
    assert (copy.topic_names, copy.owned, copy.rack_id) == ({"t", "u"}, {ID: [2]}, "r")


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    subscription = b"\0\7" + ConsumerProtocolSubscription(topics=["t"]).to_bytes(3)[2:] + b"more"
    assert read_subscription(subscription, TOPICS).topic_names == {"t"}
    assert version_of(subscription) == 3


@pytest.mark.parametrize("broken", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\1\0\0\0\5"])
def test_a_malformed_subscription_is_reported(broken: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_subscription(broken, TOPICS)


def test_assignments_come_back_as_they_were() -> None:
    assignment = write_assignment({ID: (0, 2), bytes(16): (1,)}, 1, TOPICS)
    assert read_assignment(assignment, TOPICS) == ({ID: (0, 2)}, False)


def test_data_of_an_assignors_own_is_noticed() -> None:
    assignment = ConsumerProtocolAssignment(user_data=b"x").to_bytes(1)
    assert read_assignment(assignment, TOPICS) == ({}, True)
