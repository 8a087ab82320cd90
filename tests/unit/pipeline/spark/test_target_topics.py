"""The topic of a replay: its partitions, and how long it keeps records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.spark.target_topics import archived_partitions, expiry_note

if TYPE_CHECKING:
    from pathlib import Path


def checkpoint(archive: Path, offsets: str) -> None:
    directory = archive / "_minibroker" / "checkpoint" / "offsets"
    directory.mkdir(parents=True)
    (directory / "0").write_text("v1\n{}\n" + offsets)


def test_as_many_as_the_archived_topic_had(tmp_path: Path) -> None:
    checkpoint(tmp_path, '{"a": {"0": 7, "1": 0, "2": 0}, "b": {"0": 1}, "none": {"8": 0}}')

    def count(*topics: str) -> int:
        return archived_partitions(LocalFiles(), str(tmp_path), topics)

    assert count("a") == 3
    assert count("b") == 1
    assert count("b", "a") == 3
    assert count() == 3
    assert count("none") == 9
    assert count("other") == 0


def test_an_archive_that_was_never_begun_has_none(tmp_path: Path) -> None:
    assert archived_partitions(LocalFiles(), str(tmp_path), ()) == 0


def test_a_damaged_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    checkpoint(tmp_path, "")
    with pytest.raises(PipelineError, match="is cut short"):
        archived_partitions(LocalFiles(), str(tmp_path), ())


def test_a_topic_that_deletes_old_records_is_named() -> None:
    week = {"retention.ms": "604800000", "cleanup.policy": "delete"}
    note = expiry_note("orders", week)
    assert note is not None
    assert note.sentence == (
        "topic orders deletes records that are dated more than 7 d ago (retention.ms=604800000), "
        "also those of this replay: set retention.ms=-1 to keep them"
    )
    assert expiry_note("orders", {**week, "retention.ms": "-1"}) is None
    assert expiry_note("orders", {**week, "cleanup.policy": "compact"}) is None
