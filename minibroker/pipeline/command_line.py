"""The run of `minibroker pipeline VERB …`, parsed by `minibroker.cli`: a plan in, exit code out.

    plan ─► VERB.command ─► VERB.job, progress, one last sentence
      ├──► --dry-run: cli.dry_run
      └──► else, before that: cli.starting

Help and wrong usage need no Spark: a command's modules are imported when it runs.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.cli.errors import EXIT_INTERRUPTED, EXIT_OK
from minibroker.pipeline.cli.starting import announce
from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from minibroker.pipeline.options.declaration import Arguments

_NEEDED: Final = {"pyspark": "pyspark", "pyarrow": "pyarrow"}
"""Module → the package that has it."""


def run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    """Run the verb, or show its plan; return the exit code.

    Results go to `out`, complaints to `errors`. Raises PipelineError.
    """
    check_installed()
    try:
        return _run(arguments, out, errors)
    except KeyboardInterrupt:
        errors.write(f"{arguments.verb.command}: interrupted; nothing was written\n")
        return EXIT_INTERRUPTED


def check_installed() -> None:
    """Raise PipelineError if a package of the extra `pipeline` is missing."""
    missing = [name for module, name in _NEEDED.items() if not importlib.util.find_spec(module)]
    if missing:
        raise PipelineError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: "
            "pip install 'minibroker[pipeline]'"
        )


def _run(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    if arguments.dry_run:
        from minibroker.pipeline.cli.dry_run import preview  # noqa: PLC0415  asks the broker

        out.write("\n".join(preview(arguments)) + "\n")
        return EXIT_OK
    announce(arguments, out, errors)
    command = importlib.import_module(arguments.verb.command_module)
    return int(command.run(arguments, out, errors))
