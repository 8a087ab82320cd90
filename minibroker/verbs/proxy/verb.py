"""`minibroker proxy`: the verb, with its options from `plan`; `process` serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from minibroker.cli.connection import CONNECTION
from minibroker.cli.declaration import Verb
from minibroker.cli.errors import UsageError
from minibroker.verbs.proxy.plan import CONTROL, LISTENING, READ_TOKEN, SHOWING, TOKEN, ProxyPlan
from minibroker.verbs.trace import SELECTION

if TYPE_CHECKING:
    from minibroker.cli.declaration import Names


def check(plan: ProxyPlan, names: Names) -> None:
    """Raise UsageError for options that do not go together."""
    if plan.output.is_full and plan.output.is_json:
        raise UsageError("--full and --json do not go together")
    if plan.control.address is None:
        for field in ("token", "read_token", "page_only_reads"):
            if getattr(plan.control, field):
                raise UsageError(f"{_FLAGS[field]} is for --control")


_FLAGS: Final = {
    "token": TOKEN,
    "read_token": READ_TOKEN,
    "page_only_reads": "--console-read-only",
}


def run(plan: ProxyPlan, out: TextIO, errors: TextIO) -> int:
    """Serve until a signal comes; return the exit code. Raises CommandError, UsageError."""
    from minibroker.verbs.proxy.process import serve  # noqa: PLC0415  not for help

    return serve(plan, plan.upstream.settings(plan.to), out, errors)


VERB: Final = Verb(
    name="proxy",
    does="stand between clients and any Kafka: show what they say, add faults",
    plan=ProxyPlan,
    run=run,
    check=check,
    groups=(LISTENING, SHOWING, SELECTION, CONTROL, CONNECTION),
    notes="""\
Give clients the address of --listen in place of Kafka's. The addresses in Kafka's answers become
those of the proxy, so that all brokers are reached through it. It works before every Kafka from 0.8
on, and before minibroker; what it does not understand passes as it is.

Without options of the connection, logins go through: a client logs in at Kafka with its own user.
With --security SSL the proxy speaks TLS with Kafka, and clients do not have to; with --user it logs
in for them.
""",
    examples=(
        "proxy --to kafka:9092 --trace",
        "proxy --to kafka-1:9092,kafka-2:9092 --listen 0.0.0.0:9192 --advertise my-host",
        "proxy --to kafka:9094 --security SASL_SSL --user alice:secret --ca ca.pem",
        "proxy --to kafka:9092 --html conversation.html",
        "proxy --to kafka:9092 --full --api JoinGroup,SyncGroup --record join.jsonl",
        "proxy --to kafka:9092 --control 127.0.0.1:9193",
    ),
)
