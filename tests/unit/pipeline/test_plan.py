"""Plans of jobs, as values, and invalid ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.plan import (
    ArchivePlan,
    JobUsageError,
    Kafka,
    ReplayPlan,
    RollupPlan,
    absolute,
    bytes_of,
    check_choice,
    check_topic,
    checked,
    duration_ms,
    is_path,
    is_remote,
    join,
    speed_of,
)

if TYPE_CHECKING:
    from pathlib import Path


def rollup(**given: object) -> RollupPlan:
    """A plan that is whole, but for `given`."""
    plan = RollupPlan(
        kafka=Kafka(),
        topic="t",
        window_ms=60_000,
        aggregates=("count(*)",),
        to="./d",
        schema="a INT",
    )
    return plan._replace(**given)


def test_committed_records_are_read_by_default() -> None:
    assert Kafka().options() == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "kafka.isolation.level": "read_committed",
    }
    told = Kafka("h:1", settings={"isolation.level": "read_uncommitted", "a": "b"})
    assert told.options()["kafka.isolation.level"] == "read_uncommitted"
    assert told.writer_options() == {"kafka.bootstrap.servers": "h:1", "kafka.a": "b"}


@pytest.mark.parametrize(
    ("text", "wanted_ms"),
    [("250ms", 250), ("30s", 30_000), ("1m", 60_000), ("1h30m", 5_400_000), ("2 d", 172_800_000)],
)
def test_durations(text: str, wanted_ms: int) -> None:
    assert duration_ms(text) == wanted_ms


@pytest.mark.parametrize("text", ["", "1", "m", "1x", "-1m", "0s", "1m later", "1 minute"])
def test_no_durations(text: str) -> None:
    with pytest.raises(JobUsageError, match="is no duration"):
        duration_ms(text)


def test_speeds() -> None:
    assert [speed_of(text) for text in ("max", "1x", "0.5x", "60", "1e2x")] == [
        None,
        1.0,
        0.5,
        60.0,
        100.0,
    ]
    for text in ("", "fast", "0x", "-1x", "nanx", "infx"):
        with pytest.raises(JobUsageError, match="expected 1x"):
            speed_of(text)


def test_names_of_topics() -> None:
    assert check_topic("a.B_c-9") == "a.B_c-9"
    for name in ("", ".", "..", "a/b", "a b", "a" * 250, "ä"):
        with pytest.raises(JobUsageError, match="cannot be a topic"):
            check_topic(name)


def test_choices_name_what_is_allowed() -> None:
    assert check_choice("--format", "csv", ("json", "csv")) == "csv"
    with pytest.raises(PipelineError, match="--format 'xml': expected json or csv"):
        check_choice("--format", "xml", ("json", "csv"))


def test_paths_urls_and_topics_are_told_apart() -> None:
    assert [is_path(text) for text in ("orders", "./orders", "/a", "s3a://b/c", ".", "..")] == [
        False,
        *(True,) * 5,
    ]
    assert [
        is_remote(text) for text in ("a", "/a", "file:/a", "file:///a", "s3a://b", "hdfs:/a")
    ] == [
        *(False,) * 4,
        True,
        True,
    ]
    assert join("a", "b", "c") == "a/b/c"
    assert join("s3a://b/", "c") == "s3a://b/c"


def test_a_job_keeps_its_progress_beside_its_output() -> None:
    assert ArchivePlan(Kafka(), "d").checkpoint == "d/_minibroker/checkpoint"
    assert ReplayPlan(Kafka(), "d", "t").checkpoint == "d/_minibroker/replays/t"
    assert ReplayPlan(Kafka(), "d", "t", checkpoint_directory="c").checkpoint == "c"
    assert rollup().checkpoint == "./d/_minibroker/checkpoint".removeprefix("./")
    assert rollup(to="t2", checkpoint_directory="c").checkpoint == "c"


def test_parts_that_do_not_go_together() -> None:
    archive = ArchivePlan(Kafka(), "d")
    wrong = {
        "either topics or a pattern": [archive, archive._replace(topics=("a",), pattern="b")],
        "from 1 up": [archive._replace(topics=("a",), batch_rows=0)],
        "cannot be a topic": [
            archive._replace(topics=("a/b",)),
            rollup(to="a b", checkpoint_directory="c"),
        ],
        "say which with --checkpoint": [rollup(to="t2")],
        "either a schema or an example": [rollup(schema=None), rollup(example="e")],
        "no aggregate": [rollup(aggregates=())],
        "further apart": [rollup(slide_ms=60_001)],
    }
    for sentence, plans in wrong.items():
        for plan in plans:
            with pytest.raises(JobUsageError, match=sentence):
                checked(plan)
    for plan in (archive._replace(topics=("a",)), rollup(), ReplayPlan(Kafka(), "d", "t")):
        assert checked(plan) is plan


def test_a_path_of_this_machine_is_one_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("./archive") == str(tmp_path / "archive")
    assert absolute("/archive") == "/archive"
    assert absolute("s3a://bucket/archive") == "s3a://bucket/archive"


def test_sizes() -> None:
    assert [bytes_of(text) for text in ("7", "512KB", "64 mb", "1GiB")] == [
        7,
        512 << 10,
        64 << 20,
        1 << 30,
    ]
    for text in ("", "0", "MB", "-1MB", "1TB", "1.5GB"):
        with pytest.raises(JobUsageError, match="is no size: expected for instance 64MB"):
            bytes_of(text)


def test_a_table_has_a_pace_of_its_own() -> None:
    files, table = (ArchivePlan(Kafka(), "d", ("a",), format=f) for f in ("json", "delta"))
    assert (files.trigger_ms, table.trigger_ms) == (None, 60_000)
    assert files._replace(every_ms=5).trigger_ms == 5


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"every_ms": 5}, "a time between batches is for an archive that follows"),
        ({"catalog": {"type": "sql"}}, "a catalogue needs the name of the table in it"),
        ({"table": "a.b"}, "a catalogue needs the name of the table in it"),
        ({"catalog": {"a": "b"}, "table": "a.b", "format": "delta"}, "a catalogue is for iceberg"),
        ({"catalog": {"a": "b"}, "table": "a"}, "table 'a': expected NAMESPACE.NAME"),
    ],
)
def test_tables_that_do_not_fit_together(given: dict[str, object], text: str) -> None:
    plan = ArchivePlan(Kafka(), "d", ("a",), format="iceberg")
    with pytest.raises(JobUsageError, match=text):
        checked(plan._replace(**given))  # type: ignore[arg-type]
