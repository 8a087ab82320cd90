"""`minibroker take-back`: minibroker goes on; the work is in `tools.kraft.take_back`."""

from typing import Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Option, Part, Verb
from minibroker.cli.errors import EXIT_FAILED, EXIT_OK
from minibroker.cli.kinds import SWITCH
from minibroker.verbs.stopped_broker import SETTINGS, StoppedBroker, read_broker


class TakeBackPlan(NamedTuple):
    """The options of `take-back`."""

    broker: Annotated[StoppedBroker, Part(StoppedBroker)]
    dry_run: Annotated[
        bool, Option("--dry-run", SWITCH, "say what would be taken back, write nothing")
    ] = False


def run(plan: TakeBackPlan, out: TextIO, errors: TextIO) -> int:
    """Take back and say how minibroker is started; return the exit code."""
    import asyncio  # noqa: PLC0415  not for help

    from minibroker.kafka.errors import MinibrokerError  # noqa: PLC0415  not for help
    from minibroker.tools.kraft.metadata import summary  # noqa: PLC0415  as above
    from minibroker.tools.kraft.take_back import take_back  # noqa: PLC0415  as above

    try:
        home, configs = read_broker(plan.broker)
        metadata = asyncio.run(take_back(home, configs, dry_run=plan.dry_run))
    except MinibrokerError as error:
        errors.write(f"minibroker take-back: {error}\n")
        return EXIT_FAILED
    out.write(f"{summary(metadata)} {'would be' if plan.dry_run else 'is'} taken back\n")
    if not plan.dry_run:
        words = ["minibroker serve --data-dir", ",".join(plan.broker.directories)]
        if home.is_shared:
            words.append(f"--brokers {len(home.nodes)}")
        if home.nodes[0].id:
            words.append(f"--set broker.id={home.nodes[0].id}")
        out.write(f"{' '.join(words)}\n")
    return EXIT_OK


VERB: Final = Verb(
    name="take-back",
    does="make the data of a stopped Apache Kafka (KRaft) those of minibroker",
    plan=TakeBackPlan,
    run=run,
    group="Take-back",
    groups=(SETTINGS,),
    notes="""
Kafka's changes come along: topics made, grown and deleted, configurations, quotas, credentials,
ACLs, tokens. Directories that Kafka has made come in the same way. What minibroker cannot have is
refused by name: replicas on nodes that are not here, tiered topics, features of a later release.
""",
    exits="Exit codes: 0; 1 if the data cannot be taken back, with one sentence that says why: "
    "the data are Kafka's as before; 2 for wrong usage.",
    examples=("take-back minibroker-data --dry-run", "take-back minibroker-data"),
)
