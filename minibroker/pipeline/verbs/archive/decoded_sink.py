"""A data source whose tasks decode the rows of a batch and write them: `minibroker-decoded`.

Its rows are records with their date, or ranges of offsets, which the task reads by itself (`task`).

    rows ─► date ─► values.decoding ─┬─► masks ─► data_files: rows, where the table's files are
             └───────────────────────┼─► data_files: dead letters, in a directory of the batch
                                     └─► schemas that the driver has not told: no file counts

With masks a dead letter has its position and no content: what cannot be decoded cannot be masked.

It commits nothing. Once all tasks are done, Spark calls `commit` in a process beside the driver,
which writes the facts of the files into the file `result`. The driver reads them and commits. It is
a data source and no `mapInArrow`, because that needs pandas.
"""

from __future__ import annotations

import base64
import json
import pickle
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from minibroker.pipeline.errors import BadRecordError
from minibroker.pipeline.files.object_stores import ObjectStore
from minibroker.pipeline.operations import record_times
from minibroker.pipeline.operations.masked_columns import NOT_DECODED
from minibroker.pipeline.operations.record_times import Judged
from minibroker.pipeline.tables.data_files import DEAD_LETTER, DataFile, FileWriter, Layout
from minibroker.pipeline.values import decoding
from minibroker.pipeline.values.decoding import REASON, SchemaKey, decoded
from minibroker.pipeline.verbs.archive import task as archive_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

    from minibroker.pipeline.operations.masked_columns import ColumnMasks
    from minibroker.pipeline.values.decoding import ColumnDecoding, DecodedRecords

FORMAT: Final = "minibroker-decoded"
_MASKS: Final = "secret.masks"
_STORE: Final = "secret.store"
"""Options with the masks and the settings of the store: Spark shows no option whose name has
`secret` in it.
"""


@dataclass
class DecodedFiles(WriterCommitMessage):
    """The outcome of a task."""

    files: list[DataFile]
    dead: list[DataFile]
    unseen: list[tuple[str, SchemaKey]]
    unmaskable: int
    place_bits: int


class DecodedBatch(NamedTuple):
    """The outcome of all tasks of a batch."""

    files: list[DataFile]
    dead: list[DataFile]
    unseen: list[tuple[str, SchemaKey]]
    """(column, schema) that the tasks were not told; then the files do not count."""
    unmaskable: int = 0
    """Records that were left out, since they could not be masked."""
    place_bits: int = 0
    """Bits of the rules and selected fields whose places were there, see `operations.masking`."""


class DecodedSink(DataSource):
    """`frame.write.format("minibroker-decoded")`; only `decoded_writer` uses it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DecodedFilesWriter:
        return DecodedFilesWriter(self.options)


class DecodedFilesWriter(DataSourceArrowWriter):
    """The writer of a batch; made in the driver, copied to its tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._layout = layout_of(options)
        self._task = archive_task.task_of(options)
        self._columns = options["decoding"]
        self._masks = options.get(_MASKS)
        self._dead = options.get("dead", "")
        self._rules = RecordRules(*json.loads(options["rules"]))
        self._result = options["result"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> DecodedFiles:
        """Decode and write the rows of a task, in a worker."""
        rows = iterator
        if self._task is not None:
            rows = self._task.rows(iterator, self._rules.last_ms)
        decoder = RecordDecoder(
            decoding.from_json(self._columns),
            # Made by `options_of` in the driver, which sends its code to the workers in this way.
            None if self._masks is None else pickle.loads(base64.b64decode(self._masks)),
            self._rules,
        )
        good = FileWriter(self._layout)
        dead = FileWriter(dead_layout(self._dead, self._layout)) if self._dead else None
        try:
            unseen = decoder.write(rows, good, dead)
            if unseen:
                good.abandon()
                if dead is not None:
                    dead.abandon()
                return DecodedFiles([], [], unseen, 0, 0)
            dead_files = [] if dead is None else dead.close()
            return DecodedFiles(
                good.close(), dead_files, [], decoder.unmaskable, decoder.place_bits
            )
        except BaseException:
            good.abandon()
            if dead is not None:
                dead.abandon()
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Write the facts of all tasks for the driver, on its machine."""
        done = [message for message in messages if isinstance(message, DecodedFiles)]
        facts = {
            "files": [file for message in done for file in message.files],
            "dead": [file for message in done for file in message.dead],
            "unseen": sorted({unseen for message in done for unseen in message.unseen}, key=repr),
            "unmaskable": sum(message.unmaskable for message in done),
            "found": reduce(or_, (message.place_bits for message in done), 0),
        }
        Path(self._result).write_text(json.dumps(facts), encoding="utf-8")


class RecordRules(NamedTuple):
    """The rules of an archive about records that it cannot use."""

    last_ms: int | None = None
    """The last moment that a record may be dated, see `operations.record_times`; None: any."""
    fails: bool = False
    """True if a record that cannot be decoded ends the job."""
    by: Sequence[str] = ()
    """Key of the rows that the records change (`values.changes`); empty: records are rows."""


class RecordDecoder:
    """Decodes and masks the rows of a task."""

    def __init__(
        self,
        columns: Sequence[ColumnDecoding],
        masks: ColumnMasks | None,
        rules: RecordRules,
    ) -> None:
        self._columns = columns
        self._masks = masks
        self._rules = rules
        self.unmaskable = 0
        self.place_bits = 0

    def write(
        self, batches: Iterator[pa.RecordBatch], good: FileWriter, dead: FileWriter | None
    ) -> list[tuple[str, SchemaKey]]:
        """Write rows and dead letters; return the schemas that the task was not told, if any.

        Raises PipelineError for a dead letter if there is no place for it, and for a record that
        cannot be masked if such records are not left out.
        """
        unseen: dict[tuple[str, SchemaKey], None] = {}
        for batch in batches:
            judged = self._judged(batch)
            records = decoded(judged.good, self._columns, self._rules.by)
            unseen.update(dict.fromkeys(records.unseen))
            if unseen:
                continue  # the batch runs again: go on only to meet the other new schemas
            if judged.bad is not None:
                if dead is None:
                    raise _dead_letter(judged.bad)
                dead.add(judged.bad if self._masks is None else without_content(judged.bad))
            if self._masks is None:
                self._set_aside(records.dead, dead)
                good.add(records.rows)
            else:
                good.add(self._masked(records, self._masks, dead))
        return list(unseen)[: decoding.UNSEEN_MAX]

    def _set_aside(self, records: pa.RecordBatch | None, dead: FileWriter | None) -> None:
        """Write records that cannot be decoded. Raises BadRecordError: they have no place."""
        if records is None:
            return
        if dead is None or self._rules.fails:
            raise _dead_letter(records)
        dead.add(records)

    def _judged(self, batch: pa.RecordBatch) -> Judged:
        last_ms = self._rules.last_ms
        return Judged(batch, None) if last_ms is None else record_times.judged(batch, last_ms)

    def _masked(
        self, records: DecodedRecords, masks: ColumnMasks, dead: FileWriter | None
    ) -> pa.RecordBatch:
        """Return the masked rows. A reason may have a part of the value in it, so it goes, too."""
        if records.dead is not None and dead is not None and not self._rules.fails:
            at = records.dead.schema.get_field_index(REASON)
            why = pa.repeat(NOT_DECODED, records.dead.num_rows)
            dead.add(without_content(records.dead.set_column(at, REASON, why)))
        elif records.dead is not None:
            self.unmaskable += masks.left_out(records.dead)
        result = masks.of(records.rows)
        self.unmaskable += result.unmaskable
        self.place_bits |= result.place_bits
        return result.rows


def without_content(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return dead letters with their reasons and positions alone."""
    for name in ("key", "value", "headers"):
        at = records.schema.get_field_index(name)
        empty = pa.nulls(records.num_rows, records.schema.field(at).type)
        records = records.set_column(at, name, empty)
    return records


def dead_layout(directory: str, layout: Layout) -> Layout:
    """Return the layout of the dead letters of a batch."""
    return Layout(directory, "", DEAD_LETTER, layout.target_bytes, layout.stem, store=layout.store)


def options_of(
    layout: Layout,
    columns: Sequence[ColumnDecoding],
    dead: str | None,
    result: Path,
    *,
    rules: RecordRules,
    masks: ColumnMasks | None = None,
) -> dict[str, str]:
    """Return the options for a batch; `dead` is the directory of its dead letters."""
    options = {
        **layout_options(layout),
        "result": str(result),
        "decoding": decoding.to_json(columns),
        "rules": json.dumps(rules),
    }
    if dead is not None:
        options["dead"] = dead
    if masks is not None:
        options[_MASKS] = base64.b64encode(pickle.dumps(masks)).decode()
    return options


def layout_options(layout: Layout) -> dict[str, str]:
    """Return a layout as options of Spark."""
    return {
        "directory": layout.directory,
        "prefix": layout.prefix,
        "schema": base64.b64encode(layout.schema.serialize()).decode(),
        "targetBytes": str(layout.target_bytes),
        "stem": layout.stem,
        "compression": layout.compression,
        **({} if layout.store is None else {_STORE: json.dumps(layout.store)}),
    }


def layout_of(options: Mapping[str, str]) -> Layout:
    """Return the layout that `layout_options` has turned into options."""
    return Layout(
        directory=options["directory"],
        prefix=options["prefix"],
        schema=pa.ipc.read_schema(pa.py_buffer(base64.b64decode(options["schema"]))),
        target_bytes=int(options["targetBytes"]),
        stem=options["stem"],
        compression=options["compression"],
        store=ObjectStore(*json.loads(options[_STORE])) if _STORE in options else None,
    )


def written_in(result: Path) -> DecodedBatch:
    """Return the outcome that `commit` has written."""
    facts = json.loads(result.read_text(encoding="utf-8"))
    return DecodedBatch(
        [DataFile(*fields) for fields in facts["files"]],
        [DataFile(*fields) for fields in facts["dead"]],
        [(column, SchemaKey(id_, tuple(message))) for column, (id_, message) in facts["unseen"]],
        facts["unmaskable"],
        facts["found"],
    )


def _dead_letter(dead: pa.RecordBatch) -> BadRecordError:
    record = dead.slice(0, 1).select(["topic", "partition", "offset", REASON]).to_pylist()[0]
    return BadRecordError(
        f"record {record['topic']}-{record['partition']} offset {record['offset']} cannot be "
        f"used: {record[REASON]}; give --dead-letters TOPIC or DIR to set such records aside, "
        "or correct the schema"
    )
