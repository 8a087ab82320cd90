"""A query's checkpoint: its file manager, and the one query that may write a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.pipeline.checkpoints.checkpoint_files import (
    ADAPTIVE,
    FOR_THIS_MACHINE,
    SETTING,
    start_query,
)
from minibroker.pipeline.checkpoints.query_identity import begin_batch, check_owner, query_of
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles

if TYPE_CHECKING:
    from pathlib import Path


class Spark:
    """The part of a session that is used: its settings."""

    def __init__(self, **options: str) -> None:
        self.settings = dict(options)
        self.conf: Any = self

    def get(self, key: str, default: str | None) -> str | None:
        return self.settings.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.settings[key] = value

    def unset(self, key: str) -> None:
        del self.settings[key]


class Writer:
    """Remembers the settings that a query would begin with."""

    def __init__(self, spark: Spark, error: Exception | None = None) -> None:
        self._spark = spark
        self._error = error
        self.options: dict[str, str] = {}
        self.setting_in_use: str | None = None
        self.is_adaptive: str | None = None

    def option(self, key: str, value: str) -> Writer:
        self.options[key] = value
        return self

    def start(self) -> str:
        self.setting_in_use = self._spark.settings.get(SETTING)
        self.is_adaptive = self._spark.settings.get(ADAPTIVE)
        if self._error is not None:
            raise self._error
        return "the query"


def started(
    checkpoint: str, directory: str | None = None, **options: str
) -> tuple[str | None, dict[str, str]]:
    """Return the setting that the query saw, and the settings after it."""
    spark: Any = Spark(**options)
    writer: Any = Writer(spark)
    assert start_query(spark, writer, checkpoint, directory) == "the query"
    assert writer.options == {"checkpointLocation": checkpoint}
    assert writer.is_adaptive == "false"
    return writer.setting_in_use, spark.settings


@pytest.mark.parametrize("checkpoint", ["/out/checkpoint", "file:///out/checkpoint"])
def test_on_this_machine_no_process_is_started_for_each_file(checkpoint: str) -> None:
    assert started(checkpoint) == (FOR_THIS_MACHINE, {})
    assert started(checkpoint, "/out") == (FOR_THIS_MACHINE, {})


def test_elsewhere_it_is_sparks_own_choice() -> None:
    assert started("s3a://lake/checkpoint") == (None, {})
    assert started("/checkpoint", "hdfs://lake/out") == (None, {})


def test_settings_of_the_session_stay() -> None:
    for settings in ({SETTING: "Theirs"}, {SETTING: "Theirs", ADAPTIVE: "true"}):
        assert started("/checkpoint", None, **settings) == ("Theirs", settings)


def test_a_query_that_does_not_start_leaves_no_setting() -> None:
    spark: Any = Spark()
    writer: Any = Writer(spark, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        start_query(spark, writer, "/checkpoint")
    assert (writer.setting_in_use, spark.settings) == (FOR_THIS_MACHINE, {})


def test_the_query_of_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id": "q"}')
    assert query_of(LocalFiles(), str(tmp_path)) == "q"
    (tmp_path / "metadata").write_text("{}")
    with pytest.raises(PipelineError, match="metadata is damaged"):
        query_of(LocalFiles(), str(tmp_path))


def test_another_query_may_not_write(tmp_path: Path) -> None:
    for _ in range(2):
        check_owner(LocalFiles(), str(tmp_path), "q")
    with pytest.raises(PipelineError, match="was written with another checkpoint"):
        check_owner(LocalFiles(), str(tmp_path), "another")


def test_a_batch_may_be_repeated_and_an_old_checkpoint_writes_nothing(tmp_path: Path) -> None:
    """Its next batches have numbers that were written, and other records."""
    files, directory, checkpoint = LocalFiles(), str(tmp_path), tmp_path / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id": "q"}')

    def begin(number: int, end: int) -> str:
        (checkpoint / "offsets" / str(number)).write_text(f'v1\n{{}}\n{{"t":{{"0":{end}}}}}')
        return begin_batch(files, directory, files, str(checkpoint), number)

    for number, end in ((0, 10), (1, 20), (1, 20), (2, 20), (2, 20)):
        assert begin(number, end) == "q"
    for number, end in ((1, 20), (0, 10), (2, 30)):
        with pytest.raises(PipelineError, match=f"is older than .*: the next batch is {number}, "):
            begin(number, end)
    assert begin(3, 30) == "q"
    (tmp_path / "_minibroker" / "begun.json").write_text("3")
    with pytest.raises(PipelineError, match=r"begun\.json is damaged"):
        begin(4, 40)
