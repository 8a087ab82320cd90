"""The arguments of `check-log`: directories and a few switches.

Hand-written, as the rest of the command line is.
"""

from collections.abc import Sequence
from typing import Final

from minibroker.broker.config.options import UsageError

CHECK_LOG_HELP: Final = """\
minibroker check-log: check a data directory for damage; nothing is changed

  minibroker check-log [FLAG]... DIR...

  --strict     report as broken also what the recovery after a crash would mend
  --deep       uncompress batches and check every record
  --json       one JSON object on each line
  --quiet      no notes, only damage

DIR is a data directory (of minibroker or of Apache Kafka), several of one broker, or the directory
of a partition. The broker should not be running: a file that it is writing looks torn.
Every finding names file and position. Notes are leftovers, and defects that the next start mends.
Exit codes: 0 without damage, 1 with damage, 2 for wrong usage.

  minibroker check-log minibroker-data
  minibroker check-log --deep --json minibroker-data/orders-0
"""


class CheckArguments:
    """Arguments of `check-log`."""

    __slots__ = ("directories", "is_deep", "is_json", "is_quiet", "is_strict")

    def __init__(
        self,
        directories: Sequence[str],
        *,
        is_deep: bool = False,
        is_json: bool = False,
        is_quiet: bool = False,
        is_strict: bool = False,
    ) -> None:
        self.directories = list(directories)
        self.is_deep = is_deep
        self.is_json = is_json
        self.is_quiet = is_quiet
        self.is_strict = is_strict


def parse_check_log(words: Sequence[str]) -> CheckArguments:
    """Parse the arguments behind `check-log`. Raises UsageError."""
    switches = set()
    directories = []
    for word in words:
        if not word.startswith("--"):
            directories.append(word.rstrip("/") or "/")
        elif word in _SWITCHES:
            switches.add(word)
        else:
            raise UsageError(f"unknown argument {word!r}")
    if not directories:
        raise UsageError("no directory is given: check-log DIR")
    return CheckArguments(
        directories,
        is_deep="--deep" in switches,
        is_json="--json" in switches,
        is_quiet="--quiet" in switches,
        is_strict="--strict" in switches,
    )


_SWITCHES: Final = frozenset({"--deep", "--json", "--quiet", "--strict"})
