"""A batch of an archive with records that may be bad: decoded and written once, then committed.

    rows ─► tasks: decoded_sink ─┬─► a schema is new ─► registry, columns of the table ─► once more
                                 └─► all known ─► decision ─► dead letters ─► table.commit

The decision is a file with the names of the batch's files, made in one step before anything is
published. A batch that runs again after a kill finds it and decodes nothing. So its dead letters
and its rows stay the same ones, even if the registry has learned a schema meanwhile.

    DIR/_minibroker/decoded/000000007.json     the decision
    DIR/_minibroker/dead-letters/…             files of the batch's dead letters
"""

from __future__ import annotations

import json
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa

from minibroker.pipeline.checkpoints.job_directory import DECISIONS, batch_time_ms
from minibroker.pipeline.errors import PipelineError, damage
from minibroker.pipeline.files.paths import JOB_DIRECTORY, absolute, join
from minibroker.pipeline.operations.record_times import latest_ms
from minibroker.pipeline.operations.rows import PLACE_BITS, ROWS, SET_ASIDE, UNMASKABLE
from minibroker.pipeline.tables.data_files import DataFile
from minibroker.pipeline.tables.table import is_repeated
from minibroker.pipeline.values.decoding import bytes_column
from minibroker.pipeline.verbs.archive import decoded_sink
from minibroker.pipeline.verbs.archive.decoded_sink import DecodedSink
from minibroker.pipeline.verbs.archive.table_writer import ArchiveBatchWriter, few_tasks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.operations.masked_columns import ColumnMasks
    from minibroker.pipeline.spark.dead_letters import DeadLetters
    from minibroker.pipeline.tables.data_files import Layout
    from minibroker.pipeline.tables.table import BatchId
    from minibroker.pipeline.verbs.archive.decoded_sink import DecodedBatch, RecordRules
    from minibroker.pipeline.verbs.archive.decodings import Decodings
    from minibroker.pipeline.verbs.archive.plan import ArchivePlan

_DEAD: Final = "dead-letters"
_ATTEMPTS_MAX: Final = 20
"""Runs of a batch that meet new schemas, at most: each tells all that it meets."""
_PLACE_BITS: Final = "found"
"""Name of `BatchFiles.place_bits` in the file of a decision, as earlier versions wrote it."""


class GrowingTable(Protocol):
    """A table whose columns can become more; see `tables.table.Table`."""

    def layout(self, batch: BatchId, target_bytes: int) -> Layout: ...
    def has(self, batch: BatchId) -> bool: ...
    def commit(self, batch: BatchId, files: Sequence[DataFile]) -> bool: ...
    def columns(self) -> pa.Schema: ...
    def take_in(self, types: Mapping[str, pa.DataType]) -> None: ...


class BatchFiles(NamedTuple):
    """The files of a batch, which nothing changes any more."""

    files: list[DataFile]
    dead: list[str]
    """Absolute paths of the files of its dead letters."""
    rows: int
    """Records of the batch, dead letters too."""
    unmaskable: int
    """Records that were left out, since they could not be masked."""
    place_bits: int
    """Bits of the rules and selected fields whose places were there."""
    set_aside: int
    """Records that are dead letters."""


class DecodedBatchWriter(ArchiveBatchWriter):
    """Writes into a table, with decoded columns if there are any, and with dead letters."""

    def __init__(
        self,
        table: GrowingTable,
        files: FileSystem,
        plan: ArchivePlan,
        *,
        decodings: Decodings,
        dead_letters: DeadLetters | None,
        rules: RecordRules,
        masks: ColumnMasks | None = None,
        task: Mapping[str, str] | None = None,
    ) -> None:
        """Args:
        table: to write into.
        files: of the directory of the archive.
        plan: of the archive.
        decodings: of the archive's columns; begun.
        dead_letters: place of records that cannot be used; None: they fail the batch.
        rules: about such records; the last moment of dates is that of each batch.
        masks: of the decoded columns; None: they are written as they are.
        task: of `task.options_of`, for batches of ranges; None: they have rows.
        """
        super().__init__(files, plan)
        self._masks = masks
        self._rules = rules
        self._table = table
        self._decodings = decodings
        self._dead_letters = dead_letters
        self._task = task

    def store(self, batch: DataFrame, identity: BatchId) -> None:
        if is_repeated(self._table, identity):
            return
        decision = self._decided(identity)
        if decision is None:
            decision = self._decide(batch, identity)
        if self._dead_letters is not None:
            self._dead_letters.publish(batch.sparkSession, identity, decision.dead)
        self._table.commit(identity, decision.files)
        if self._task is not None:
            self.rows[identity.number] = decision.rows
        metrics = {ROWS: decision.rows - decision.set_aside, SET_ASIDE: decision.set_aside}
        if self._masks is not None:
            metrics |= {UNMASKABLE: decision.unmaskable, PLACE_BITS: decision.place_bits}
        self.metrics[identity.number] = metrics
        self._forget(identity)

    def close(self) -> None:
        self._decodings.close()

    def _decide(self, batch: DataFrame, identity: BatchId) -> BatchFiles:
        """Decode and write the batch until every schema in it is known; note its files."""
        for _ in range(_ATTEMPTS_MAX):
            stage = self._new_stage(identity)
            self._make_room()
            if self._masks is not None:
                self._masks.check(self._decodings.types(), self._plan.operations)
            layout = self._table.layout(identity, self._plan.target_bytes)
            outcome = self._written(batch, identity, layout, stage)
            if not outcome.unseen:
                dead = [join(stage, file.path) for file in outcome.dead]
                set_aside = sum(file.rows for file in outcome.dead)
                decision = BatchFiles(
                    outcome.files,
                    dead,
                    rows=sum(file.rows for file in outcome.files) + set_aside,
                    unmaskable=outcome.unmaskable,
                    place_bits=outcome.place_bits,
                    set_aside=set_aside,
                )
                self._files.create(self._path(identity), _decision_text(identity, decision))
                return self._decided(identity) or decision
            self._decodings.learn(outcome.unseen)
        raise PipelineError(
            f"batch {identity.number} met new schemas {_ATTEMPTS_MAX} times, "
            f"{len(outcome.unseen)} of them the last time: its values are of too many schemas"
        )

    def _make_room(self) -> None:
        """Add what the schemas have and the table has not."""
        types = dict(self._decodings.types())
        now = self._table.columns()
        for decoding in self._decodings.columns():
            if decoding.keeps_bytes and decoding.column in types:
                types[bytes_column(decoding.column)] = pa.binary()
        if any(name not in now.names for name in types) or self._decodings.is_changed():
            self._table.take_in(types)
            self._decodings.note_taken_in()

    def _written(
        self, batch: DataFrame, identity: BatchId, layout: Layout, stage: str
    ) -> DecodedBatch:
        rules = self._rules
        if rules.last_ms is not None:
            now_ms = batch_time_ms(self._files, self._plan.checkpoint, identity.number)
            rules = rules._replace(last_ms=latest_ms(now_ms))
        batch.sparkSession.dataSource.register(DecodedSink)
        with tempfile.TemporaryDirectory(prefix="minibroker-archive-") as directory:
            result = Path(directory, "files.json")
            dead = None if self._dead_letters is None else stage
            options = decoded_sink.options_of(
                layout, self._decodings.columns(), dead, result, rules=rules, masks=self._masks
            )
            rows = few_tasks(batch) if self._task is None else batch
            writer = rows.write.format(decoded_sink.FORMAT).options(**options, **(self._task or {}))
            writer.mode("append").save()
            return decoded_sink.written_in(result)

    def _decided(self, identity: BatchId) -> BatchFiles | None:
        """Return the decision about a batch, None if there is none. Raises PipelineError."""
        path = self._path(identity)
        text = self._files.read(path)
        if text is None:
            return None
        try:
            facts: dict[str, Any] = json.loads(text)
            files = [DataFile(*fields) for fields in facts["files"]]
            counts = (facts.get(name, 0) for name in ("unmaskable", _PLACE_BITS, "set_aside"))
            return BatchFiles(files, facts["dead"], facts["rows"], *counts)
        except (ValueError, KeyError, TypeError) as error:
            raise damage(path, error) from error

    def _forget(self, identity: BatchId) -> None:
        """Remove what batches up to this one, which are committed, no longer need."""
        for directory in (DECISIONS, _DEAD):
            path = join(self._plan.to, JOB_DIRECTORY, directory)
            for name in self._files.names(path):
                if name[:9] <= _name(identity):
                    self._files.remove(join(path, name))

    def _new_stage(self, identity: BatchId) -> str:
        name = f"{_name(identity)}-{uuid.uuid4()}"
        return absolute(join(self._plan.to, JOB_DIRECTORY, _DEAD, name))

    def _path(self, identity: BatchId) -> str:
        return join(self._plan.to, JOB_DIRECTORY, DECISIONS, f"{_name(identity)}.json")


def _decision_text(identity: BatchId, decision: BatchFiles) -> str:
    """Return the content of the file of a decision."""
    facts = {"query": identity.query, **decision._asdict()}
    facts[_PLACE_BITS] = facts.pop("place_bits")
    return json.dumps(facts) + "\n"


def _name(identity: BatchId) -> str:
    return f"{identity.number:09d}"
