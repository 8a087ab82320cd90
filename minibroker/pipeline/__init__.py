"""Topics out into files and back with PySpark: `minibroker pipeline …`, and the same from Python.

    from minibroker.pipeline import archive, replay, rollup, inspect, compare

Stands apart from the broker: it talks to one over Kafka's protocol like any client, so it works
against any Kafka. Needs the extra `minibroker[pipeline]` and Java 17 or newer. The functions are
loaded when they are first named, since PySpark takes a second to import.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from minibroker.pipeline.api import archive, compare, copy, inspect, replay, rollup
    from minibroker.pipeline.errors import PipelineError

__all__ = ["PipelineError", "archive", "compare", "copy", "inspect", "replay", "rollup"]

_HOMES: Final = {
    "PipelineError": "minibroker.pipeline.errors",
    "archive": "minibroker.pipeline.api",
    "compare": "minibroker.pipeline.api",
    "copy": "minibroker.pipeline.api",
    "inspect": "minibroker.pipeline.api",
    "replay": "minibroker.pipeline.api",
    "rollup": "minibroker.pipeline.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
