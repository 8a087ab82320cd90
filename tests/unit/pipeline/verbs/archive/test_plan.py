"""Plans of an archive, and options that do not go together."""

from __future__ import annotations

import pytest

from minibroker.cli.declaration import InWords, options_of
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.options.shared import trigger_of
from minibroker.pipeline.verbs.archive.job import reader_options
from minibroker.pipeline.verbs.archive.plan import VERB, ArchivePlan, check

NAMES = {field.name: InWords({}).name_of(field) for field in options_of(VERB.plan)}


def test_its_progress_is_beside_its_output() -> None:
    assert ArchivePlan(Kafka(), "d").checkpoint == "d/_minibroker/checkpoint"


@pytest.mark.parametrize("file_format", ["parquet", "delta"])
def test_an_archive_that_follows_makes_a_batch_a_minute(file_format: str) -> None:
    ending = ArchivePlan(Kafka(), "d", ("a",), format=file_format)
    assert ending.trigger_ms is None
    following = ending._replace(follow=True)
    assert following.trigger_ms == 60_000
    assert following._replace(every_ms=5).trigger_ms == 5


def test_our_source_makes_the_pause_itself() -> None:
    plan = ArchivePlan(Kafka(), "d", ("a",), follow=True, every_ms=300_000)
    assert trigger_of(plan.trigger_ms) == "1000 milliseconds"
    assert reader_options(plan)["batchPause"] == "300000ms"
    assert "batchPause" not in reader_options(plan._replace(follow=False, every_ms=None))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topics": ()}, "either --topic or --pattern"),
        ({"pattern": "b"}, "either --topic or --pattern"),
        ({"every_ms": 5}, "--every is for a job with --follow"),
        ({"storage": {"s3.region": "x"}}, "--storage is for a directory such as s3://BUCKET/DIR"),
        ({"checkpoint_directory": "s3://b/c"}, "--checkpoint is on another file system than --to"),
        (
            {"to": "s3://b/d", "checkpoint_directory": "c", "format": "json"},
            "--checkpoint is on another file system than --to",
        ),
        ({"catalog": {"type": "sql"}}, "--catalog and --table go together"),
        ({"table": "a.b"}, "--catalog and --table go together"),
        ({"catalog": {"a": "b"}, "table": "a.b", "format": "delta"}, "--catalog is for iceberg"),
        ({"catalog": {"a": "b"}, "table": "a"}, "--table 'a': expected NAMESPACE.NAME"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], text: str) -> None:
    plan = ArchivePlan(Kafka(), "d", ("a",), format="iceberg")
    check(plan, NAMES)
    with pytest.raises(JobUsageError, match=text):
        check(plan._replace(**options), NAMES)  # type: ignore[arg-type]
