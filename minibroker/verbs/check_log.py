"""`minibroker check-log`: damage in data directories; the work is in `tools.check_directory`.

It changes nothing, needs bounded memory, and reads directories of minibroker and of Kafka.
`check_directory` checks the partitions of a directory, `check_partition` the segments of a
partition, `check_segment` the batches of a segment.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Option, Verb
from minibroker.cli.errors import EXIT_OK, EXIT_USAGE
from minibroker.cli.kinds import SWITCH, Many

EXIT_BROKEN: Final = 1


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


def run(plan: CheckPlan, out: TextIO, errors: TextIO) -> int:
    """Check the directories, print the findings, and return the exit code."""
    from minibroker.tools.check_directory import (  # noqa: PLC0415  not for help
        DirectoriesCheck,
        check_directories,
        is_log_directory,
        is_partition_directory,
    )
    from minibroker.tools.findings import Findings  # noqa: PLC0415  as above

    findings = Findings(out, is_json=plan.is_json, is_quiet=plan.is_quiet)
    check = DirectoriesCheck(findings, is_deep=plan.is_deep, is_strict=plan.is_strict)
    try:
        for path in plan.directories:
            if not is_partition_directory(path) and not is_log_directory(path):
                errors.write(
                    f"minibroker check-log: {path} is no data directory: there is no "
                    "meta.properties, no checkpoint and no partition in it\n"
                )
                return EXIT_USAGE
        check_directories(plan.directories, check)
    except BrokenPipeError:
        raise
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        errors.write(f"minibroker check-log: {error.filename}: {error.strerror}\n")
        return EXIT_USAGE
    findings.summary(check.partition_count, check.segment_count)
    return EXIT_BROKEN if findings.broken_count else EXIT_OK


VERB: Final = Verb(
    name="check-log",
    does="check a data directory for damage; nothing is changed",
    plan=CheckPlan,
    run=run,
    notes="""
The broker should not be running: a file that it is writing looks torn. Every finding names file and
position. Notes are leftovers, and defects that the next start mends.
""",
    exits="Exit codes: 0 without damage, 1 with damage, 2 for wrong usage.",
    examples=(
        "check-log minibroker-data",
        "check-log --deep --json minibroker-data/orders-0",
    ),
    later_wins=True,
)
