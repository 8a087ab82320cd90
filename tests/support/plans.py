"""The plan of a verb from the words behind its name, as its `run` gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.cli.declaration import plan_of
from minibroker.cli.parser import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.cli.declaration import Verb


def plan_from(verb: Verb, words: Sequence[str]) -> Any:
    """Return the plan. Raises UsageError."""
    return plan_of(verb, parse(verb, words))
