"""The options of `minibroker check-log`."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from minibroker.cli.declaration import Option
from minibroker.cli.kinds import SWITCH, Many


def _directory(text: str) -> str:
    return text.rstrip("/") or "/"


class CheckPlan(NamedTuple):
    """The options of `check-log`."""

    directories: Annotated[
        tuple[str, ...],
        Option(
            "DIR",
            Many("DIR", _directory, is_split=False, completes="directory"),
            "a data directory (of minibroker or of Apache Kafka), several of one broker, or the "
            "directory of a partition",
            example="minibroker-data",
        ),
    ]
    is_strict: Annotated[
        bool,
        Option(
            "--strict",
            SWITCH,
            "report as broken also what the recovery after a crash would mend",
        ),
    ] = False
    is_deep: Annotated[
        bool, Option("--deep", SWITCH, "uncompress batches and check every record")
    ] = False
    is_json: Annotated[bool, Option("--json", SWITCH, "one JSON object on each line")] = False
    is_quiet: Annotated[bool, Option("--quiet", SWITCH, "no notes, only damage")] = False
