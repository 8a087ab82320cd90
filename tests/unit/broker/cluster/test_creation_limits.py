"""The limits of one request that creates, and that no source of topics goes past them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.creation_limits import (
    check_added_partitions,
    check_new_partitions,
    check_records,
    records_of_topic,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.cluster import Cluster


@pytest.mark.parametrize("check", [check_new_partitions, check_added_partitions, check_records])
def test_ten_thousand_are_allowed_and_one_more_is_not(check: Callable[[int], None]) -> None:
    check(10_000)
    with pytest.raises(KafkaError) as caught:
        check(10_001)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION


def test_a_topic_its_configs_and_its_partitions_are_a_record_each() -> None:
    assert records_of_topic(3, {"a": "b", "c": "d"}) == 6


@pytest.mark.parametrize("count", [10_000, 10_001, 2**31 - 1])
async def test_no_request_makes_a_topic_above_the_limit_of_partitions(
    cluster: Cluster, count: int
) -> None:
    with pytest.raises(KafkaError) as caught:
        await cluster.create_topic("large", count)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    assert not cluster.image.topics


async def test_no_request_adds_partitions_above_the_limit(
    cluster: Cluster,
) -> None:
    await cluster.create_topic("t", 2)
    with pytest.raises(KafkaError) as caught:
        await cluster.create_partitions("t", 10_003)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    assert len(cluster.image.topics["t"].partitions) == 2
