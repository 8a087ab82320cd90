"""`minibroker record`: its options, and its output."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.connection import CONNECTION
from minibroker.cli.declaration import Option, Part, Verb
from minibroker.cli.kinds import COUNT, Kind, Many, check_topic
from minibroker.cli.moments import Moment
from minibroker.cli.quantities import counted, percent, size
from minibroker.pipeline.operations.mask_rules import FieldPath, MaskRule
from minibroker.pipeline.operations.rows import RowOperations
from minibroker.pipeline.options.row_options import (
    MASK,
    MASK_SECRET_FILE,
    SAMPLE,
    SAMPLE_BY_OPTION,
    SELECT,
    SINCE,
    UNMASKABLE,
    UNTIL,
)
from minibroker.pipeline.options.row_options import check as check_operations
from minibroker.pipeline.options.shared import RECORDS
from minibroker.verbs.connecting import ClusterOptions, reader_of

if TYPE_CHECKING:
    from minibroker.cli.declaration import Names
    from minibroker.verbs.record.recording import RecordingTally


class ChosenRecords(NamedTuple):
    """The operations on the records, as the user gives them."""

    since: Annotated[Moment | None, SINCE] = None
    until: Annotated[Moment | None, UNTIL] = None
    sample: Annotated[float | None, SAMPLE] = None
    sample_by: Annotated[str | None, SAMPLE_BY_OPTION] = None
    mask: Annotated[tuple[MaskRule, ...], MASK] = ()
    mask_secret_file: Annotated[str | None, MASK_SECRET_FILE.changed(default="")] = None
    select: Annotated[tuple[FieldPath, ...], SELECT] = ()
    unmaskable: Annotated[str | None, UNMASKABLE] = None

    def operations(self) -> RowOperations:
        """Return the operations."""
        return RowOperations(
            since=self.since,
            until=self.until,
            sample=self.sample,
            sample_by=self.sample_by,
            rules=self.mask,
            fields=self.select,
            unmaskable=self.unmaskable,
            secret_file=self.mask_secret_file,
        )


class RecordPlan(NamedTuple):
    """The options of `record`."""

    topics: Annotated[
        tuple[str, ...],
        Option("TOPIC", Many("TOPIC", check_topic), "the topics to record", example="orders"),
    ]
    output: Annotated[
        str,
        Option(
            "--output",
            Kind("FILE.jsonl|DIR", completes="file"),
            "JSON lines, one record each, if it ends in .jsonl; else a new directory with segment "
            "files, which keep the batches as they are and load fastest",
            example="orders.jsonl",
            short="-o",
        ),
    ]
    last: Annotated[
        int | None,
        Option("--last", COUNT, "only the last N offsets of each partition", RECORDS, metavar="N"),
    ] = None
    operations: Annotated[RowOperations, Part(ChosenRecords, ChosenRecords.operations)] = (
        RowOperations()
    )
    connection: Annotated[ClusterOptions, Part(ClusterOptions)] = ClusterOptions()


def check(plan: RecordPlan, names: Names) -> None:
    """Raise UsageError for options that do not go together."""
    check_operations(plan.operations, names)


def run(plan: RecordPlan, out: TextIO, errors: TextIO) -> int:
    """Record the topics; return the exit code. Raises CommandError, and as `recording.record`."""
    from minibroker.pipeline.operations.mask_secret import check_given  # noqa: PLC0415  not for help
    from minibroker.seeds.operations import RecordOperations  # noqa: PLC0415  as above
    from minibroker.seeds.outputs import output_of  # noqa: PLC0415  as above
    from minibroker.verbs.record.recording import record  # noqa: PLC0415  as above
    from minibroker.verbs.streams import ProgressLine  # noqa: PLC0415  as above

    secret = check_given(plan.operations, os.environ, in_result=plan.output) or b""
    client = reader_of(plan.connection)
    start_s = time.monotonic()
    progress = ProgressLine(errors)

    def show(tally: RecordingTally) -> None:
        done = percent(tally.read_offsets, tally.offsets)
        progress.show(f"{done}, {counted(tally.records, 'record')}")

    output = output_of(Path(plan.output), plan.output)
    try:
        tally = record(
            client,
            plan.topics,
            output,
            RecordOperations(plan.operations, secret),
            last=plan.last,
            on_progress=show,
        )
    except BaseException:
        progress.clear()
        output.abandon()
        raise
    progress.clear()
    _tell(plan, tally, time.monotonic() - start_s, errors)
    return 0


def _tell(plan: RecordPlan, tally: RecordingTally, took_s: float, errors: TextIO) -> None:
    """Write what was recorded, and what was left out."""
    for topic in tally.topics:
        if topic.left_out:
            errors.write(
                f"topic {topic.name}: its settings {', '.join(topic.left_out)} are left out: "
                "minibroker does not have them\n"
            )
    if tally.unmaskable_records:
        errors.write(f"{counted(tally.unmaskable_records, 'record')} could not be masked\n")
    recorded = f"{counted(tally.records, 'record')} of {counted(len(tally.topics), 'topic')}"
    size_text = size(tally.written_bytes)
    errors.write(f"{recorded} in {plan.output}: {size_text}, in {took_s:.1f} s\n")


VERB: Final = Verb(
    name="record",
    does="write the committed records of topics as a seed, from any Kafka",
    plan=RecordPlan,
    run=run,
    groups=(RECORDS, CONNECTION),
    notes="""
A seed is loaded with `minibroker serve --seed` or `kafka.load(...)` in a test. Each partition is
read up to the end that it has when the recording begins. The file appears when it is whole: a
recording that fails, or ends by Ctrl-C, leaves none.

Masks, samples and their results are those of `minibroker pipeline`, without Spark and Java. A mask
whose place no record has ends the recording: it is mostly a wrong name, and then the right one
would be written unmasked.
""",
    examples=(
        "record orders payments -o orders.jsonl",
        "record orders -o orders-seed --bootstrap broker:9092 --kafka-config client.properties",
        "record orders -o orders.jsonl --since -1h --sample 1% --sample-by key",
        "record orders -o orders.jsonl --mask 'email=hash, card=last4' --mask-secret-file secret",
    ),
    check=check,
)
