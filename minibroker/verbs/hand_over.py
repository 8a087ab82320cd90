"""`minibroker hand-over`: Apache Kafka goes on; the work is in `tools.kraft.hand_over`."""

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Option, Part, Verb
from minibroker.cli.errors import EXIT_FAILED, EXIT_OK
from minibroker.cli.kinds import FILE, SWITCH, choice
from minibroker.verbs.stopped_broker import SETTINGS, StoppedBroker, read_broker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.tools.kraft.nodes import Home

RELEASES: Final = ("4.4", "4.3", "4.2", "4.1", "4.0", "3.9")
_PRIVATE: Final = 0o600


class HandOverPlan(NamedTuple):
    """The options of `hand-over`."""

    broker: Annotated[StoppedBroker, Part(StoppedBroker)]
    release: Annotated[
        str,
        Option(
            "--to",
            choice(*RELEASES),
            "the release of Apache Kafka that goes on; 3.9 with KRaft",
        ),
    ] = RELEASES[0]
    properties: Annotated[
        str | None,
        Option(
            "--properties",
            FILE,
            "write the server.properties of the node to FILE, which only its owner can read, as it "
            "has passwords. Of several brokers FILE.0, FILE.1, ...",
        ),
    ] = None
    dry_run: Annotated[
        bool, Option("--dry-run", SWITCH, "say what would be handed over, write nothing")
    ] = False


def run(plan: HandOverPlan, out: TextIO, errors: TextIO) -> int:
    """Hand over and say how Kafka is started; return the exit code."""
    import asyncio  # noqa: PLC0415  not for help

    from minibroker.kafka.errors import MinibrokerError  # noqa: PLC0415  not for help
    from minibroker.tools.kraft.hand_over import hand_over  # noqa: PLC0415  as above
    from minibroker.tools.kraft.metadata import summary  # noqa: PLC0415  as above

    try:
        home, configs = read_broker(plan.broker)
        files = _properties_files(plan, home, configs)
        metadata = asyncio.run(hand_over(home, configs, plan.release, dry_run=plan.dry_run))
        if not plan.dry_run:
            for path, text in files.items():
                _write_private(path, text)
    except (MinibrokerError, OSError) as error:
        errors.write(f"minibroker hand-over: {error}\n")
        return EXIT_FAILED
    verb = "would be" if plan.dry_run else "is"
    out.write(f"{summary(metadata)} {verb} handed over to Apache Kafka {plan.release}\n")
    if not plan.dry_run:
        words = " ".join(plan.broker.directories)
        for path in files:
            out.write(f"kafka-server-start.sh {path}\n")
        if not files:
            out.write(
                f"Its server.properties: minibroker hand-over {words} --to {plan.release} "
                "--properties server.properties\n"
            )
        out.write(f"The way back, when Kafka is stopped: minibroker take-back {words}\n")
    return EXIT_OK


def _properties_files(
    plan: HandOverPlan, home: "Home", configs: "Sequence[BrokerConfig]"
) -> "dict[Path, str]":
    """Return path → text of the files that `--properties` asks for. Raises ConfigError."""
    if plan.properties is None:
        return {}
    from pathlib import Path  # noqa: PLC0415  not for help

    from minibroker.tools.kraft import server_properties  # noqa: PLC0415  as above

    ports = server_properties.choose_ports(configs)
    voters = {
        config.broker_id: port.controller for config, port in zip(configs, ports, strict=True)
    }
    password = server_properties.new_password()
    comment = f"Apache Kafka {plan.release} on the data of minibroker, cluster {home.cluster_id}."
    files = {}
    for config, port in zip(configs, ports, strict=True):
        properties = server_properties.server_properties(config, port, voters, password)
        suffix = f".{config.broker_id}" if home.is_shared else ""
        path = Path(f"{plan.properties}{suffix}")
        files[path] = server_properties.properties_text(properties, [comment])
    return files


def _write_private(path: "Path", text: str) -> None:
    """Replace a file, which only its owner can read. Raises OSError."""
    import os  # noqa: PLC0415  not for help

    temporary = path.with_name(f"{path.name}.new")
    with os.fdopen(
        os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE), "w"
    ) as file:
        file.write(text)
    temporary.replace(path)


VERB: Final = Verb(
    name="hand-over",
    does="make the data of a stopped broker those of Apache Kafka, which goes on",
    plan=HandOverPlan,
    run=run,
    group="Hand-over",
    groups=(SETTINGS,),
    notes="""
The logs stay as they are. Topics, configurations, quotas, SCRAM credentials, ACLs, delegation
tokens, features and producer ids are written as Kafka's own metadata (KRaft). The broker must be
stopped. minibroker does not serve the directory any more until take-back.

The settings of serve are needed for --properties, and where the broker has passwords that
password.encoder.secret encrypts.
""",
    exits="Exit codes: 0; 1 if the data cannot be handed over, with one sentence that says why: "
    "the data are minibroker's as before; 2 for wrong usage.",
    examples=(
        "hand-over minibroker-data --dry-run",
        "hand-over minibroker-data --to 4.4 --properties server.properties",
    ),
)
