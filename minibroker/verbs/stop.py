"""`minibroker stop`: the end of the broker that `minibroker up -d` has started."""

from __future__ import annotations

import os
from typing import Final, TextIO

from minibroker.cli.declaration import Verb
from minibroker.cli.errors import EXIT_OK
from minibroker.verbs.background.state import StateDirectory, StateOptions


def run(plan: StateOptions, out: TextIO, errors: TextIO) -> int:
    """End the broker and wait until it has ended; return the exit code. Raises CommandError."""
    from minibroker.verbs.background.starting import stop  # noqa: PLC0415  not for help

    state = StateDirectory(plan, os.environ)
    if not state.lives():
        out.write("minibroker is not running\n")
        return EXIT_OK
    with state.changing():
        if state.lives():
            stop(state, state.read())
    out.write("minibroker stopped\n")
    return EXIT_OK


VERB: Final = Verb(
    name="stop",
    does="end the broker in the background, and wait until it has ended",
    plan=StateOptions,
    run=run,
    notes="It is no failure if none is running. The data stay.",
    examples=("stop",),
)
