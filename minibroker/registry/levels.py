"""Compatibility levels: whose data has to be readable by whom, and how far back.

| level | a new schema reads old data | old schemas read new data |
|---|---|---|
| BACKWARD | yes | |
| FORWARD | | yes |
| FULL | yes | yes |

A level with `_TRANSITIVE` is about every version before, without it about the last one. NONE asks
for nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_LEVEL: Final = "BACKWARD"


class Level(NamedTuple):
    """The checks of one level."""

    reads_old: bool
    """The new schema has to read data of old ones."""
    is_read_by_old: bool
    """Old schemas have to read data of the new one."""
    is_transitive: bool
    """All versions count, not the last alone."""


LEVELS: Final = {
    "NONE": Level(False, False, False),
    "BACKWARD": Level(True, False, False),
    "BACKWARD_TRANSITIVE": Level(True, False, True),
    "FORWARD": Level(False, True, False),
    "FORWARD_TRANSITIVE": Level(False, True, True),
    "FULL": Level(True, True, False),
    "FULL_TRANSITIVE": Level(True, True, True),
}
