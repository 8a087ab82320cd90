"""The situations: each makes topics of its own, lets faults happen, and notes what it sees.

A situation is a function that yields once for each of its faults; it asserts nothing itself.
Situations with the same faults run together, so that a broker is killed once for all of them: when
each has come to its yield, the fault happens, and all go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.compat_cluster.scene import Scene
    from tests.compat_cluster.three_brokers import ThreeBrokers

FIRST_CONTROLLER = 0
"""The controller at the beginning of each situation."""


class Fault(NamedTuple):
    """A method of `ThreeBrokers` and the broker that it is called for."""

    verb: str
    broker: int

    def happen(self, brokers: ThreeBrokers) -> None:
        """Call the method."""
        getattr(brokers, self.verb)(self.broker)


def kill(n: int) -> Fault:
    return Fault("kill", n)


def start(n: int) -> Fault:
    return Fault("start", n)


def stop(n: int) -> Fault:
    return Fault("stop", n)


def pause(n: int) -> Fault:
    return Fault("pause", n)


def resume(n: int) -> Fault:
    return Fault("resume", n)


def expire(n: int) -> Fault:
    return Fault("expire", n)


def bounce(n: int) -> Fault:
    return Fault("bounce", n)


def make_controller(n: int) -> Fault:
    return Fault("make_controller", n)


Steps = Iterator[None]
Play = Callable[["Scene"], Steps]


class Situation(NamedTuple):
    """A situation, with the faults that happen in it, in order."""

    name: str
    faults: tuple[Fault, ...]
    play: Play


SITUATIONS: dict[str, Situation] = {}


def situation(*faults: Fault) -> Callable[[Play], Play]:
    """Register the function below as a situation with these faults."""

    def register(play: Play) -> Play:
        assert play.__name__ not in SITUATIONS, play.__name__
        SITUATIONS[play.__name__] = Situation(play.__name__, faults, play)
        return play

    return register


def load_all() -> dict[str, Situation]:
    """Import every module of this package; return their situations by name."""
    for module in sorted(iter_modules(__path__), key=lambda module_info: module_info.name):
        import_module(f"{__name__}.{module.name}")
    return SITUATIONS
