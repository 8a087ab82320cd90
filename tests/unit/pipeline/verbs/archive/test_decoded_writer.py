"""A batch with decoded columns: decided once, published and committed by whoever comes next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.tables.data_files import DataFile, Layout
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.values.decoding import SchemaKey
from minibroker.pipeline.verbs.archive.decoded_sink import DecodedBatch, RecordRules
from minibroker.pipeline.verbs.archive.decoded_writer import DecodedBatchWriter
from minibroker.pipeline.verbs.archive.plan import ArchivePlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FILE = DataFile("topic=a/date=2026-11-24/x.parquet", "a", "2026-11-24", 1, 10)
UNSEEN = [("value", SchemaKey(7))]
BATCH = BatchId("query", 3)
RULES = RecordRules()


class Table:
    """A table that counts commits; with `dies` the next one does not happen."""

    def __init__(self) -> None:
        self.commits: list[tuple[BatchId, list[DataFile]]] = []
        self.dies = False

    def has(self, batch: BatchId) -> bool:
        return any(batch == done for done, _ in self.commits)

    def commit(self, batch: BatchId, files: Sequence[DataFile]) -> bool:
        if self.dies:
            raise KeyboardInterrupt
        self.commits.append((batch, list(files)))
        return True

    def layout(self, batch: BatchId, target_bytes: int) -> Layout:
        return Layout("/x", "", pa.schema([]), target_bytes, "stem")

    def columns(self) -> pa.Schema:
        return pa.schema([])

    def take_in(self, types: Mapping[str, pa.DataType]) -> None:
        """Take all."""


class Decodings:
    """Decodings that only count what they learn."""

    def __init__(self) -> None:
        self.learned: list[Any] = []

    def types(self) -> Mapping[str, pa.DataType]:
        return {}

    def columns(self) -> list[Any]:
        return []

    def is_changed(self) -> bool:
        return False

    def learn(self, unseen: Any) -> None:
        self.learned.append(unseen)


class DeadLetters:
    """A place that counts what is published."""

    def __init__(self) -> None:
        self.published: list[Sequence[str]] = []

    def publish(self, spark: Any, batch: BatchId, paths: Sequence[str]) -> None:
        self.published.append(paths)


class Batch:
    """A frame that nobody reads."""

    sparkSession = None  # noqa: N815  Spark's name


class Writer(DecodedBatchWriter):
    """A writer whose tasks have fixed outcomes."""

    outcomes: list[DecodedBatch]

    def _written(self, batch: Any, identity: BatchId, layout: Layout, stage: str) -> DecodedBatch:
        return self.outcomes.pop(0)


def writer(directory: Path, table: Table, *outcomes: DecodedBatch) -> tuple[Writer, DeadLetters]:
    plan = ArchivePlan(Kafka(), str(directory), ["a"], schema="x INT", format="iceberg")
    place: Any = DeadLetters()
    no_decodings: Any = Decodings()
    new_writer = Writer(
        table, LocalFiles(), plan, decodings=no_decodings, dead_letters=place, rules=RULES
    )
    new_writer.outcomes = list(outcomes)
    return new_writer, place


def test_new_schemas_are_learned_before_anything_counts(tmp_path: Path) -> None:
    table = Table()
    first, place = writer(
        tmp_path, table, DecodedBatch([FILE], [], UNSEEN), DecodedBatch([FILE], [], [])
    )
    first.store(Batch(), BATCH)  # type: ignore[arg-type]
    assert first._decodings.learned == [UNSEEN]  # type: ignore[attr-defined]
    assert (table.commits, place.published) == ([(BATCH, [FILE])], [[]])
    first.store(Batch(), BATCH)  # type: ignore[arg-type]
    assert len(table.commits) == 1


def test_a_batch_that_was_decided_is_not_decoded_again(tmp_path: Path) -> None:
    """The first run dies behind its dead letters; the next has no outcome of its own to give."""
    table = Table()
    table.dies = True
    first, place = writer(tmp_path, table, DecodedBatch([FILE], [FILE], []))
    with pytest.raises(KeyboardInterrupt):
        first.store(Batch(), BATCH)  # type: ignore[arg-type]
    table.dies = False
    second, again = writer(tmp_path, table)
    second.store(Batch(), BATCH)  # type: ignore[arg-type]
    assert again.published == place.published
    assert place.published[0][0].endswith(FILE.path)
    assert table.commits == [(BATCH, [FILE])]
    assert second.metrics == {3: {"written_rows": 1, "set_aside_rows": 1}}
    assert LocalFiles().names(str(tmp_path / "_minibroker" / "decoded")) == []


def test_schemas_without_end_and_a_damaged_decision(tmp_path: Path) -> None:
    endless, _ = writer(tmp_path, Table(), *[DecodedBatch([], [], UNSEEN)] * 20)
    with pytest.raises(PipelineError, match="batch 3 met new schemas 20 times"):
        endless.store(Batch(), BATCH)  # type: ignore[arg-type]
    path = tmp_path / "_minibroker" / "decoded" / "000000003.json"
    LocalFiles().write(str(path), json.dumps({"files": 1}))
    with pytest.raises(PipelineError, match=r"000000003.json is damaged"):
        endless.store(Batch(), BATCH)  # type: ignore[arg-type]
