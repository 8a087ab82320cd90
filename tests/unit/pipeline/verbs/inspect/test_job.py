"""Decisions of `inspect` without Spark: errors before the start, and facts of what was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from minibroker.broker.storage import names
from minibroker.pipeline import inspect
from minibroker.pipeline.errors import JobUsageError, PipelineError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.verbs.inspect.facts import FrequentKey, PartitionFacts, TopicFacts
from minibroker.pipeline.verbs.inspect.job import check, topic_facts
from minibroker.pipeline.verbs.inspect.plan import InspectPlan
from minibroker.pipeline.verbs.inspect.tallies import FACTS, Tally, TopicTally
from tests.support.batches import batch

if TYPE_CHECKING:
    from pathlib import Path


def plan(log_dir: Path, *topics: str, report: Path | None = None) -> InspectPlan:
    return InspectPlan(Kafka(), topics, str(log_dir), None if report is None else str(report))


def test_missing_topics_are_reported_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / names.segment_file(0, names.LOG)).write_bytes(batch(b"v"))
    check(plan(tmp_path))
    check(plan(tmp_path, "orders", report=tmp_path / "page.html"))
    with pytest.raises(PipelineError, match="no partition of topic order; there are orders"):
        check(plan(tmp_path, "order"))
    with pytest.raises(PipelineError, match="is no directory"):
        check(plan(tmp_path / "nowhere"))
    with pytest.raises(PipelineError, match=r"^hdfs://name/logs is not .* give file:/"):
        check(plan(tmp_path)._replace(log_dir="hdfs://name/logs"))
    check(plan(tmp_path)._replace(log_dir=tmp_path.as_uri()))
    with pytest.raises(PipelineError, match=r"page\.html cannot be written"):
        inspect(log_dir=tmp_path, report=tmp_path / "nowhere" / "page.html")


def test_the_facts_of_a_topic_are_those_of_its_tally() -> None:
    """A partition without a record is there, and a key that goes on has a sign of it."""
    keys = [b"k" * 70, b"k" * 70, b"\xff", None]
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array(["t"] * 4),
            pa.array([1] * 4, pa.int32()),
            pa.array([5, 6, 7, 9], pa.int64()),
            pa.array([5_000, 20_000, 7_000, -1], pa.int64()),
            pa.array(keys, pa.binary()),
            pa.array([1, None, 3, 4000], pa.int32()),
        ],
        names=list(FACTS),
    )
    tally = Tally()
    tally.add(rows)
    facts = topic_facts("t", [0, 1], tally.topics["t"])
    empty, full = facts.partitions
    assert empty == PartitionFacts(0)
    assert full == PartitionFacts(1, 4, 4145, 5, 9, 5_000, 20_000, 1, 1, 2, 1, 13_000)
    assert (facts.slice_ms, [cut.start_ms for cut in facts.slices]) == (500, [5000, 7000, 20_000])
    assert facts.frequent_keys == (FrequentKey("k" * 64 + "…", 2, 1), FrequentKey("\\xff", 1, 1))
    assert (facts.smallest_bytes, facts.median_bytes, facts.largest_bytes) == (4, 70, 4000)
    assert topic_facts("t", [0], TopicTally()) == TopicFacts("t", (empty,))


def test_neither_topics_nor_a_directory_is_wrong_usage() -> None:
    with pytest.raises(JobUsageError, match="give topics or log_dir"):
        inspect()
