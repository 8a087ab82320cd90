"""ConsumerGroupHeartbeat and ConsumerGroupDescribe while the protocol is off. The rest: compat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from minibroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path


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
