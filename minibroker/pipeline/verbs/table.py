"""The verbs: every room beside this module has a `plan` with its `VERB`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.pipeline.options.declaration import Verb


def _verbs_of_rooms() -> Iterator[Verb]:
    for plan in Path(__file__).parent.glob("*/plan.py"):
        yield import_module(f"{__package__}.{plan.parent.name}.plan").VERB


VERBS: Final[dict[str, Verb]] = {
    verb.name: verb for verb in sorted(_verbs_of_rooms(), key=lambda verb: verb.rank)
}
"""Name → verb, in the order of the help."""
