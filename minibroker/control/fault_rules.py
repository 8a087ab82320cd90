"""The faults that were added over HTTP, by their numbers.

A broker's API has them, and that of a proxy: either gives a target, which applies the rules.
"""

from __future__ import annotations

from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from minibroker.control.bodies import fault_of, fault_view
from minibroker.control.messages import HttpError
from minibroker.kafka.errors import MinibrokerError

if TYPE_CHECKING:
    import msgspec

    from minibroker.rig.faults import Fault


class FaultTarget(Protocol):
    """Something that faults happen to: a node, or a proxy."""

    @property
    def broker_id(self) -> int | None:
        """Return the id of the broker, None for a proxy."""

    async def add(self, fault: Fault) -> None:
        """Apply a rule until `remove`. Raises MinibrokerError for one that cannot happen to it."""

    async def remove(self, fault: Fault) -> None:
        """End a rule."""

    async def clear(self) -> None:
        """Remove every rule."""


class AddedFault(NamedTuple):
    """A fault, and the target that it was added to."""

    fault: Fault
    target: FaultTarget


class FaultRules:
    """The faults of one API. The loop owns it."""

    def __init__(self) -> None:
        self._rules: dict[int, AddedFault] = {}
        self._numbers = count(1)

    def views(self) -> list[msgspec.Struct]:
        """Return the faults in force as JSON has them, in the order in which they were added."""
        # A reset of the cluster ends them behind this API.
        self._rules = {n: rule for n, rule in self._rules.items() if not rule.fault.is_removed}
        return [_view(number, rule) for number, rule in self._rules.items()]

    def hits(self) -> dict[int, int]:
        """Return number → hits of the faults in force."""
        return {
            number: rule.fault.hits
            for number, rule in self._rules.items()
            if not rule.fault.is_removed
        }

    async def add(self, body: Any, target: FaultTarget) -> tuple[int, msgspec.Struct]:
        """Add a fault; return its number and its JSON. Raises HttpError."""
        fault = fault_of(body)
        try:
            await target.add(fault)
        except MinibrokerError as error:
            raise HttpError(HTTPStatus.CONFLICT, str(error)) from None
        number = next(self._numbers)
        rule = AddedFault(fault, target)
        if not fault.is_removed:
            self._rules[number] = rule
        return number, _view(number, rule)

    def show(self, text: str) -> msgspec.Struct:
        """Return a fault as JSON has it. Raises HttpError(404)."""
        number = self._find(text)
        return _view(number, self._rules[number])

    async def remove(self, text: str) -> msgspec.Struct:
        """Remove a fault; return it as JSON has it. Raises HttpError(404)."""
        number = self._find(text)
        rule = self._rules.pop(number)
        await rule.target.remove(rule.fault)
        return _view(number, rule)

    async def clear(self, target: FaultTarget) -> None:
        """Remove all faults of a target, and those of others that were added here."""
        rules, self._rules = self._rules, {}
        await target.clear()
        for rule in rules.values():
            if rule.target is not target:
                await rule.target.remove(rule.fault)

    def forget(self) -> None:
        """Forget all faults: a reset has ended them."""
        self._rules.clear()

    def _find(self, text: str) -> int:
        if not (text.isdecimal() and len(text) < 19 and int(text) in self._rules):
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no fault {text:.100}; see GET /faults")
        return int(text)


def _view(number: int, rule: AddedFault) -> msgspec.Struct:
    return fault_view(number, rule.fault, rule.target.broker_id)
