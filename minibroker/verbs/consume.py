"""`minibroker consume`: records of a topic on standard output, up to its end or on and on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Names, Option, Part, Verb
from minibroker.cli.errors import EXIT_OK, UsageError
from minibroker.cli.kinds import COUNT, SWITCH, TEXT, TOPIC, Kind, Many
from minibroker.verbs.connecting import ClusterOptions, is_committed, reader_of
from minibroker.verbs.places import BEGINNING, OffsetPlace, place_of, time_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from minibroker.client.client import Client
    from minibroker.client.consume import Fetched
    from minibroker.kafka.ids import TopicPartition
    from minibroker.verbs.record_output import RecordOutput
    from minibroker.verbs.record_text import RecordLayout

SELECTION: Final = "Records"
LAYOUT: Final = "Layout"
DEFAULT_NULL: Final = "NULL"


def number_of(text: str) -> int:
    """Return the number of a partition. Raises UsageError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise UsageError(f"{text!r}: expected the number of a partition, from 0 up")
    return int(text)


PARTITIONS: Final = Option(
    "--partition",
    Many("N[,...]", number_of),
    "partitions to read",
    SELECTION,
    short="-p",
    default="all",
)


class ConsumePlan(NamedTuple):
    """The options of the verb."""

    topic: Annotated[str, Option("TOPIC", TOPIC, "topic to read", example="orders")]
    start: Annotated[
        OffsetPlace | None,
        Option(
            "--from",
            Kind("PLACE", place_of),
            "first record of each partition: beginning, end, an offset such as 1500, the last "
            "records such as -10, or a time such as -1h or 2026-11-24T17:30; with --group only "
            "where the group has no offset",
            SELECTION,
            default="beginning",
        ),
    ] = None
    since: Annotated[
        OffsetPlace | None,
        Option("--since", Kind("TIME", time_of), "first record of this time or later", SELECTION),
    ] = None
    until: Annotated[
        OffsetPlace | None,
        Option(
            "--until",
            Kind("PLACE", place_of),
            "end before this offset, or before the first record of this time or later",
            SELECTION,
            default="the end of the topic now",
        ),
    ] = None
    most: Annotated[
        int | None, Option("--count", COUNT, "end after N records", SELECTION, short="-n")
    ] = None
    partitions: Annotated[Sequence[int], PARTITIONS] = ()
    follow: Annotated[
        bool,
        Option(
            "--follow",
            SWITCH,
            "do not end: wait for new records, until Ctrl-C",
            SELECTION,
            short="-f",
        ),
    ] = False
    group: Annotated[
        str | None,
        Option(
            "--group",
            TEXT,
            "read as a member of this group: partitions are shared with the others, and offsets "
            "are committed for records that are written out",
            SELECTION,
            short="-g",
            metavar="GROUP",
        ),
    ] = None
    keys: Annotated[
        bool,
        Option("--keys", SWITCH, "show the key, a tab and the value", LAYOUT, short="-k"),
    ] = False
    template: Annotated[
        str | None,
        Option(
            "--format",
            Kind("TEMPLATE"),
            "show each record in this form, such as '{partition}:{offset} {key} = {value}'",
            LAYOUT,
        ),
    ] = None
    is_json: Annotated[
        bool,
        Option(
            "--json",
            SWITCH,
            "show each record as a line of JSON, with its key, headers, timestamp and place: "
            "produce --json and seeds read it",
            LAYOUT,
        ),
    ] = False
    is_base64: Annotated[
        bool, Option("--base64", SWITCH, "show keys and values in base64", LAYOUT)
    ] = False
    null: Annotated[
        str,
        Option("--null", TEXT, "the word for a key or a value that is null", LAYOUT),
    ] = DEFAULT_NULL
    connection: Annotated[ClusterOptions, Part(ClusterOptions)] = ClusterOptions()

    @property
    def first_place(self) -> OffsetPlace:
        """Return the place of the first record of each partition."""
        return self.start or self.since or BEGINNING


def check(plan: ConsumePlan, names: Names) -> None:
    """Raise UsageError for options that do not go together."""
    for first, second in (
        ("start", "since"),
        ("until", "follow"),
        ("until", "group"),
        ("partitions", "group"),
        ("template", "is_json"),
        ("template", "keys"),
        ("keys", "is_json"),
        ("is_base64", "is_json"),
    ):
        if getattr(plan, first) and getattr(plan, second):
            raise UsageError(f"{names[first]} and {names[second]} do not go together")
    if plan.group is not None and not plan.group:
        raise UsageError(f"{names['group']} needs the name of a group")
    layout_of(plan, is_terminal=False)


def layout_of(plan: ConsumePlan, *, is_terminal: bool) -> RecordLayout:
    """Return the layout of the records. Raises UsageError for a template that cannot be."""
    from minibroker.verbs.record_text import (  # noqa: PLC0415  not for help
        PAIRS,
        RecordLayout,
        template_of,
    )

    template = PAIRS if plan.keys else plan.template
    layout = RecordLayout(template, plan.is_json, plan.null, plan.is_base64, is_terminal)
    if template is not None:
        template_of(template, layout)
    return layout


def run(plan: ConsumePlan, out: TextIO, errors: TextIO) -> int:
    """Write the records; return the exit code."""
    from minibroker.verbs.record_output import RecordOutput  # noqa: PLC0415  not for a help page
    from minibroker.verbs.record_text import Renderer  # noqa: PLC0415  as above
    from minibroker.verbs.streams import ProgressLine, bytes_of, ending_at_sigterm  # noqa: PLC0415

    is_terminal = out.isatty()
    renderer = Renderer(layout_of(plan, is_terminal=is_terminal))
    progress = ProgressLine(errors, is_quiet=is_terminal)
    client = reader_of(plan.connection)
    output = RecordOutput(bytes_of(out), renderer, plan.most, progress, errors)
    with ending_at_sigterm():
        try:
            if plan.group is not None:
                _read_as_member(plan, plan.group, client, output)
            else:
                _read(plan, client, output)
            output.flush()
        finally:
            output.end()
    return EXIT_OK


def _read(plan: ConsumePlan, client: Client, output: RecordOutput) -> None:
    """Write the records of a plan without a group."""
    from minibroker.verbs import places, reading  # noqa: PLC0415  not for a help page

    committed = is_committed(plan.connection)
    partitions = places.partitions_of(client, plan.topic, plan.partitions)
    bounds = places.bounds_of(client, partitions, is_committed=committed)
    starts = places.offsets_at(client, plan.first_place, bounds, is_committed=committed)
    output.note_all(places.outside_notes(plan.first_place, bounds))
    if plan.follow:
        answers: Iterator[Fetched | None] = reading.read_on(
            client, starts, is_committed=committed, on_lost=output.note_lost
        )
        ends: Mapping[TopicPartition, int] = {}
    else:
        ends = places.offsets_at(client, plan.until or places.END, bounds, is_committed=committed)
        answers = reading.read_between(
            client, starts, ends, is_committed=committed, on_lost=output.note_lost
        )
    for fetched in answers:
        if fetched is not None:
            output.write(fetched, fetched.start, ends.get(fetched.place))
        if plan.follow:
            output.flush()
        if output.is_full:
            return


def _read_as_member(plan: ConsumePlan, group: str, client: Client, output: RecordOutput) -> None:
    """Write the records that a group gives to this member."""
    from minibroker.verbs.group_reading import GroupReading, read_as_member  # noqa: PLC0415  for --group

    reading = GroupReading(
        group,
        plan.topic,
        start=plan.first_place,
        follow=plan.follow,
        is_committed=is_committed(plan.connection),
    )
    read_as_member(reading, client, output)


VERB: Final = Verb(
    name="consume",
    does="read the records of a topic",
    plan=ConsumePlan,
    run=run,
    check=check,
    usage="TOPIC",
    group="Topic",
    groups=(SELECTION, LAYOUT),
    notes="""\
Each record is a line: its value, as it is. It ends at the end that the topic has now; with --follow
it goes on. Records of a partition are in their order, those of several partitions as they come.

Fields of --format: {topic}, {partition}, {offset}, {timestamp} (ms), {time} (UTC), {key}, {value},
{headers}, {header.NAME}, {key_size}, {value_size} (bytes; -1 for null). Escapes: \\n, \\t, \\r,
\\0, \\xNN and \\\\; {{ is a brace.

Null is shown as NULL (--null). On a terminal, bytes that are no text are shown as \\xNN; a pipe or
a file gets them as they are. --json loses nothing: null is null, and bytes that are no UTF-8 stand
in base64, in key_base64 and value_base64.
""",
    examples=(
        "consume orders",
        "consume orders -n 10 --from -10 --keys",
        "consume orders --follow --from end --format '{time} {key} {value}'",
        "consume orders --since -1h --json",
        "consume orders --group billing --follow",
    ),
)
