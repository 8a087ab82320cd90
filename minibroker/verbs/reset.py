"""`minibroker reset`: the broker in the background once more, without its data."""

from __future__ import annotations

import os
from typing import Final, TextIO

from minibroker.cli.declaration import Verb
from minibroker.cli.errors import EXIT_OK, CommandError
from minibroker.verbs.background.state import StateDirectory, StateOptions


def run(plan: StateOptions, out: TextIO, errors: TextIO) -> int:
    """End the broker, delete its data and start it again; return the exit code.

    Raises CommandError, OSError.
    """
    from minibroker.verbs.background.data import delete_data  # noqa: PLC0415  not for help
    from minibroker.verbs.background.starting import start_again, stop  # noqa: PLC0415  as above

    state = StateDirectory(plan, os.environ)
    with state.changing():
        background = state.read()
        if background is None:
            raise CommandError("no broker was started here: minibroker up -d starts one")
        if background.in_zookeeper:
            raise CommandError(
                "its metadata are in ZooKeeper, so its topics would stay without their records: "
                "delete the topics with a client"
            )
        if state.lives():
            stop(state, background)
        for path in delete_data(background.data):
            errors.write(f"{path} stays: no broker has made it\n")
        background = start_again(state, background, errors)
    out.writelines(background.ready_lines)
    return EXIT_OK


VERB: Final = Verb(
    name="reset",
    does="delete all data of the broker in the background, and start it again",
    plan=StateOptions,
    run=run,
    notes="""
It starts with the options of minibroker up -d, in the same working directory, with the variables of
now. Only directories with a meta.properties are deleted from, and only what a broker has made.
""",
    examples=("reset",),
)
