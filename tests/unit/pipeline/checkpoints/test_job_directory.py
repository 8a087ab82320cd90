"""Checks of a directory before a job writes there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles

if TYPE_CHECKING:
    from pathlib import Path

FILES = LocalFiles()
JOB = {"job": "archive", "format": "csv"}


def begin_batch(checkpoint: Path, number: int, offset: int) -> None:
    """Write the files that Spark writes before it runs a batch."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    lines = ["v1", json.dumps({"conf": {}}), json.dumps({"t": {"0": offset}})]
    (checkpoint / "offsets" / str(number)).write_text("\n".join(lines))
    (checkpoint / "offsets" / f".{number}.crc").write_text("")


def test_a_new_or_empty_directory_is_nobodys(tmp_path: Path) -> None:
    assert job_directory.read_job(FILES, str(tmp_path)) == {}
    assert job_directory.read_job(FILES, str(tmp_path / "new")) == {}


def test_it_keeps_what_it_was_told_first(tmp_path: Path) -> None:
    directory = str(tmp_path / "new")
    job_directory.write_job(FILES, directory, JOB)
    job_directory.write_job(FILES, directory, {"job": "other"})
    assert job_directory.read_job(FILES, directory) == JOB
    job_directory.check_job(directory, JOB, {"job": "archive"})
    with pytest.raises(PipelineError, match="with format 'csv' and this one has format 'json'"):
        job_directory.check_job(directory, JOB, {"job": "archive", "format": "json"})


def test_a_name_that_an_earlier_version_did_not_write_is_added(tmp_path: Path) -> None:
    """It is not compared before that, and is from then on."""
    directory, identity = str(tmp_path / "new"), {**JOB, "schema": "a INT"}
    job_directory.write_job(FILES, directory, JOB)
    job_directory.check_job(directory, JOB, identity, newer=("schema",))
    job_directory.write_job(FILES, directory, {**identity, "format": "other"})
    assert job_directory.read_job(FILES, directory) == identity
    with pytest.raises(PipelineError, match="with schema 'a INT' and this one has schema 'b INT'"):
        job_directory.check_job(directory, identity, {"schema": "b INT"}, newer=("schema",))


def test_a_run_that_wrote_nothing_claims_nothing(tmp_path: Path) -> None:
    """The next run may be another job; a job keeps the name under which brokers know it."""
    directory = str(tmp_path / "new")
    job_directory.write_job(FILES, directory, {**JOB, "name": "a-1"})
    for in_result in (True, False):
        assert job_directory.claim_of(FILES, directory, None, in_result=in_result) == {}
    job_directory.write_job(FILES, directory, {"job": "copy", "name": "a-2"}, claim={})
    assert job_directory.read_job(FILES, directory) == {"job": "copy", "name": "a-1"}


def test_a_directory_belongs_to_the_job_that_wrote(tmp_path: Path) -> None:
    for number, name in enumerate(("topic=t", "metadata", "_minibroker/decoded/000000001.json")):
        directory = tmp_path / str(number)
        job_directory.write_job(FILES, str(directory), JOB)
        (directory / name).mkdir(parents=True)
        assert job_directory.claim_of(FILES, str(directory), None, in_result=True) == JOB, name
        assert job_directory.claim_of(FILES, str(directory), None, in_result=False) == {}, name
        assert job_directory.claim_of(FILES, str(directory), 0, in_result=False) == JOB, name
    job_directory.write_job(FILES, str(directory), {"job": "other"}, claim=JOB)
    assert job_directory.read_job(FILES, str(directory)) == JOB


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(PipelineError, match=r"\(letter.txt\): give a new or an empty directory"):
        job_directory.read_job(FILES, str(tmp_path))
    with pytest.raises(PipelineError, match="is a file: give a directory"):
        job_directory.read_job(FILES, str(tmp_path / "letter.txt"))


def test_a_damaged_word_is_said(tmp_path: Path) -> None:
    (tmp_path / "_minibroker").mkdir()
    (tmp_path / "_minibroker" / "job.json").write_text("{")
    with pytest.raises(PipelineError, match="is damaged"):
        job_directory.read_job(FILES, str(tmp_path))


def test_progress_is_that_of_the_newest_batch(tmp_path: Path) -> None:
    directory = str(tmp_path)
    assert job_directory.progress_of(FILES, directory) is None
    for number in (9, 10):
        begin_batch(tmp_path, number, number * 5)
    assert job_directory.progress_of(FILES, directory) == {TopicPartition("t", 0): 50}
    assert not job_directory.is_committed(FILES, directory)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "10").write_text("v1\n{}")
    assert job_directory.is_committed(FILES, directory)
    (tmp_path / "offsets" / "11").write_text("v1\n")
    with pytest.raises(PipelineError, match="is cut short"):
        job_directory.progress_of(FILES, directory)


def test_progress_of_other_topics_and_of_an_earlier_topic_of_that_name() -> None:
    offsets = {TopicPartition("a", 0): 5, TopicPartition("b", 0): 7}
    job_directory.check_topics("d", None, ["a"])
    job_directory.check_topics("d", offsets, ["a", "b", "c"])
    with pytest.raises(PipelineError, match="holds the progress of topic b, which"):
        job_directory.check_topics("d", offsets, ["a"])
    job_directory.check_not_ahead("d", offsets, {"a": {0: 5, 1: 0}, "b": {0: 8}})
    with pytest.raises(PipelineError, match="up to offset 7, but this partition ends at offset 6"):
        job_directory.check_not_ahead("d", offsets, {"a": {0: 5}, "b": {0: 6}})
    with pytest.raises(PipelineError, match="but this partition is not there"):
        job_directory.check_not_ahead("d", offsets, {"a": {0: 5}})


def test_the_time_of_a_batch_is_that_of_its_first_attempt(tmp_path: Path) -> None:
    """Spark writes it before the batch runs, and leaves it when the batch is repeated."""
    (tmp_path / "offsets").mkdir()
    progress = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1795500000123, "conf": {}})
    (tmp_path / "offsets" / "3").write_text(f"v1\n{progress}\n{{}}")
    assert job_directory.batch_time_ms(FILES, str(tmp_path), 3) == 1_795_500_000_123
    (tmp_path / "offsets" / "4").write_text("v1\n{}\n{}")
    for number in (4, 5):
        with pytest.raises(PipelineError, match=rf"offsets/{number} has no time of its batch"):
            job_directory.batch_time_ms(FILES, str(tmp_path), number)
