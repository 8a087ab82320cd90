"""`minibroker serve`: from its words to a broker that serves.

    words ─► `plan` ─► `settings` ─► `process`

Exit codes: 0 after a clean stop, 1 when the broker cannot start (one sentence on stderr), 2 for
wrong usage.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.cli.declaration import Verb, plan_of
from minibroker.cli.errors import EXIT_FAILED, UsageError
from minibroker.cli.parser import parse
from minibroker.kafka.errors import ConfigError
from minibroker.verbs.serve.plan import (
    CLIENTS,
    CONTROL,
    METADATA,
    PROCESS,
    REGISTRY,
    SECURITY,
    SETTINGS,
    ServePlan,
    secured,
)

if TYPE_CHECKING:
    from minibroker.cli.declaration import Names


def check(plan: ServePlan, names: Names) -> None:
    """Raise UsageError for data that are both kept and not."""
    if plan.in_memory and any(key in ("log.dirs", "log.dir") for key, _ in plan.settings):
        raise UsageError("--memory keeps nothing and --data-dir keeps everything: give one of them")


def parse_serve(words: Sequence[str]) -> ServePlan:
    """Return the plan of the words behind `serve`. Raises UsageError."""
    return secured(plan_of(VERB, parse(VERB, words)))


def run(plan: ServePlan, out: TextIO, errors: TextIO) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code. Raises UsageError."""
    from minibroker.verbs.serve.settings import build, configure_logging  # noqa: PLC0415  not for help

    plan = secured(plan)
    configure_logging(plan.log_level)
    try:
        config, options = build(plan, os.environ)
    except ConfigError as error:
        errors.write(f"minibroker: {error}\n")
        return EXIT_FAILED

    from minibroker.verbs.serve import process  # noqa: PLC0415  a wrong setting is named before

    return process.run(config, options)


VERB: Final = Verb(
    name="serve",
    does="start the broker and serve until SIGTERM or SIGINT",
    plan=ServePlan,
    run=run,
    group=CLIENTS,
    groups=(METADATA, SETTINGS, SECURITY, CONTROL, REGISTRY, PROCESS),
    notes="""
KAFKA_... variables are settings too, as in the apache/kafka image: KAFKA_NUM_PARTITIONS=3 sets
num.partitions=3. A variable overrides --config. A flag overrides both. A later flag overrides an
earlier flag.

A topic with cleanup.policy=compact is compacted after one second without records; Kafka waits until
a segment is full. --set minibroker.log.cleaner.idle.ms=0 waits like Kafka.
""",
    exits="Exit codes: 0 after a clean stop; 1 if the broker cannot start, with one sentence that "
    "says why; 2 for wrong usage.",
    examples=(
        "serve",
        "serve --memory --listen 127.0.0.1:0 --ready-file ready",
        "serve --brokers 3 --topic orders:6:3",
        "serve --memory --seed orders.jsonl",
        "serve --topic orders:6 --topic users:3:cleanup.policy=compact:segment.ms=60000",
        "serve --listen 0.0.0.0:9092 --set advertised.listeners=PLAINTEXT://myhost:9092",
    ),
    check=check,
    later_wins=True,
    resumes_collector=True,
)
