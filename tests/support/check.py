"""`check-log` on a directory, as tests want it: strict, deep, and only what is broken."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from minibroker.verbs.check_log import CheckPlan, run

if TYPE_CHECKING:
    from pathlib import Path


def broken_things(*directories: Path | str, is_strict: bool = True) -> list[str]:
    """Return one line for each finding that is no note. Without `is_strict`, a crash is excused."""
    output, errors = io.StringIO(), io.StringIO()
    arguments = CheckPlan(
        tuple(str(directory) for directory in directories),
        is_deep=True,
        is_strict=is_strict,
        is_quiet=True,
    )
    run(arguments, output, errors)
    assert not errors.getvalue(), errors.getvalue()
    return output.getvalue().splitlines()[:-1]
