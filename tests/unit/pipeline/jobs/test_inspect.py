"""Decisions of `inspect` without Spark: errors before the start, and slices of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Row

from minibroker.pipeline import inspect
from minibroker.pipeline.errors import JobUsageError, PipelineError
from minibroker.pipeline.jobs.inspect import _slice_ms, check, slice_of
from minibroker.pipeline.plan import Kafka
from minibroker.pipeline.verbs.inspect import InspectPlan
from minibroker.storage import names
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
    with pytest.raises(PipelineError, match=r"page\.html cannot be written"):
        inspect(log_dir=tmp_path, report=tmp_path / "nowhere" / "page.html")


def test_time_is_cut_for_each_topic_by_its_own_span() -> None:
    rows = [Row(firstMs=5_000, lastMs=20_000), Row(firstMs=-1, lastMs=None)]
    assert (_slice_ms(rows), _slice_ms([])) == (500, 1)


def test_neither_topics_nor_a_directory_is_wrong_usage() -> None:
    with pytest.raises(JobUsageError, match="give topics or log_dir"):
        inspect()


@pytest.mark.parametrize(
    ("span_ms", "width_ms"),
    [
        (0, 1),
        (60, 1),
        (61, 2),
        (60_000, 1_000),
        (3_600_000, 60_000),
        (86_400_000, 1_800_000),
        (365 * 86_400_000, 7 * 86_400_000),
        (60 * 365 * 86_400_000 + 1, 2 * 365 * 86_400_000),
    ],
)
def test_time_is_cut_into_round_slices(span_ms: int, width_ms: int) -> None:
    assert slice_of(span_ms) == width_ms
    assert span_ms / slice_of(span_ms) <= 60
