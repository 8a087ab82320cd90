"""The ids of topics beside a checkpoint, and a checkpoint that begins a topic anew."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.offsets import TopicPartition
from minibroker.pipeline.spark import topic_identity

if TYPE_CHECKING:
    from pathlib import Path

FILES = LocalFiles()


def test_ids_are_added_and_replaced(tmp_path: Path) -> None:
    here = str(tmp_path / "archive")
    assert topic_identity.read_ids(FILES, here) == {}
    topic_identity.write_ids(FILES, here, {"a": "1"})
    topic_identity.write_ids(FILES, here, {"b": "2"})
    topic_identity.write_ids(FILES, here, {"a": "3"})
    assert topic_identity.read_ids(FILES, here) == {"a": "3", "b": "2"}


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "_minibroker").mkdir()
    (tmp_path / "_minibroker" / "topics.json").write_text("{")
    with pytest.raises(PipelineError, match=r"topics\.json is damaged .* begin anew"):
        topic_identity.read_ids(FILES, str(tmp_path))


def test_a_topic_is_another_one_only_with_another_id() -> None:
    known = {"same": "1", "other": "2", "gone": "3", "old cluster": "4"}
    now = {"same": "1", "other": "9", "new": "5", "old cluster": ""}
    assert topic_identity.recreated(known, now) == ["other"]


def test_a_topic_starts_over_and_the_others_stay(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    position = {"a": {"0": 50, "1": 60, "2": 70}, "b": {"0": 7}}
    for number in (0, 1):
        lines = ["v1", json.dumps({"conf": {}}), json.dumps(position)]
        (offsets / str(number)).write_text("\n".join(lines))

    topic_identity.start_over(FILES, str(tmp_path), {"a": {0: 0, 1: 3}})

    assert job_directory.progress_of(FILES, str(tmp_path)) == {
        TopicPartition("a", 0): 0,
        TopicPartition("a", 1): 3,
        TopicPartition("b", 0): 7,
    }
    assert (offsets / "1").read_text().splitlines()[:2] == ["v1", '{"conf": {}}']
    assert json.loads((offsets / "0").read_text().splitlines()[2]) == position


def test_nothing_starts_over_before_the_first_batch(tmp_path: Path) -> None:
    topic_identity.start_over(FILES, str(tmp_path), {"a": {0: 0}})
    assert list(tmp_path.iterdir()) == []
