"""The upkeep of an archive: done at once, with counts as a sentence or a line of JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from minibroker.pipeline.errors import EXIT_OK
from minibroker.pipeline.verbs.maintain import maintenance

if TYPE_CHECKING:
    from minibroker.pipeline.cli.parser import Arguments


def run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    """Maintain the archive, write the counts to `out`, and return the exit code."""
    done = maintenance.run(arguments.plan)
    if out.isatty():
        out.write(
            f"{done.merged_files:,} files merged into {done.into_files:,}; "
            f"{done.expired_versions:,} old versions dropped; "
            f"{done.removed_files:,} files removed\n"
        )
    else:
        out.write(json.dumps(done._asdict()) + "\n")
    return EXIT_OK
