"""`minibroker check-log`: reads whole data directories and reports damage.

It changes nothing, needs bounded memory, and reads directories of minibroker and of Kafka.
`check_directory` checks the partitions of a directory, `check_partition` the segments of a
partition, `check_segment` the batches of a segment.
"""

from typing import Final, TextIO

from minibroker.tools.check_directory import (
    DirectoriesCheck,
    check_directories,
    is_log_directory,
    is_partition_directory,
)
from minibroker.tools.check_plan import CheckPlan
from minibroker.tools.findings import Findings

EXIT_OK: Final = 0
EXIT_BROKEN: Final = 1
EXIT_USAGE: Final = 2


def run_check_log(arguments: CheckPlan, out: TextIO, errors: TextIO) -> int:
    """Check the directories, print the findings, and return the exit code."""
    findings = Findings(out, is_json=arguments.is_json, is_quiet=arguments.is_quiet)
    check = DirectoriesCheck(findings, is_deep=arguments.is_deep, is_strict=arguments.is_strict)
    try:
        for path in arguments.directories:
            if not is_partition_directory(path) and not is_log_directory(path):
                errors.write(
                    f"minibroker check-log: {path} is no data directory: there is no "
                    "meta.properties, no checkpoint and no partition in it\n"
                )
                return EXIT_USAGE
        check_directories(arguments.directories, check)
    except BrokenPipeError:
        raise
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        errors.write(f"minibroker check-log: {error.filename}: {error.strerror}\n")
        return EXIT_USAGE
    findings.summary(check.partition_count, check.segment_count)
    return EXIT_BROKEN if findings.broken_count else EXIT_OK
