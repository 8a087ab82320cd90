"""The rows of scale: every metric belongs to a row, and the table shows values, marks and notes."""

from __future__ import annotations

from benchmarks import scale
from benchmarks.metrics import KAFKA_39, SUBJECT
from benchmarks.results import Results


def test_every_row_has_its_metrics_and_the_other_way_round() -> None:
    assert {metric.row for metric in scale.METRICS} == {row.name for row in scale.ROWS}


def test_a_mark_depends_on_kafka() -> None:
    results = Results([SUBJECT, KAFKA_39])
    results.add(SUBJECT, "scale_start", 1.0)
    results.add(KAFKA_39, "scale_start", 6.0)
    results.note(KAFKA_39, "partitions", "failed, because")
    shown = scale.render(results, ["start", "partitions"])
    [line] = [line for line in shown.splitlines() if line.startswith("start: clean start")]
    assert line.split()[-4:] == ["1", "6", "2", "must"]
    assert "kafka-3.9.1, partitions: failed, because" in shown
    assert "lookup" not in shown
