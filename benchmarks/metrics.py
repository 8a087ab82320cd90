"""The metrics of a run and the marks that minibroker has to reach: data, and its judge."""

from collections.abc import Mapping
from typing import NamedTuple

KAFKA_39, KAFKA_44, KFAKE, KFAKE_DISK = "kafka-3.9.1", "kafka-4.4.0", "kfake", "kfake-disk"
SUBJECT = "minibroker"
LOAD_SIZES_BYTES = (100, 1_000, 10_000)
SPREAD_LOADS = ((12, 100), (100, 200))
"""Partitions of the topics of row `produce_to`, and bytes of their records."""
IN_FLIGHT = (1, 5, 50)
RAW_PARTITIONS = (6, 12, 100)
"""Partitions of one raw Produce request, besides one."""
QUOTA_LIMITS_MB = (1, 10)


class Bar(NamedTuple):
    """A mark to reach: `factor` times what the broker `of` has, or `factor` itself."""

    factor: float
    of: str | None = None

    def value(self, values: Mapping[str, float]) -> float | None:
        """Return the mark in the metric's unit; None when the broker it depends on was not
        measured.
        """
        if self.of is None:
            return self.factor
        return self.factor * values[self.of] if self.of in values else None


class Metric(NamedTuple):
    """One line of the table. `row` is what --rows takes; all bars of a kind are to be reached."""

    name: str
    row: str
    label: str
    unit: str
    is_higher_better: bool = False
    must: tuple[Bar, ...] = ()
    aim: tuple[Bar, ...] = ()

    def reaches(self, value: float, bar_value: float) -> bool:
        """Return whether `value` is as good as `bar_value`."""
        return value >= bar_value if self.is_higher_better else value <= bar_value

    def times_better(self, value: float, other: float) -> float | None:
        """Return how many times better `value` is than `other`; below 1 it is worse."""
        better, worse = (value, other) if self.is_higher_better else (other, value)
        return better / worse if worse else None

    def strictest(self, bars: tuple[Bar, ...], values: Mapping[str, float]) -> float | None:
        """Return the mark that reaches all of `bars`; None without bars or when one cannot be
        known.
        """
        marks = [bar.value(values) for bar in bars]
        known_marks = [mark for mark in marks if mark is not None]
        if not known_marks or len(known_marks) < len(marks):
            return None
        return max(known_marks) if self.is_higher_better else min(known_marks)

    def verdict(self, values: Mapping[str, float]) -> str:
        """`aim`, `must` or `SHORT` for minibroker's value; empty where nothing is demanded.

        A question mark at its end: a bar was left out because its broker was not measured.
        """
        if SUBJECT not in values or not self.must:
            return ""
        value = values[SUBJECT]
        must, aim = self.strictest(self.must, values), self.strictest(self.aim, values)
        if must is not None and not self.reaches(value, must):
            return "SHORT"
        if aim is not None and self.reaches(value, aim):
            return "aim" if must is not None else "aim?"
        if must is None:
            return ""
        return "must" if aim is not None or not self.aim else "must?"


def _size(size_bytes: int) -> str:
    return f"{size_bytes // 1000} KB" if size_bytes >= 1000 else f"{size_bytes} B"


def _produce_metrics() -> list[Metric]:
    """Return the rate of ProducerPerformance, and the broker's CPU time for it, by kind of load."""
    loads = [(str(size), "produce", _size(size)) for size in LOAD_SIZES_BYTES]
    loads += [
        (f"to_{partitions}", "produce_to", f"{size_bytes} B to {partitions} partitions")
        for partitions, size_bytes in SPREAD_LOADS
    ]
    loads.append(("lz4", "produce_lz4", "1 KB, lz4, opened and checked"))
    rates = [
        Metric(
            f"produce_{name}",
            row,
            f"ProducerPerformance acks=1, {load}",
            "records/s",
            True,
            must=(Bar(1.5, KAFKA_39),),
            aim=(Bar(1.1, KFAKE_DISK),),
        )
        for name, row, load in loads
    ]
    costs = [
        Metric(
            f"produce_cpu_{name}",
            row,
            f"broker CPU per GB in, {load}",
            "s/GB",
            must=(Bar(0.5, KAFKA_39),),
            aim=(Bar(1, KFAKE_DISK),),
        )
        for name, row, load in loads
    ]
    return rates + costs


def _consume_metrics() -> list[Metric]:
    metrics = [
        Metric(
            f"{row}_{size}",
            row,
            f"{tool}, {_size(size)}, fetch",
            "MB/s",
            True,
            must=(Bar(1, KAFKA_39),),
            aim=(Bar(1.3, KAFKA_39),),
        )
        for row, tool in (("consume", "ConsumerPerformance"), ("assigned", "assigned consumer"))
        for size in LOAD_SIZES_BYTES
    ]
    metrics += [
        Metric(
            f"assigned_cpu_{size}",
            "assigned",
            f"broker CPU per GB out, {_size(size)}",
            "s/GB",
            must=(Bar(1, KAFKA_39),),
            aim=(Bar(1, KFAKE_DISK),),
        )
        for size in LOAD_SIZES_BYTES
    ]
    return metrics


def _quota_metrics() -> list[Metric]:
    metrics = []
    for tool, name in (("produce", "ProducerPerformance"), ("consume", "ConsumerPerformance")):
        for limit_mb in QUOTA_LIMITS_MB:
            label = f"{name} at {limit_mb} MB/s"
            prefix = f"quota_{tool}_{limit_mb}"
            least, most = (Bar(0.9, KAFKA_39),), (Bar(1.1, KAFKA_39),)
            metrics += [
                Metric(f"{prefix}_least", "quotas", f"{label}, let through", "MB", True, least),
                Metric(f"{prefix}_most", "quotas", f"{label}, not more", "MB", must=most),
                Metric(f"{prefix}_off", "quotas", f"{label}, off later", "%", must=(Bar(5),)),
            ]
    metrics += [
        Metric(
            "quota_neighbour", "quotas", "unlimited client, beside / alone", "", True, (Bar(0.8),)
        ),
        Metric("quota_hot_path", "quotas", "raw Produce, no quota / stub", "", True, (Bar(0.97),)),
    ]
    return metrics


def _scrape_metrics() -> list[Metric]:
    """Return the metrics of the scrapes: a cost is shown when the whole interval of its median is
    within the bar.
    """
    metrics = [
        Metric("scrapes_alone", "scrapes", "1,000 Produce a second, p99", "ms"),
        Metric("scrapes_live", "scrapes", "… with 10 GET /health/live a second", "ms"),
        Metric("scrapes_during", "scrapes", "… with 10 scrapes a second", "ms"),
    ]
    bar = (Bar(10),)
    for name, label, must in (
        ("control", "GET /health/live on that p99", ()),
        ("cost", "1,000 scrapes on that p99", bar),
    ):
        metrics += [
            Metric(f"scrapes_{name}", "scrapes", label, "%", must=must),
            Metric(f"scrapes_{name}_least", "scrapes", "… its 95 % interval, from", "%"),
            Metric(f"scrapes_{name}_most", "scrapes", "… to", "%", must=must),
        ]
    return metrics


METRICS: tuple[Metric, ...] = (
    Metric(
        "start",
        "start",
        "start to first Metadata answer",
        "s",
        must=(Bar(0.1, KAFKA_44),),
        aim=(Bar(0.120),),
    ),
    Metric("idle_rss", "memory", "resident, idle", "MB", must=(Bar(45),), aim=(Bar(35),)),
    Metric(
        "loaded_rss", "memory", "resident, after the load", "MB", must=(Bar(120),), aim=(Bar(80),)
    ),
    *_produce_metrics(),
    *_consume_metrics(),
    Metric("create_topic", "topics", "create topic, p50", "ms", must=(Bar(2),), aim=(Bar(0.5),)),
    Metric("round_trip_p50", "latency", "produce acks=all round trip, p50", "ms"),
    Metric("round_trip_p99", "latency", "produce acks=all round trip, p99", "ms"),
    Metric(
        "end_to_end_p50",
        "latency",
        "produce → consume, p50",
        "ms",
        must=(Bar(1, KAFKA_39), Bar(1, KAFKA_44)),
        aim=(Bar(1, KFAKE), Bar(1, KFAKE_DISK)),
    ),
    Metric("end_to_end_p99", "latency", "produce → consume, p99", "ms"),
    Metric("new_group", "group", "new group to first record, p50", "ms"),
    *(
        Metric(
            f"raw_{count}",
            "raw",
            f"raw Produce, {count} in flight",
            "requests/s",
            True,
            must=(Bar(factor, KAFKA_39),),
            aim=(Bar(1, KFAKE_DISK),),
        )
        for count, factor in zip(IN_FLIGHT, (1, 2, 4), strict=True)
    ),
    *(
        Metric(
            f"raw_to_{partitions}_{count}",
            "raw",
            f"raw Produce to {partitions} partitions, {count} in flight",
            "requests/s",
            True,
            must=(Bar(1, KAFKA_39),),
            aim=(Bar(1, KFAKE_DISK),),
        )
        for partitions in RAW_PARTITIONS
        for count in IN_FLIGHT
    ),
    *(
        Metric(
            f"offsets_{count}",
            "offsets",
            f"OffsetCommit, {count} in flight",
            "requests/s",
            True,
            must=(Bar(2, KAFKA_39),),
        )
        for count in IN_FLIGHT
    ),
    *(
        Metric(f"offsets_cpu_{count}", "offsets", f"broker CPU, {count} in flight", "µs/commit")
        for count in IN_FLIGHT
    ),
    Metric("rebalances", "rebalances", "200 groups of 5 form at once", "ms"),
    Metric(
        "rebalances_cpu",
        "rebalances",
        "broker CPU, 200 groups of 5 form",
        "ms",
        must=(Bar(1, KAFKA_39),),
    ),
    Metric(
        "offsets_start",
        "offsets_start",
        "start with 100,000 committed offsets",
        "s",
        must=(Bar(1),),
    ),
    Metric(
        "transactions",
        "transactions",
        "ProducerPerformance, 100 ms transactions, 1 KB",
        "records/s",
        True,
        must=(Bar(1, KAFKA_39),),
        aim=(Bar(1.5, KAFKA_39),),
    ),
    Metric(
        "transactions_cpu",
        "transactions",
        "broker CPU, produced in 100 ms transactions",
        "s/GB",
        must=(Bar(1, KAFKA_39),),
        aim=(Bar(0.5, KAFKA_39),),
    ),
    Metric(
        "transaction_p50",
        "transactions",
        "transaction of one record, p50",
        "ms",
        must=(Bar(1, KAFKA_39),),
        aim=(Bar(0.5, KAFKA_39),),
    ),
    Metric("suite_topics", "suites", "100 tests, a topic each (--quick: 10)", "s"),
    Metric("suite_brokers", "suites", "30 tests, a broker each (--quick: 3)", "s"),
    Metric("fixture_first", "fixture", "a process' first broker for tests, start", "ms"),
    Metric("fixture_start", "fixture", "each further one, start", "ms", must=(Bar(5),)),
    Metric("fixture_reset", "fixture", "… reset between two tests", "ms", must=(Bar(2),)),
    *_scrape_metrics(),
    *_quota_metrics(),
)
ROWS = tuple(dict.fromkeys(metric.row for metric in METRICS))
EXTRA_ROWS = ("quotas", "suites", "fixture", "scrapes")
USUAL_ROWS = tuple(row for row in ROWS if row not in EXTRA_ROWS)
"""Rows of a run without a choice: the others take minutes or compare nothing."""
