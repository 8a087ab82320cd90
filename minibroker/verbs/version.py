"""`minibroker version`: the version of this installation, and whether it is compiled."""

from __future__ import annotations

from typing import Final, NamedTuple, TextIO

from minibroker.cli.declaration import Verb
from minibroker.cli.errors import EXIT_OK


class VersionPlan(NamedTuple):
    """It has no options."""


def run(plan: VersionPlan, out: TextIO, errors: TextIO) -> int:
    """Write the version and the kind of package; return the exit code."""
    from minibroker.compilation import package_version  # noqa: PLC0415  not for help

    out.write(f"minibroker {package_version()}\n")
    return EXIT_OK


VERB: Final = Verb(
    name="version",
    does="show the version, and whether it is the compiled package",
    plan=VersionPlan,
    run=run,
    exits="",
    examples=("version",),
)
