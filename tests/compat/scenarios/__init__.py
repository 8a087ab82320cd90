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
    """A scenario, with the versions and brokers that it runs on."""

    api: str
    name: str
    min_version: int
    max_version: int
    talk: Callable[[Dialogue], None]
    peer: str | None
    """`3.9.1` or `4.4.0` if only that Kafka can be asked, else None."""
    because: str | None
    """Reason why the other Kafka cannot be asked: no answer, or another one each time."""


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

    Both Kafkas are asked, unless `peer` names one; `because` says why.
    """

    def register(talk: Callable[[Dialogue], None]) -> Callable[[Dialogue], None]:
        SCENARIOS.append(Scenario(api, talk.__name__, since, until, talk, peer, because))
        return talk

    return register


def load_all() -> list[Scenario]:
    """Import every module of this package; return their scenarios, by module and place."""
    for module in sorted(iter_modules(__path__), key=lambda module: module.name):
        import_module(f"{__name__}.{module.name}")
    return SCENARIOS
