"""The file manager of a query's checkpoint, by the place of the checkpoint and its files."""

from __future__ import annotations

from typing import Any

import pytest

from minibroker.pipeline.checkpoints.checkpoint_files import (
    ADAPTIVE,
    FOR_THIS_MACHINE,
    SETTING,
    start_query,
)


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
