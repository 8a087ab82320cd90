"""`minibroker produce`: lines of standard input, or of files, as records of a topic."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Names, Option, Part, Verb
from minibroker.cli.errors import EXIT_OK, CommandError, UsageError
from minibroker.cli.kinds import CODEC, COUNT, SWITCH, TEXT, TOPIC, Kind, Many, Pairs, choice
from minibroker.cli.quantities import counted
from minibroker.verbs.connecting import ClusterOptions, writer_of
from minibroker.verbs.consume import number_of

if TYPE_CHECKING:
    from typing import Any

    from minibroker.client.write import TopicWriter, WriteOptions
    from minibroker.verbs.record_lines import LineRules, RecordPace

INPUT: Final = "Input"
DELIVERY: Final = "Delivery"
ACKS: Final[Mapping[str, int]] = {"all": -1, "-1": -1, "1": 1, "0": 0}
STDIN: Final = "standard input"


class ProducePlan(NamedTuple):
    """The options of the verb."""

    topic: Annotated[str, Option("TOPIC", TOPIC, "topic to write to", example="orders")]
    files: Annotated[
        Sequence[str],
        Option(
            "FILE",
            Many("FILE", is_split=False, completes="file"),
            "files to read in place of standard input",
        ),
    ] = ()
    keys: Annotated[
        bool,
        Option("--keys", SWITCH, "each line is a key, a tab and a value", INPUT, short="-k"),
    ] = False
    separator: Annotated[
        str,
        Option(
            "--separator",
            TEXT,
            "with --keys, the text between key and value",
            INPUT,
            default="a tab",
        ),
    ] = "\t"
    is_json: Annotated[
        bool,
        Option(
            "--json",
            SWITCH,
            "each line is an object with value, and perhaps key, headers, timestamp and "
            "partition, as consume --json writes it",
            INPUT,
        ),
    ] = False
    is_whole: Annotated[
        bool,
        Option("--whole", SWITCH, "each file is one record, and not its lines", INPUT),
    ] = False
    is_base64: Annotated[
        bool, Option("--base64", SWITCH, "keys and values of the lines are in base64", INPUT)
    ] = False
    null: Annotated[
        str | None,
        Option(
            "--null",
            TEXT,
            "a key or a value that is exactly this is null: a tombstone, if it is the value",
            INPUT,
            default="no text is null",
        ),
    ] = None
    key: Annotated[str | None, Option("--key", TEXT, "the key of every record", INPUT)] = None
    headers: Annotated[
        Mapping[str, str],
        Option("--header", Pairs(), "a header of every record", INPUT, short="-H"),
    ] = {}
    partition: Annotated[
        int | None,
        Option(
            "--partition",
            Kind("N", number_of),
            "the partition of every record",
            DELIVERY,
            short="-p",
            default="that of its key, as Java's producer chooses it",
        ),
    ] = None
    rate: Annotated[
        int | None, Option("--rate", COUNT, "records of a second, at most", DELIVERY)
    ] = None
    codec: Annotated[str, Option("--compression", CODEC, "compression of batches", DELIVERY)] = (
        "none"
    )
    acks: Annotated[
        str,
        Option(
            "--acks",
            choice(*ACKS),
            "replicas that have a record before it counts as written: all that are in sync, 1 "
            "(the leader) or 0",
            DELIVERY,
        ),
    ] = "all"
    is_repeatable: Annotated[
        bool,
        Option(
            "--no-idempotence",
            SWITCH,
            "do not number batches: one that is sent again may be stored twice",
            DELIVERY,
        ),
    ] = False
    no_create: Annotated[
        bool,
        Option(
            "--no-create",
            SWITCH,
            "fail if there is no such topic, also where the broker would make it",
            DELIVERY,
        ),
    ] = False
    connection: Annotated[ClusterOptions, Part(ClusterOptions)] = ClusterOptions()


def check(plan: ProducePlan, names: Names) -> None:
    """Raise UsageError for options that do not go together."""
    for first, second in (
        ("keys", "is_json"),
        ("keys", "key"),
        ("keys", "is_whole"),
        ("is_json", "is_whole"),
        ("is_json", "is_base64"),
        ("is_json", "null"),
        ("is_whole", "is_base64"),
    ):
        if getattr(plan, first) and getattr(plan, second):
            raise UsageError(f"{names[first]} and {names[second]} do not go together")
    if not plan.separator:
        raise UsageError(f"{names['separator']} needs a text")


def run(plan: ProducePlan, out: TextIO, errors: TextIO) -> int:
    """Write the records; return the exit code."""
    from minibroker.client.write import TopicWriter  # noqa: PLC0415  not for a help page
    from minibroker.verbs.record_lines import RecordPace  # noqa: PLC0415  as above
    from minibroker.verbs.streams import ProgressLine, ending_at_sigterm  # noqa: PLC0415  as above

    client = writer_of(plan.connection, creates_topics=not plan.no_create)
    is_typed = not plan.files and sys.stdin.isatty() and errors.isatty()
    if is_typed:
        errors.write("Each line is a record. Ctrl-D ends.\n")
    progress = ProgressLine(errors, is_quiet=is_typed)
    options = options_of(plan)
    with (
        ending_at_sigterm(),
        TopicWriter.open(
            client, plan.topic, options, lambda *_: progress.show(f"{writer.written:,} records")
        ) as writer,
    ):
        try:
            _write_all(plan, writer, RecordPace(plan.rate, time.monotonic()))
        finally:
            # Also after Ctrl-C: what a person has typed counts.
            writer.flush()
            summary = f"{counted(writer.written, 'record')} to {plan.topic}"
            progress.end(summary)
            if is_typed:
                errors.write(f"{summary}\n")
    return EXIT_OK


def options_of(plan: ProducePlan) -> WriteOptions:
    """Return the way in which records are written, of the options and the Kafka settings.

    Raises UsageError.
    """
    from minibroker.client.write import WriteOptions  # noqa: PLC0415  not for a help page

    settings = plan.connection.given_settings()
    acks = settings.get("acks", plan.acks) if plan.acks == "all" else plan.acks
    codec = settings.get("compression.type", plan.codec) if plan.codec == "none" else plan.codec
    if acks not in ACKS or codec not in CODEC.choices:
        raise UsageError(f"acks={acks} and compression.type={codec}: one of them is unknown")
    timeout = settings.get("delivery.timeout.ms", "120000")
    is_idempotent = settings.get("enable.idempotence", "true").lower() == "true"
    return WriteOptions(
        acks=ACKS[acks],
        codec=codec,
        is_idempotent=is_idempotent and not plan.is_repeatable,
        patience_s=int(timeout) / 1000 if timeout.isdecimal() else 120.0,
    )


def rules_of(plan: ProducePlan) -> LineRules:
    """Return the way in which lines are records."""
    from minibroker.verbs.record_lines import LineRules  # noqa: PLC0415  not for a help page

    return LineRules(
        has_keys=plan.keys,
        separator=plan.separator.encode(),
        key=None if plan.key is None else plan.key.encode(),
        null=None if plan.null is None else plan.null.encode(),
        is_base64=plan.is_base64,
        is_json=plan.is_json,
        headers=tuple((name, value.encode()) for name, value in plan.headers.items()),
        partition=plan.partition,
    )


def _write_all(plan: ProducePlan, writer: TopicWriter, pace: RecordPace) -> None:
    """Write the lines of all files, or the files. Raises CommandError, and as the writer."""
    for name in plan.files or ("-",):
        if name == "-":
            _write_file(plan, writer, pace, sys.stdin.buffer)
            continue
        try:
            with open(name, "rb", buffering=0) as file:  # noqa: PTH123  one open file at a time
                _write_file(plan, writer, pace, file)
        except OSError as error:
            if error.filename != name:
                raise
            raise CommandError(f"cannot read {name}: {error.strerror}") from None


def _write_file(plan: ProducePlan, writer: TopicWriter, pace: RecordPace, file: Any) -> None:
    """Write one file, or standard input. Raises CommandError, and as the writer."""
    from minibroker.verbs.record_lines import (  # noqa: PLC0415  not for a help page
        LINE_BYTES_MAX,
        chunks_of,
        lines_of,
        write_lines,
        write_whole,
    )

    rules = rules_of(plan)
    name = STDIN if file is sys.stdin.buffer else str(file.name)
    if not plan.is_whole:
        chunks = chunks_of(file.fileno(), writer.push)
        write_lines(writer, lines_of(chunks, name), rules, pace, name)
        return
    data = file.read(LINE_BYTES_MAX + 1)
    if len(data) > LINE_BYTES_MAX:
        raise CommandError(f"{name} has more than {LINE_BYTES_MAX >> 20} MB: it is one record")
    pace.wait(1)
    write_whole(writer, data, rules)


VERB: Final = Verb(
    name="produce",
    does="write lines to a topic",
    plan=ProducePlan,
    run=run,
    check=check,
    usage="TOPIC [FILE]...",
    group="Topic",
    groups=(INPUT, DELIVERY),
    notes="""\
Each line is a record, and the line its value. What is typed, or comes through a pipe, is sent at
once. It ends with the input (Ctrl-D on a terminal), when every record is acknowledged.

With acks=all a record is stored once, also when a broker fails meanwhile: batches are numbered
(from Kafka 0.11 on).
""",
    examples=(
        "produce orders",
        "produce orders --keys < orders.tsv",
        "produce orders --json orders.jsonl --compression zstd",
        "produce users --key alice --null NULL",
        "produce load --rate 100 < lines.txt",
    ),
)
