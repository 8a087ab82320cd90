"""ConsumerGroupHeartbeat: a pattern and permissions; the protocol when it is off. Rest: compat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.regexes import REFRESH_INTERVAL_MIN_MS
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from minibroker.kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from minibroker.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from tests.support.in_process import InProcessBroker, ManualClock
from tests.support.principals import connect_as
from tests.support.waiting import eventually
from tests.unit.broker.handlers.acl_requests import ALICE, SETTINGS, acl, allow

if TYPE_CHECKING:
    from pathlib import Path

BOB = "User:bob"


@pytest.mark.parametrize(
    "setting",
    [
        {"group.version": "0"},
        {"group.coordinator.rebalance.protocols": "classic"},
        {"minibroker.advertised.kafka.version": "3.9"},
    ],
)
async def test_without_the_feature_the_protocol_is_not_served(
    tmp_path: Path, setting: dict[str, str]
) -> None:
    """Kafka answers like this with `group.version` 0 or only the classic protocol enabled.

    3.9 does so in ZooKeeper mode.
    """
    async with InProcessBroker(tmp_path, setting) as running, await running.connect() as client:
        beat = await client.call(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"), 0)
        assert beat.error_code == ErrorCode.UNSUPPORTED_VERSION
        described = await client.call(ConsumerGroupDescribeRequest(group_ids=["g", "h"]), 0)
        assert [(group.group_id, group.error_code) for group in described.groups] == [
            ("g", ErrorCode.UNSUPPORTED_VERSION),
            ("h", ErrorCode.UNSUPPORTED_VERSION),
        ]


async def test_a_pattern_matches_only_topics_that_its_client_may_describe(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = {**SETTINGS, "group.consumer.assignment.interval.ms": "0"}
    async with InProcessBroker(tmp_path, settings, clock=clock) as running:
        for name in ("a-1", "a-2", "b-1"):
            await running.create_topic(name, 1)
        await running.broker.services.groups.journal.ensure_topic()
        await allow(
            running,
            acl(Operation.READ, ResourceType.GROUP, "g"),
            acl(Operation.READ, ResourceType.TOPIC, "a-1"),
            acl(Operation.READ, ResourceType.TOPIC, "b-1"),
            acl(Operation.READ, ResourceType.GROUP, "g", principal=BOB),
            acl(Operation.READ, ResourceType.TOPIC, "a-2", principal=BOB),
        )
        shard = running.broker.services.groups.shard("g")
        join = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex="a-.*",
            topic_partitions=[],
        )
        async with await connect_as(running, ALICE) as alice:
            joined = await alice.call(join, 1)
            assert joined.error_code == 0
            group = shard.groups["g"]
            assert isinstance(group, ConsumerGroup)
            await eventually(lambda: group.resolved_regexes)
            assert group.resolved_regexes["a-.*"].topics == {"a-1"}
            beat = ConsumerGroupHeartbeatRequest(
                group_id="g", member_id="m", member_epoch=joined.member_epoch
            )
            answer = await alice.call(beat, 1)
        ids = [part.topic_id for part in answer.assignment.topic_partitions]
        assert ids == [running.broker.cluster.image.topics["a-1"].topic_id]
        # A member of the classic protocol has it looked up again, for there is a new topic.
        await running.create_topic("a-3", 1)
        clock.ms += REFRESH_INTERVAL_MIN_MS + 1
        metadata = ConsumerProtocolSubscription(topics=["a-2"], user_data=None).to_bytes(1)
        joined_later = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        async with await connect_as(running, BOB) as bob:
            assert (await bob.call(joined_later, 2)).error_code == 0
            await eventually(lambda: group.resolved_regexes["a-.*"].topics == {"a-2"})
