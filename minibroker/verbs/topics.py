"""`minibroker topics`: the topics of a cluster, and one of them with all that is known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Names, Option, Part, Verb
from minibroker.cli.errors import EXIT_OK, UsageError
from minibroker.cli.kinds import COUNT, SWITCH, Many, Pairs, check_topic
from minibroker.verbs.connecting import ClusterOptions, reader_of
from minibroker.verbs.new_topics import TopicToMake, new_topic_of
from minibroker.verbs.streams import write_json

if TYPE_CHECKING:
    from minibroker.client.client import Client

CHANGES: Final = "Changes"


class TopicsPlan(NamedTuple):
    """The options of the verb."""

    names: Annotated[
        Sequence[str], Option("TOPIC", Many("TOPIC", check_topic), "topics to describe")
    ] = ()
    create: Annotated[
        Sequence[TopicToMake],
        Option(
            "--create",
            Many("NAME[:PARTITIONS[:REPLICAS]][:KEY=VALUE...]", new_topic_of, is_split=False),
            "make a topic; what is left out is as the cluster has it by default",
            CHANGES,
            metavar="NAME[:PARTITIONS...]",
        ),
    ] = ()
    is_lenient: Annotated[
        bool,
        Option("--if-missing", SWITCH, "with --create, leave a topic that is there", CHANGES),
    ] = False
    is_deletion: Annotated[
        bool, Option("--delete", SWITCH, "delete the topics, with their records", CHANGES)
    ] = False
    partitions: Annotated[
        int | None,
        Option("--partitions", COUNT, "give the topics N partitions in all", CHANGES),
    ] = None
    settings: Annotated[
        Mapping[str, str],
        Option(
            "--set",
            Pairs(),
            "set a setting of the topics, such as retention.ms=60000; KEY= takes it away",
            CHANGES,
        ),
    ] = {}
    is_whole: Annotated[
        bool, Option("--all", SWITCH, "show internal topics, and settings that are defaults")
    ] = False
    is_json: Annotated[bool, Option("--json", SWITCH, "answer in JSON")] = False
    connection: Annotated[ClusterOptions, Part(ClusterOptions)] = ClusterOptions()


def check(plan: TopicsPlan, names: Names) -> None:
    """Raise UsageError for options that do not go together."""
    changes = [
        field
        for field in ("create", "is_deletion", "partitions", "settings")
        if getattr(plan, field)
    ]
    if len(changes) > 1:
        raise UsageError(f"{names[changes[0]]} and {names[changes[1]]} do not go together")
    if plan.create and plan.names:
        raise UsageError(
            f"{names['create']} has the name of the topic with it: leave {plan.names[0]} out"
        )
    if plan.is_lenient and not plan.create:
        raise UsageError(f"{names['is_lenient']} is for {names['create']}")
    if changes and not (plan.names or plan.create):
        raise UsageError(f"{names[changes[0]]} needs the name of a topic")


def run(plan: TopicsPlan, out: TextIO, errors: TextIO) -> int:
    """Show or change topics; return the exit code."""
    from minibroker.verbs.topic_changes import (  # noqa: PLC0415  not for a help page
        create_topics,
        delete_topics,
        grow_topics,
        set_topics,
    )

    client = reader_of(plan.connection)
    done: list[str] = []
    if plan.create:
        done = create_topics(client, plan.create, may_exist=plan.is_lenient)
    elif plan.is_deletion:
        done = delete_topics(client, plan.names)
    elif plan.partitions is not None:
        done = grow_topics(client, plan.names, plan.partitions)
    elif plan.settings:
        done = set_topics(client, plan.names, plan.settings)
    else:
        _show(client, plan, out)
        return EXIT_OK
    if plan.is_json:
        write_json(out, done)
    else:
        out.writelines(f"{line}\n" for line in done)
    return EXIT_OK


def _show(client: Client, plan: TopicsPlan, out: TextIO) -> None:
    """Write the list of topics, or the description of some. Raises CommandError for none."""
    from minibroker.verbs import topic_views  # noqa: PLC0415  not for a help page

    if not plan.names:
        rows = topic_views.summaries_of(client, has_internal=plan.is_whole)
        if plan.is_json:
            write_json(out, [row._asdict() for row in rows])
        else:
            out.writelines(topic_views.list_lines(rows))
        return
    views = topic_views.described(client, plan.names, has_defaults=plan.is_whole)
    if plan.is_json:
        write_json(out, [topic_views.fields_of(view) for view in views])
        return
    for number, view in enumerate(views):
        out.writelines(["\n"] if number else [])
        out.writelines(topic_views.lines_of(view))


VERB: Final = Verb(
    name="topics",
    does="list, describe, make, change and delete topics",
    plan=TopicsPlan,
    run=run,
    check=check,
    usage="[TOPIC]...",
    group="Topics",
    groups=(CHANGES,),
    notes="""\
Without a name it lists the topics. With names it describes them: partitions with their leaders,
replicas, offsets and sizes, and the settings that are not defaults.
""",
    examples=(
        "topics",
        "topics orders",
        "topics --create orders:6:cleanup.policy=compact",
        "topics orders --set retention.ms=60000",
        "topics orders --delete",
    ),
)
