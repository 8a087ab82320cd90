"""The ids of topics beside a checkpoint, and a checkpoint that begins a topic anew."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.spark import source_topics
from minibroker.pipeline.spark.source_topics import Gap, SkippedOffsets, gone_note

if TYPE_CHECKING:
    from pathlib import Path

FILES = LocalFiles()


def test_ids_are_added_and_replaced(tmp_path: Path) -> None:
    directory = str(tmp_path / "archive")
    assert source_topics.read_ids(FILES, directory) == {}
    source_topics.write_ids(FILES, directory, {"a": "1"})
    source_topics.write_ids(FILES, directory, {"b": "2"})
    source_topics.write_ids(FILES, directory, {"a": "3"})
    assert source_topics.read_ids(FILES, directory) == {"a": "3", "b": "2"}


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "_minibroker").mkdir()
    (tmp_path / "_minibroker" / "topics.json").write_text("{")
    with pytest.raises(PipelineError, match=r"topics\.json is damaged .* begin anew"):
        source_topics.read_ids(FILES, str(tmp_path))


def test_a_topic_is_another_one_only_with_another_id() -> None:
    ids = {"same": "1", "other": "2", "gone": "3", "old cluster": "4"}
    now = {"same": "1", "other": "9", "new": "5", "old cluster": ""}
    assert source_topics.recreated(ids, now) == ["other"]


def test_a_topic_starts_over_and_the_others_stay(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    position = {"a": {"0": 50, "1": 60, "2": 70}, "b": {"0": 7}}
    for number in (0, 1):
        lines = ["v1", json.dumps({"conf": {}}), json.dumps(position)]
        (offsets / str(number)).write_text("\n".join(lines))

    source_topics.start_over(FILES, str(tmp_path), {"a": {0: 0, 1: 3}})

    assert job_directory.progress_of(FILES, str(tmp_path)) == {
        TopicPartition("a", 0): 0,
        TopicPartition("a", 1): 3,
        TopicPartition("b", 0): 7,
    }
    assert (offsets / "1").read_text().splitlines()[:2] == ["v1", '{"conf": {}}']
    assert json.loads((offsets / "0").read_text().splitlines()[2]) == position


def test_nothing_starts_over_before_the_first_batch(tmp_path: Path) -> None:
    source_topics.start_over(FILES, str(tmp_path), {"a": {0: 0}})
    assert list(tmp_path.iterdir()) == []


A0, A1, B0 = (TopicPartition(*place) for place in (("a", 0), ("a", 1), ("b", 0)))
ENDS = {"a": {0: 100, 1: 100}, "b": {0: 100}}


def test_a_gap_is_there_once_and_counts() -> None:
    skipped = SkippedOffsets()
    position = {A0: 10, A1: 20, B0: 30}
    starts = {"a": {0: 60, 1: 20}, "b": {0: 0}}
    assert skipped.find(position, starts, ENDS) == [Gap(A0, 10, 60)]
    assert skipped.find(position, starts, ENDS) == []
    # Retention goes on before the next batch; then the batch is done, and it goes on again.
    assert skipped.find(position, {"a": {0: 65}}, ENDS) == [Gap(A0, 60, 65)]
    assert skipped.find({A0: 70}, {"a": {0: 65}}, ENDS) == []
    assert skipped.find({A0: 70}, {"a": {0: 71}}, ENDS) == [Gap(A0, 70, 71)]
    assert skipped.offsets == 50 + 5 + 1


def test_a_lost_tail_is_named_and_not_counted() -> None:
    skipped = SkippedOffsets()
    gaps = skipped.find({A0: 50}, {"a": {0: 0}}, {"a": {0: 20}})
    assert [gap.note().sentence for gap in gaps] == [
        "a-0 was read up to offset 50 and ends at 20: it has lost its tail, and new records before "
        "offset 50 are not read"
    ]
    assert skipped.find({A0: 50}, {"a": {0: 0}}, {"a": {0: 20}}) == []
    assert skipped.offsets == 0


def test_a_topic_that_is_gone_is_named_once() -> None:
    skipped = SkippedOffsets()
    assert skipped.find_gone({A0: 1, A1: 2, B0: 3}, ["b"]) == ["a"]
    assert skipped.find_gone({A0: 1, A1: 2, B0: 3}, ["b"]) == []
    assert skipped.find({A0: 1}, {}, {}) == []
    assert "topic 'a' is gone" in gone_note("a").sentence


def test_a_gap_is_a_sentence_and_fields() -> None:
    note = Gap(A0, 10, 60).note()
    assert note.sentence == (
        "a-0: the records from offset 10 to before 60 were removed before they were read; 50 "
        "offsets skipped"
    )
    assert note.fields == {
        "skipped": "a-0",
        "from_offset": 10,
        "to_offset": 60,
        "skipped_offsets": 50,
    }
