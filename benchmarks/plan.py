"""How much of everything one run does."""

from typing import NamedTuple

DEADLINE_S = 15 * 60.0


class Plan(NamedTuple):
    """Sizes of a run. Counts of repeats are per pass; a pass starts each broker afresh."""

    start_repeats: int
    passes: int
    repeats: int
    warm_up_s: float
    raw_s: float
    topics: int
    latency_warm_up: int
    latency_samples: int
    groups: int
    rebalancing_groups: int
    load_counts: tuple[int, int, int]
    load_passes: int
    settle_s: float
    quota_s: float
    suite_topics: int
    suite_brokers: int
    fixtures: int
    scrapes: int
    scrapes_most: int


FULL = Plan(
    start_repeats=5,
    passes=2,
    repeats=3,
    warm_up_s=4.0,
    raw_s=1.5,
    topics=50,
    latency_warm_up=2_000,
    latency_samples=2_000,
    groups=5,
    rebalancing_groups=200,
    load_counts=(2_000_000, 500_000, 50_000),
    load_passes=1,
    settle_s=2.0,
    quota_s=30.0,
    suite_topics=100,
    suite_brokers=30,
    fixtures=200,
    scrapes=1_000,
    scrapes_most=3_000,
)
QUICK = Plan(
    start_repeats=1,
    passes=1,
    repeats=1,
    warm_up_s=0.5,
    raw_s=0.5,
    topics=10,
    latency_warm_up=200,
    latency_samples=300,
    groups=1,
    rebalancing_groups=20,
    load_counts=(200_000, 50_000, 5_000),
    load_passes=1,
    settle_s=0.5,
    quota_s=5.0,
    suite_topics=10,
    suite_brokers=3,
    fixtures=10,
    scrapes=60,
    scrapes_most=60,
)
