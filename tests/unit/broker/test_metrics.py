"""Request times under Kafka's names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.metrics import (
    BUCKET_COUNT,
    TIME_NAMES,
    Metrics,
    RequestMetrics,
    TimeSum,
)
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path


def test_times_have_kafkas_names() -> None:
    assert TIME_NAMES == (
        "RequestQueueTimeMs",
        "LocalTimeMs",
        "RemoteTimeMs",
        "ThrottleTimeMs",
        "ResponseQueueTimeMs",
        "ResponseSendTimeMs",
        "TotalTimeMs",
    )
    metrics = RequestMetrics("Fetch")
    assert tuple(metrics.by_name()) == TIME_NAMES
    assert metrics.by_name()["ThrottleTimeMs"] is metrics.throttle


@pytest.mark.parametrize("runs", [3, 129])
def test_times_of_all_runs_are_counted(runs: int) -> None:
    metrics = RequestMetrics("Fetch")
    for _ in range(runs):
        metrics.record(2, 8_000, 0, 7_000, 5_000)
    metrics.record(1, 1_000, 600_000, 2_000, 3_000)
    by_name = metrics.by_name()
    assert {
        name: (times.count, times.total_us, times.max_us) for name, times in by_name.items()
    } == {
        "RequestQueueTimeMs": (0, 0, 0),
        "LocalTimeMs": (2 * runs + 1, 2 * 4 * runs + 1, 4),
        "RemoteTimeMs": (1, 600, 600),
        "ThrottleTimeMs": (0, 0, 0),
        "ResponseQueueTimeMs": (2 * runs + 1, 2 * 7 * runs + 2, 7),
        "ResponseSendTimeMs": (2 * runs + 1, 2 * 5 * runs + 3, 5),
        "TotalTimeMs": (2 * runs + 1, 2 * 20 * runs + 606, 606),
    }
    assert {name: sum(times.buckets) for name, times in by_name.items()} == {
        name: times.count for name, times in by_name.items()
    }


async def test_a_long_poll_shows_as_remote_time(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t")
        part = FetchPartition(partition=0, partition_max_bytes=1000)
        poll = FetchRequest(
            max_wait_ms=40, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[part])]
        )
        async with await running.connect() as client:
            await client.call(MetadataRequest(topics=[]), 9)
            await client.call(poll, 4)
        await asyncio.sleep(0)
        requests = running.broker.services.metrics.requests
        fetch, metadata = requests["Fetch"].by_name(), requests["Metadata"].by_name()
    local, remote, total = fetch["LocalTimeMs"], fetch["RemoteTimeMs"], fetch["TotalTimeMs"]
    assert remote.count == total.count == 1
    assert remote.total_us >= 20_000
    assert total.total_us >= remote.total_us
    assert local.total_us < total.total_us
    assert metadata["TotalTimeMs"].count == 1
    assert metadata["RemoteTimeMs"].total_us == 0


def test_a_sum_counts_values_that_came_together() -> None:
    times = TimeSum()
    times.add(1000)
    times.add(3000, 3)
    assert (times.count, times.total_us, times.max_us) == (4, 10_000, 3000)


def test_nothing_counted_is_zero() -> None:
    times = TimeSum()
    assert times.quantiles_ms((0.0, 0.99)) == [0.0, 0.0]


def test_a_quantile_is_the_edge_of_its_bucket_and_never_above_the_largest() -> None:
    times = TimeSum()
    times.add(100, 90)  # 64 ≤ t < 128 µs
    times.add(900, 9)  # 512 ≤ t < 1024
    times.add(5000)
    fractions = (0.0, 0.5, 0.9, 0.95, 1.0)
    assert times.quantiles_ms(fractions) == [0.128, 0.128, 0.128, 1.024, 5.0]


def test_the_buckets_hold_the_smallest_and_the_longest_time() -> None:
    times = TimeSum()
    times.add(0)
    six_days_us = 6 * 24 * 3600 * 1_000_000
    times.add(six_days_us)
    assert times.buckets[0] == 1
    assert sum(times.buckets) == 2
    assert len(times.buckets) == BUCKET_COUNT


def test_an_api_has_one_set_of_times() -> None:
    metrics = Metrics()
    assert metrics.of_api("Fetch") is metrics.of_api("Fetch")
    assert metrics.of_api("Fetch") is not metrics.of_api("Produce")
    assert set(metrics.requests) == {"Fetch", "Produce"}
