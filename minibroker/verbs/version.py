"""`minibroker version`: the version of this installation."""

from __future__ import annotations

from typing import Final, NamedTuple, TextIO

from minibroker import __version__
from minibroker.cli.declaration import Verb
from minibroker.cli.errors import EXIT_OK


class VersionPlan(NamedTuple):
    """It has no options."""


def run(plan: VersionPlan, out: TextIO, errors: TextIO) -> int:
    """Write the version; return the exit code."""
    out.write(f"minibroker {__version__}\n")
    return EXIT_OK


VERB: Final = Verb(
    name="version",
    does="show the version",
    plan=VersionPlan,
    run=run,
    exits="",
    examples=("version",),
)
