"""Topics out into files and back with PySpark: `minibroker pipeline …`, and the same from Python.

    from minibroker.pipeline import archive, replay, rollup, inspect, compare

Stands apart from the broker: it talks to one over Kafka's protocol like any client, so it works
against any Kafka. Needs the extra `minibroker[pipeline]` and Java 17 or newer. The functions are
made when they are first named, since PySpark takes a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.pipeline.errors import PipelineError
    from minibroker.pipeline.spark.progress import Outcome
    from minibroker.pipeline.verbs.compare.facts import Comparison
    from minibroker.pipeline.verbs.inspect.facts import Inspection

    archive: Callable[..., Outcome]
    compare: Callable[..., Comparison]
    copy: Callable[..., Outcome]
    inspect: Callable[..., Inspection]
    replay: Callable[..., Outcome]
    rollup: Callable[..., Outcome]

__all__ = ["PipelineError", "archive", "compare", "copy", "inspect", "replay", "rollup"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "PipelineError":
        from minibroker.pipeline.errors import PipelineError  # noqa: PLC0415

        return PipelineError
    from minibroker.pipeline.api import function_of  # noqa: PLC0415

    return globals().setdefault(name, function_of(name))
