"""The scenarios of the differential tests, one module per group of APIs.

A scenario is a function that talks through a `Dialogue`; it asserts nothing itself. It runs once
for every version that both sides serve.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.compat.dialogue import Dialogue

NEWEST = 99


class Scenario(NamedTuple):
    """What is run, and where it makes sense."""

    api: str
    name: str
    min_version: int
    max_version: int
    talk: Callable[[Dialogue], None]
    peer: str | None
    """`3.9.1` or `4.4.0` when only that one can be asked, else None."""
    because: str | None
    """Why the other one cannot be asked: it has no answer, or another one each time."""


SCENARIOS: list[Scenario] = []


def scenario(
    api: str,
    *,
    since: int = 0,
    until: int = NEWEST,
    peer: str | None = None,
    because: str | None = None,
) -> Callable[[Callable[[Dialogue], None]], Callable[[Dialogue], None]]:
    """Register the function below as a scenario of `api`, for its versions `since` … `until`.

    Both Kafkas are asked, unless `peer` names one `because` the other cannot be.
    """

    def register(talk: Callable[[Dialogue], None]) -> Callable[[Dialogue], None]:
        SCENARIOS.append(Scenario(api, talk.__name__, since, until, talk, peer, because))
        return talk

    return register


def load_all() -> list[Scenario]:
    """Import every module of this package; returns what they registered, by module and place."""
    for module in sorted(iter_modules(__path__), key=lambda found: found.name):
        import_module(f"{__name__}.{module.name}")
    return SCENARIOS
