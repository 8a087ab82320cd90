"""The judge: bars relative to other brokers, both directions, and what a missing broker does."""

import pytest

from benchmarks.metrics import METRICS, Bar, Metric

FASTER = Metric(
    "rate",
    "raw",
    "rate",
    "requests/s",
    True,
    must=(Bar(2, "kafka-3.9.1"),),
    aim=(Bar(1, "kfake-disk"),),
)
LIGHTER = Metric(
    "delay", "latency", "delay", "ms", must=(Bar(1, "kafka-3.9.1"), Bar(1, "kafka-4.4.0")), aim=()
)


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [(199, "SHORT"), (200, "must"), (499, "must"), (500, "aim"), (501, "aim")],
)
def test_verdict_of_a_higher_is_better_metric(rate: float, verdict: str) -> None:
    values = {"minibroker": rate, "kafka-3.9.1": 100, "kfake-disk": 500}
    assert FASTER.verdict(values) == verdict


@pytest.mark.parametrize(("delay", "verdict"), [(4, "must"), (4.1, "SHORT"), (6, "SHORT")])
def test_every_bar_of_a_kind_must_be_reached(delay: float, verdict: str) -> None:
    values = {"minibroker": delay, "kafka-3.9.1": 5.0, "kafka-4.4.0": 4.0}
    assert LIGHTER.verdict(values) == verdict


def test_a_missing_broker_leaves_the_verdict_open() -> None:
    assert FASTER.verdict({"minibroker": 300, "kafka-3.9.1": 100}) == "must?"
    assert FASTER.verdict({"minibroker": 600, "kfake-disk": 500}) == "aim?"
    assert FASTER.verdict({"minibroker": 400, "kfake-disk": 500}) == ""
    assert FASTER.verdict({"kafka-3.9.1": 100, "kfake-disk": 500}) == ""


def test_times_better_is_above_one_when_better_in_either_direction() -> None:
    assert FASTER.times_better(300, 100) == 3
    assert LIGHTER.times_better(2.0, 6.0) == 3
    assert LIGHTER.times_better(0.0, 6.0) is None


def test_metrics_are_distinct_and_every_aim_has_a_must() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    assert all(metric.must for metric in METRICS if metric.aim)
