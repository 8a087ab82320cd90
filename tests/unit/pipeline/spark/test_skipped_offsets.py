"""Records that were removed before a job came to them: each gap once, with its offsets."""

from __future__ import annotations

from minibroker.pipeline.offsets import TopicPartition
from minibroker.pipeline.spark.skipped_offsets import Gap, SkippedOffsets, gone_note

A0, A1, B0 = (TopicPartition(*where) for where in (("a", 0), ("a", 1), ("b", 0)))
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
