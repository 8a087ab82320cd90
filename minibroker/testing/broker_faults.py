"""`Faults`: the rules of one broker or of several, added and removed by the test's thread.

The rules themselves are `faults.Fault`; the brokers' nodes apply them.
"""

from __future__ import annotations

import inspect
from collections import deque
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol

from minibroker.rig.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterator

    from minibroker.rig.faults import FaultSet

    Put = Callable[["Faults", Fault], Fault]

P = ParamSpec("P")
HISTORY_MAX: Final = 1_000


class Disturbed(Protocol):
    """A broker's node, or a proxy: it has rules. Belongs to its loop."""

    @property
    def faults(self) -> FaultSet:
        """Return every rule."""

    async def add(self, fault: Fault) -> None:
        """Apply a rule until `remove`. Raises ConfigError for one that cannot happen here."""

    async def remove(self, fault: Fault) -> None:
        """End a rule."""

    async def clear(self) -> None:
        """Remove every rule."""


class OnNodes(Protocol):
    """Runs a coroutine of each node on the loop, and returns their results in order."""

    def __call__(
        self,
        call: Callable[[Any], Coroutine[Any, Any, Any]],
        broker_ids: Collection[int] | None,
    ) -> list[Any]:
        """`broker_ids`: of the nodes, None for all."""


def _with_arguments_of(
    make: Callable[P, Fault],
) -> Callable[[Put], Callable[Concatenate[Faults, P], Fault]]:
    """Return a decorator: the method takes the arguments of a fault in place of the fault."""

    def decorate(put: Put) -> Callable[Concatenate[Faults, P], Fault]:
        @wraps(put)
        def add(faults: Faults, /, *args: P.args, **fields: P.kwargs) -> Fault:
            return put(faults, make(*args, **fields))

        (own, *_), parameters = inspect.signature(put).parameters.values(), inspect.signature(make)
        signature = parameters.replace(parameters=[own, *parameters.parameters.values()])
        vars(add).update(__signature__=signature)
        return add

    return decorate


class Faults:
    """The rules of a running broker, or of all brokers of a cluster, for the thread of the test."""

    def __init__(
        self,
        on_nodes: OnNodes,
        required: list[Fault] | None = None,
        history: deque[Fault] | None = None,
    ) -> None:
        """`required`, `history`: shared with the rules of the other brokers, None: there are no
        others.
        """
        self._on_nodes = on_nodes
        self._required: list[Fault] = [] if required is None else required
        """Rules of this test that have to meet a request."""
        self.history: deque[Fault] = deque(maxlen=HISTORY_MAX) if history is None else history
        """The last rules that were added, those that are removed too."""

    @_with_arguments_of(Fault)
    def add(self, fault: Fault) -> Fault:
        """Add a rule, from now on until it is removed or its `with` block ends. The arguments are
        those of `Fault`.

        A test with the pytest fixtures fails if the rule never met a request, unless `may_miss` is
        set. Raises ValueError; ConfigError for a fault that cannot happen to this broker.
        """
        return self.put(fault, may_miss=fault.may_miss or not fault.counts)

    def of(self, broker_id: int) -> Faults:
        """Return the rules of one of the brokers."""
        return Faults(
            lambda call, _: self._on_nodes(call, [broker_id]), self._required, self.history
        )

    def put(
        self, fault: Fault, broker_ids: Collection[int] | None = None, *, may_miss: bool = False
    ) -> Fault:
        """Add a rule to these brokers (None: all that it is for)."""
        fault.on_removed = self._remove
        self._on_nodes(lambda node: node.add(fault), broker_ids)
        self.history.append(fault)
        if not may_miss:
            self._required.append(fault)
        return fault

    @property
    def missed(self) -> list[Fault]:
        """Return the required rules (without `may_miss`) that met no request since the start or
        reset.
        """
        return [fault for fault in self._required if not fault.hits]

    def forget(self) -> None:
        """Expect no more hits of the rules so far."""
        self._required.clear()

    def clear(self) -> None:
        """Remove every fault."""
        self._on_nodes(lambda node: node.clear(), None)

    def __iter__(self) -> Iterator[Fault]:
        rules = self._on_nodes(_rules_of, None)
        return iter(dict.fromkeys(fault for of_node in rules for fault in of_node))

    def _remove(self, fault: Fault) -> None:
        self._on_nodes(lambda node: node.remove(fault), None)


async def _rules_of(node: Disturbed) -> list[Fault]:
    return list(node.faults)
