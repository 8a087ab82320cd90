"""`minibroker wait`: ends when a broker answers, topics are there, or a group is ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Names, Option, Part, Verb
from minibroker.cli.errors import EXIT_OK, UsageError
from minibroker.cli.kinds import COUNT, DURATION, TEXT, Kind, Many, check_topic, count_of
from minibroker.verbs.connecting import ClusterOptions, reader_of

CONDITIONS: Final = "Conditions"
DEFAULT_TIMEOUT_MS: Final = 60_000


class AwaitedTopic(NamedTuple):
    """A topic that is waited for."""

    name: str
    partitions: int
    """At least so many."""


def awaited_topic_of(text: str) -> AwaitedTopic:
    """Return the topic of `NAME[:PARTITIONS]`. Raises UsageError."""
    name, colon, count = text.partition(":")
    return AwaitedTopic(check_topic(name), count_of(count) if colon else 1)


def lag_of(text: str) -> int:
    """Return a number from 0 up. Raises UsageError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise UsageError(f"{text!r}: expected a number from 0 up")
    return int(text)


class WaitPlan(NamedTuple):
    """The options of the verb."""

    topics: Annotated[
        Sequence[AwaitedTopic],
        Option(
            "--topic",
            Many("NAME[:PARTITIONS]", awaited_topic_of),
            "the topic is there, and each partition has a leader",
            CONDITIONS,
        ),
    ] = ()
    group: Annotated[
        str | None,
        Option(
            "--group",
            TEXT,
            "the group is stable: every member has its partitions",
            CONDITIONS,
            short="-g",
            metavar="GROUP",
        ),
    ] = None
    members: Annotated[
        int | None,
        Option("--members", COUNT, "with --group, it has so many members, or more", CONDITIONS),
    ] = None
    lag: Annotated[
        int | None,
        Option(
            "--lag",
            Kind("N", lag_of),
            "with --group, it is at most N records behind; 0: it has committed everything. Members "
            "are not asked for then, unless --members is there",
            CONDITIONS,
        ),
    ] = None
    timeout_ms: Annotated[
        int, Option("--timeout", DURATION, "fail after this time", short="-t")
    ] = DEFAULT_TIMEOUT_MS
    connection: Annotated[ClusterOptions, Part(ClusterOptions)] = ClusterOptions()


def check(plan: WaitPlan, names: Names) -> None:
    """Raise UsageError for options that do not go together."""
    for field in ("members", "lag"):
        if getattr(plan, field) is not None and plan.group is None:
            raise UsageError(f"{names[field]} is for {names['group']}")


def run(plan: WaitPlan, out: TextIO, errors: TextIO) -> int:
    """Wait; return the exit code."""
    from minibroker.verbs import waiting  # noqa: PLC0415  not for a help page
    from minibroker.verbs.streams import ProgressLine  # noqa: PLC0415  as above

    timeout_s = plan.timeout_ms / 1000
    client = waiting.impatient(reader_of(plan.connection), timeout_s)
    conditions = [waiting.broker_answers(client)]
    if plan.topics:
        conditions = [waiting.topic_is_there(client, *topic) for topic in plan.topics]
    if plan.group is not None:
        is_about_members = plan.lag is None or plan.members is not None
        if is_about_members:
            conditions.append(waiting.group_is_stable(client, plan.group, plan.members or 1))
        if plan.lag is not None:
            conditions.append(waiting.group_has_read(client, plan.group, plan.lag))
    progress = ProgressLine(errors)
    try:
        waiting.wait_for(conditions, timeout_s, progress.show)
    finally:
        progress.clear()
    return EXIT_OK


VERB: Final = Verb(
    name="wait",
    does="wait for a broker, for topics, or until a group is ready",
    plan=WaitPlan,
    run=run,
    check=check,
    group="Time",
    groups=(CONDITIONS,),
    notes="""\
Without a condition it waits until a broker answers. It ends with 0 when all conditions hold, and
with 1 and a sentence about what is there when the time is over. It writes nothing else.
""",
    examples=(
        "wait",
        "wait --topic orders:6 --topic users",
        "wait --group billing --members 2 --timeout 30s",
        "wait --group billing --lag 0",
    ),
)
