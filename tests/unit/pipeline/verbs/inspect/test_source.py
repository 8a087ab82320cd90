"""The tasks of `inspect` as a data source, without Spark: what is written is added up."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa

from minibroker.pipeline.verbs.inspect.source import TallyWriter, _facts_of
from minibroker.pipeline.verbs.inspect.tallies import FACTS

if TYPE_CHECKING:
    from pathlib import Path


def records(partition: int, *values: bytes | None) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"k"] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": ["t"] * count,
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([1_234_567] * count, pa.timestamp("us", "UTC")),
        }
    )


def test_the_facts_of_records_are_few_columns() -> None:
    facts = _facts_of(records(3, b"abc", None))
    assert facts.schema.names == list(FACTS)
    assert facts.to_pylist()[0] == {
        "topic": "t",
        "partition": 3,
        "offset": 0,
        "ms": 1234,
        "key": b"k",
        "valueBytes": 3,
    }
    assert facts["valueBytes"].to_pylist() == [3, None]


def test_the_tallies_of_all_tasks_are_one(tmp_path: Path) -> None:
    writer = TallyWriter({"result": str(tmp_path / "tally")})
    tasks = [
        writer.write(iter([_facts_of(records(0, b"a", b"b"))])),
        writer.write(iter([_facts_of(records(1, None)), _facts_of(records(2, b""))])),
        writer.write(iter([])),
    ]
    copies = [pickle.loads(pickle.dumps(task)) for task in tasks]
    writer.commit([*copies, None])
    topic_tally = pickle.loads((tmp_path / "tally").read_bytes()).topics["t"]
    assert {number: tally.counted.records for number, tally in topic_tally.partitions.items()} == {
        0: 2,
        1: 1,
        2: 1,
    }
    assert topic_tally.frequent.most_frequent(1) == [(b"k", 1, 4, 0, 2)]
