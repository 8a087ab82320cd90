"""Batches of a broker's files are counted: sequences by epoch, codecs, and torn files."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa

from minibroker.pipeline.verbs.inspect.batch_tallies import COLUMNS, BatchTally
from minibroker.pipeline.verbs.inspect.facts import CodecFacts, Defect

USUAL: dict[str, Any] = {
    "topic": "t",
    "partition": 0,
    "codec": "none",
    "magic": 2,
    "records": 10,
    "sizeBytes": 100,
    "recordBytes": 200,
    "isControl": False,
    "isAborted": False,
    "producerId": 7,
    "producerEpoch": 0,
    "baseSequence": -1,
}


def tally(*rows: dict[str, Any]) -> BatchTally:
    found = BatchTally()
    whole = [{**dict.fromkeys(COLUMNS), **USUAL, **row} for row in rows]
    found.add(pa.RecordBatch.from_pylist(whole))
    return found


def sent(first: int, last: int, **more: Any) -> dict[str, Any]:
    return {"baseSequence": first, "lastSequence": last, "records": last - first + 1, **more}


def producers(found: BatchTally) -> list[tuple[int, int, int, int]]:
    return [
        (told.partition, told.producer_id, told.missing, told.repeated)
        for told in found.of_topic("t").producers
    ]


def test_sequences_that_go_on_are_sound() -> None:
    end = 2**31 - 1
    found = tally(
        sent(end - 9, end),
        sent(0, 9),
        sent(0, 0, producerEpoch=1),
        sent(10, 19),
        sent(500, 509, producerId=8),
        {"isControl": True, "producerId": 9},
        {"producerId": -1},
        {"producerId": None, "baseSequence": None, "magic": 1},
    )
    assert producers(found) == [(0, 7, 0, 0), (0, 8, 0, 0)]
    assert [told.epochs for told in found.of_topic("t").producers] == [2, 1]


def test_gaps_and_repetitions_are_counted_in_records() -> None:
    """The tally of a task, merged with that of another one."""
    found = tally(sent(0, 9), sent(13, 19), sent(13, 19), sent(20, 29), sent(35, 35))
    found.merge(pickle.loads(pickle.dumps(tally(sent(0, 4, partition=1)))))
    assert producers(found) == [(0, 7, 8, 7), (1, 7, 0, 0)]


def test_codecs_and_defects() -> None:
    found = tally(
        sent(0, 9, recordBytes=None),
        sent(10, 19, codec="zstd", isAborted=True),
        {"isControl": True, "codec": "zstd"},
        {"defect": "cut", "segment": "0.log", "position": 5, "sizeBytes": 7},
    )
    found.merge(tally(sent(0, 9, partition=1, codec="zstd")))
    assert found.of_topic("t").codecs == (
        CodecFacts("zstd", 2, 2, 20, 200, 400, 10),
        CodecFacts("none", 2, 1, 10, 100, 0, 0),
    )
    assert found.of_topic("t").defects == (Defect(0, "0.log", 5, 7, "cut"),)
    assert found.of_topic("other") == ((), (), ())
