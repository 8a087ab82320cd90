"""The data source of `compare`: rows of the buckets that differ, and what its writers write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from minibroker.pipeline.offsets import OffsetRange, group_ranges
from minibroker.pipeline.verbs.compare.digests import Digester
from minibroker.pipeline.verbs.compare.ranges import TaskRanges, paired
from minibroker.pipeline.verbs.compare.rules import CompareRules
from minibroker.pipeline.verbs.compare.source import (
    DIFFERENCES,
    DIGESTS,
    EVERYWHERE,
    KEY_BYTES_SHOWN,
    ROWS,
    CompareSource,
    DifferenceWriter,
    DigestWriter,
    RangesReader,
    Task,
    WrittenDifferences,
    digest_batch,
    digests_in,
    first_of,
    marked_rows,
    rows_of,
    run_of,
)

if TYPE_CHECKING:
    from pathlib import Path

TASK = Task(CompareRules(headers=False), 5, 8)


def batch(keys: list[bytes | None], partition: int = 2) -> pa.RecordBatch:
    size = len(keys)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array([b"v"] * size, pa.binary()),
            "topic": pa.array(["t"] * size),
            "partition": pa.array([partition] * size, pa.int32()),
            "offset": pa.array(range(size), pa.int64()),
            "timestamp": pa.array(range(size), pa.timestamp("us", "UTC")),
        }
    )


def test_a_task_travels_as_json() -> None:
    assert Task.from_json(TASK.to_json()) == TASK


def test_only_rows_of_wanted_buckets_leave_the_task() -> None:
    records = batch([b"%d" % number for number in range(50)])
    every = rows_of(records, 1, TASK, {2: list(range(8))})
    assert every["offset"].to_pylist() == list(range(50))
    assert set(every["side"].to_pylist()) == {1}
    some = [rows_of(records, 1, TASK, {2: [bucket], 3: [1]}) for bucket in range(8)]
    assert sum(part.num_rows for part in some) == 50
    assert all(0 < part.num_rows < 50 for part in some)
    assert rows_of(records, 1, TASK, {3: list(range(8))}).num_rows == 0
    marked = marked_rows(records, 1, TASK, {2: [0]})
    assert len(marked) == 50
    assert len(marked) - marked.null_count == some[0].num_rows


def test_partitions_that_do_not_count_are_one_place() -> None:
    task = Task(CompareRules(partition=False, headers=False), 5, 8)
    rows = rows_of(batch([b"x" * 99]), 0, task, {EVERYWHERE: list(range(8))})
    assert rows["place"].to_pylist() == [EVERYWHERE]
    assert len(rows["key"][0].as_py()) == KEY_BYTES_SHOWN + 1


def test_digests_are_rows_and_come_back() -> None:
    digester = Digester(1, TASK.rules, TASK.seed, TASK.buckets)
    digester.add(batch([b"a", b"b", None]))
    (run,) = digester.runs()
    (row,) = digest_batch([run]).to_pylist()
    assert run_of(list(row.values())) == run
    assert digest_batch([]).num_rows == 0


def test_a_writer_of_digests_leaves_them_for_the_driver(tmp_path: Path) -> None:
    result = tmp_path / "digests.json"
    writer = DigestWriter({"task": TASK.to_json(), "side": "1", "result": str(result)})
    messages = [
        writer.write(iter([batch([b"a"], 0)])),
        writer.write(iter([batch([b"a", b"b"], 1)])),
    ]
    writer.commit([*messages, None])
    assert [(run.side, run.partition, run.records) for run in digests_in(result)] == [
        (1, 0, 1),
        (1, 1, 2),
    ]


def test_differences_are_counted_and_the_first_ones_kept(tmp_path: Path) -> None:
    result = tmp_path / "differences.json"
    writer = DifferenceWriter({"examples": "2", "result": str(result)})
    rows: list[dict[str, Any]] = [
        {
            "kind": "only",
            "partitionA": None,
            "offsetA": None,
            "partitionB": number % 2,
            "offsetB": number,
            "fields": "",
            "key": None,
        }
        for number in range(9, 0, -1)
    ]
    rows.append(
        {
            **rows[0],
            "kind": "changed",
            "partitionA": 0,
            "offsetA": 7,
            "fields": "value,headers",
            "key": b"k",
        }
    )
    message = writer.write(iter([pa.RecordBatch.from_pylist(rows)]))
    writer.commit([message, WrittenDifferences({("only", 0): 1}, {"value": 1}, [])])
    report = json.loads(result.read_text())
    assert report["counts"] == [["changed", 0, 1], ["only", 0, 5], ["only", 1, 5]]
    assert report["fields"] == {"value": 2, "headers": 1}
    assert [row[3:5] for row in report["examples"]] == [[1, 9], [0, 2], [0, 4]]
    assert [row[6] for row in report["examples"]] == ["6b", "null", "null"]
    assert first_of([], 3) == []


@pytest.mark.parametrize(("work", "columns"), [(DIGESTS, 10), (ROWS, 11)])
def test_the_source_has_a_reader_and_two_writers(work: str, columns: int) -> None:
    source = CompareSource(
        {"work": work, "task": TASK.to_json(), "tasks": '[[[],[["t",0,5,9]]]]', "clients": "{}"}
    )
    assert len(source.schema().fields) == columns
    reader = source.reader(source.schema())
    assert isinstance(reader, RangesReader)
    assert [partition.value for partition in reader.partitions()] == [[[], [["t", 0, 5, 9]]]]
    options = {"task": TASK.to_json(), "side": "0", "examples": "1", "result": "x"}
    writers = {DIGESTS: DigestWriter, DIFFERENCES: DifferenceWriter}
    for name, kind in writers.items():
        writer = CompareSource({**options, "work": name}).writer(source.schema(), overwrite=False)
        assert isinstance(writer, kind)


def span(partition: int, start: int, end: int, topic: str = "a") -> OffsetRange:
    return OffsetRange(topic, partition, start, end)


def test_a_partition_is_cut_at_the_same_distance_from_its_first_offset() -> None:
    a, b = [span(0, 100, 200), span(1, 0, 0)], [span(0, 5, 95, "b"), span(2, 0, 20, "b")]
    tasks = paired(a, b, lambda ranges: group_ranges(ranges, groups_max=3))
    assert tasks == [
        TaskRanges([span(0, 100, 140)], [span(0, 5, 45, "b")]),
        TaskRanges([span(0, 140, 180)], [span(0, 45, 85, "b")]),
        TaskRanges([span(0, 180, 200)], [span(0, 85, 95, "b"), span(2, 0, 20, "b")]),
    ]


def test_one_topic_has_tasks_of_its_own() -> None:
    tasks = paired([], [span(3, 7, 9)], lambda ranges: group_ranges(ranges, groups_max=2))
    assert sorted(tasks) == [TaskRanges([], [span(3, 7, 8)]), TaskRanges([], [span(3, 8, 9)])]
    assert paired([], [], lambda ranges: group_ranges(ranges, groups_max=2)) == []
