"""Checkpoints that a watch of lag takes; brokers are in tests/pipeline/test_lag.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.reader_lag import PartitionLag, ReaderLag, checkpoint_of

if TYPE_CHECKING:
    from pathlib import Path


def test_lag_is_the_sum_over_partitions() -> None:
    reader = ReaderLag("g", "stable", (PartitionLag("t", 0, 5, 10), PartitionLag("t", 1, 20, 20)))
    assert reader.lag == 5


def test_an_offset_beyond_the_end_is_no_lag() -> None:
    assert PartitionLag("t", 0, 50, 10).lag == 0


def test_a_checkpoint_is_found_below_the_directory_of_a_job(tmp_path: Path) -> None:
    checkpoint = tmp_path / "job" / "_minibroker" / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    for directory in (tmp_path / "job", checkpoint):
        assert checkpoint_of(str(directory)) == str(checkpoint)


def _job_with_progress_beside(directory: Path, job: str) -> Path:
    checkpoint = directory / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    (directory / "_minibroker").mkdir()
    (directory / "_minibroker" / "job.json").write_text(f'{{"job": "{job}"}}')
    return checkpoint


def test_a_copy_is_a_reader_of_topics(tmp_path: Path) -> None:
    checkpoint = _job_with_progress_beside(tmp_path / "copy", "copy")
    assert checkpoint_of(str(tmp_path / "copy")) == str(checkpoint)


def test_directories_without_a_progress_in_topics_are_refused(tmp_path: Path) -> None:
    _job_with_progress_beside(tmp_path / "replays", "replay")
    for directory, sentence in (
        (str(tmp_path), "has no checkpoint: give the directory that a job writes to"),
        (str(tmp_path / "replays"), "is the checkpoint of a replay"),
        ("s3a://bucket/job", "is at a URL, which only Spark reads"),
    ):
        with pytest.raises(PipelineError, match=sentence):
            checkpoint_of(directory)
