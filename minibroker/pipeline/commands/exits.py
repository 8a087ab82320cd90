"""The exit codes of `minibroker pipeline`."""

from __future__ import annotations

from typing import Final

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_DIFFERENT: Final = 3
"""`compare` found differences."""
EXIT_INTERRUPTED: Final = 130
