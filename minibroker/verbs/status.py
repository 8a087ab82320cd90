"""`minibroker status`: the broker that `minibroker up -d` has started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.cli.declaration import Verb
from minibroker.cli.errors import EXIT_OK
from minibroker.verbs.background.state import StateDirectory, StateOptions

if TYPE_CHECKING:
    from minibroker.verbs.background.state import Background

EXIT_NOT_RUNNING: Final = 3
"""As the scripts of services have it (LSB)."""
_TIMEOUT_MS: Final = 2_000


def run(plan: StateOptions, out: TextIO, errors: TextIO) -> int:
    """Write where the broker is and how it is; return the exit code. Raises CommandError."""
    state = StateDirectory(plan, os.environ)
    lives, background = state.lives(), state.read()
    if not lives:
        how = ""
        if background is not None and not background.is_stopped:
            how = f": it ended without minibroker stop (pid {background.pid})"
        out.write(f"minibroker is not running{how}\n")
        if state.log.exists():
            out.write(f"  log      {state.log}\n")
        return EXIT_NOT_RUNNING
    if background is None:
        out.write(f"minibroker is starting\n  log      {state.log}\n")
        return EXIT_OK
    rows = [
        ("pid", str(background.pid)),
        *([("version", background.version)] if background.version else ()),
        ("uptime", _uptime(background)),
        ("topics", _topics(background)),
        ("data", ", ".join(background.data) or "in memory"),
        *(("control", url) for url in background.control),
        *(("registry", url) for url in background.registry),
        ("log", str(state.log)),
    ]
    out.write(f"minibroker is running at {background.addresses}\n")
    out.writelines(f"  {name:<9}{text}\n" for name, text in rows)
    return EXIT_OK


def _uptime(background: Background) -> str:
    from minibroker.cli.quantities import duration  # noqa: PLC0415  not for help
    from minibroker.clock import SystemClock  # noqa: PLC0415  as above

    return duration(max(0, SystemClock().now_ms() - background.started_ms))


def _topics(background: Background) -> str:
    """Return how many topics there are, as the broker answers a client without a login."""
    from minibroker.client import admin  # noqa: PLC0415  not for help
    from minibroker.client.client import Client  # noqa: PLC0415  as above
    from minibroker.client.settings import client_settings  # noqa: PLC0415  as above
    from minibroker.kafka.errors import MinibrokerError  # noqa: PLC0415  as above

    settings = {
        "bootstrap.servers": background.addresses,
        "request.timeout.ms": str(_TIMEOUT_MS),
        "client.id": "minibroker-status",
    }
    try:
        cluster = admin.describe(Client(client_settings(settings)))
    except (MinibrokerError, OSError) as error:
        return f"unknown: a client without a login gets no answer ({error})"
    return str(sum(not topic.is_internal for topic in cluster.topics.values()))


VERB: Final = Verb(
    name="status",
    does="show the broker in the background",
    plan=StateOptions,
    run=run,
    exits="Exit codes: 0 if it is running; 3 if it is not; 1 for a failure; 2 for wrong usage.",
    examples=("status",),
)
