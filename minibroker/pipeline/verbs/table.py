"""The verbs: every room beside this module has a `plan` with its `VERB`."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Final

from minibroker.pipeline import verbs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.pipeline.options.declaration import Verb


def _verbs_of_rooms() -> Iterator[Verb]:
    for room in pkgutil.iter_modules(verbs.__path__):
        if room.ispkg:
            yield import_module(f"{verbs.__name__}.{room.name}.plan").VERB


VERBS: Final[dict[str, Verb]] = {
    verb.name: verb for verb in sorted(_verbs_of_rooms(), key=lambda verb: verb.rank)
}
"""Name → verb, in the order of the help."""
