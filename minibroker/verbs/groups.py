"""`minibroker groups`: the groups of a cluster, their members, their lag, and where they go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Names, Option, Part, Verb
from minibroker.cli.errors import EXIT_OK, UsageError
from minibroker.cli.kinds import SWITCH, TEXT, TOPIC, Kind
from minibroker.verbs.connecting import ClusterOptions, reader_of
from minibroker.verbs.places import OffsetPlace, place_of
from minibroker.verbs.streams import write_json

if TYPE_CHECKING:
    from minibroker.client.client import Client

CHANGES: Final = "Changes"


class GroupsPlan(NamedTuple):
    """The options of the verb."""

    name: Annotated[str | None, Option("GROUP", TEXT, "group to describe")] = None
    reset_to: Annotated[
        OffsetPlace | None,
        Option(
            "--reset-to",
            Kind("PLACE", place_of),
            "have the group go on at this place: beginning, end, an offset, the last records such "
            "as -10, or a time such as -1h; it must have no members",
            CHANGES,
        ),
    ] = None
    topic: Annotated[
        str | None,
        Option(
            "--topic",
            TOPIC,
            "with --reset-to, the topic alone",
            CHANGES,
            default="the topics that the group has offsets of",
        ),
    ] = None
    is_dry: Annotated[
        bool,
        Option("--dry-run", SWITCH, "with --reset-to, show the offsets and commit none", CHANGES),
    ] = False
    is_deletion: Annotated[
        bool, Option("--delete", SWITCH, "delete the group, with its offsets", CHANGES)
    ] = False
    is_json: Annotated[bool, Option("--json", SWITCH, "answer in JSON")] = False
    connection: Annotated[ClusterOptions, Part(ClusterOptions)] = ClusterOptions()


def check(plan: GroupsPlan, names: Names) -> None:
    """Raise UsageError for options that do not go together."""
    if plan.name == "":
        raise UsageError("the name of the group is empty")
    for field in ("reset_to", "is_deletion"):
        if getattr(plan, field) and plan.name is None:
            raise UsageError(f"{names[field]} needs the name of a group")
    for field in ("topic", "is_dry"):
        if getattr(plan, field) and plan.reset_to is None:
            raise UsageError(f"{names[field]} is for {names['reset_to']}")
    if plan.reset_to is not None and plan.is_deletion:
        raise UsageError(f"{names['reset_to']} and {names['is_deletion']} do not go together")


def run(plan: GroupsPlan, out: TextIO, errors: TextIO) -> int:
    """Show or change groups; return the exit code."""
    from minibroker.verbs import group_changes, group_views  # noqa: PLC0415  not for a help page

    client = reader_of(plan.connection)
    if plan.name is None:
        rows = group_views.summaries_of(client)
        if plan.is_json:
            write_json(out, [row._asdict() for row in rows])
        else:
            out.writelines(group_views.list_lines(rows))
    elif plan.is_deletion:
        group_changes.delete(client, plan.name)
        _answer(plan, out, {"deleted": plan.name}, f"{plan.name} is deleted\n")
    elif plan.reset_to is not None:
        _reset(client, plan, out)
    else:
        view = group_views.described(client, plan.name)
        if plan.is_json:
            write_json(out, group_views.fields_of(view))
        else:
            out.writelines(group_views.lines_of(view))
    return EXIT_OK


def _reset(client: Client, plan: GroupsPlan, out: TextIO) -> None:
    from minibroker.verbs import group_changes, group_views  # noqa: PLC0415  not for a help page

    assert plan.name is not None
    assert plan.reset_to is not None
    moves = group_changes.moves_of(client, plan.name, plan.reset_to, plan.topic)
    if not plan.is_dry:
        group_changes.commit(client, plan.name, moves)
    if plan.is_json:
        write_json(out, [group_views.move_fields(move) for move in moves])
        return
    out.writelines(group_views.move_lines(moves))
    if plan.is_dry:
        out.write("nothing is committed: leave --dry-run out\n")


def _answer(plan: GroupsPlan, out: TextIO, fields: Any, line: str) -> None:
    if plan.is_json:
        write_json(out, fields)
    else:
        out.write(line)


VERB: Final = Verb(
    name="groups",
    does="list and describe consumer groups, and move their offsets",
    plan=GroupsPlan,
    run=run,
    check=check,
    usage="[GROUP]",
    group="Groups",
    groups=(CHANGES,),
    notes="""\
Without a name it lists the groups. With a name it shows the members with their partitions, and for
each partition the committed offset, the end and the lag between them.
""",
    examples=(
        "groups",
        "groups billing",
        "groups billing --reset-to -1h --dry-run",
        "groups billing --reset-to beginning --topic orders",
        "groups billing --delete",
    ),
)
