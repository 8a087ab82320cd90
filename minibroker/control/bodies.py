"""JSON bodies of the control API: checks every field; an error names the field.

`FAULT_FIELDS` are the fields of `testing.faults.Fault`; that class checks their combinations.
"""

from __future__ import annotations

import json
import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from minibroker.control.messages import HttpError
from minibroker.rig.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT: Final = "a text"
SWITCH: Final = "true or false"
COUNT: Final = "a whole number from 0 up"
TIMES: Final = "a whole number from 1 up"
NUMBER: Final = "a number from 0 up"
INTEGER: Final = "a whole number"
_INT64_MAX: Final = (1 << 63) - 1

FAULT_FIELDS: Final[dict[str, str]] = {
    "api": TEXT,
    "error": TEXT,
    "delay_ms": NUMBER,
    "drop": TEXT,
    "twice": SWITCH,
    "truncate_bytes": COUNT,
    "hold": SWITCH,
    "applied": SWITCH,
    "topic": TEXT,
    "partition": COUNT,
    "group": TEXT,
    "client_id": TEXT,
    "version": COUNT,
    "skip": COUNT,
    "times": TIMES,
    "probability": NUMBER,
    "seed": INTEGER,
    "broker": TEXT,
    "peer": COUNT,
    "login": TEXT,
    "user": TEXT,
}
LEADER_FIELDS: Final[dict[str, str]] = {"topic": TEXT, "partition": COUNT, "broker": COUNT}
CLOCK_FIELDS: Final[dict[str, str]] = dict.fromkeys(
    ("days", "hours", "minutes", "seconds", "milliseconds"), NUMBER
)
ADVANCE_MS_MAX: Final = 100 * 365 * 86_400_000
"""A hundred years, so that timestamps stay far below their largest value."""
DELAY_MS_MAX: Final = 365 * 86_400_000
_DEFAULTS: Final = {"delay_ms": 0, "skip": 0, "probability": 1.0}
_FACTORS_MS: Final = {
    "days": 86_400_000,
    "hours": 3_600_000,
    "minutes": 60_000,
    "seconds": 1000,
    "milliseconds": 1,
}


def parse_object(body: bytes, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a body's fields; a null field counts as missing. Raises HttpError(400)."""
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body has to be a JSON object")
    for name, given in value.items():
        kind = fields.get(name)
        if kind is None:
            raise HttpError(
                HTTPStatus.BAD_REQUEST,
                f"field {name!r} is not known; expected some of {', '.join(fields)}",
            )
        if given is not None and not _is_a(kind, given):
            raise HttpError(
                HTTPStatus.BAD_REQUEST, f"field {name!r} is {given!r:.100}, expected {kind}"
            )
    return {name: given for name, given in value.items() if given is not None}


def _is_a(kind: str, value: Any) -> bool:
    if kind == TEXT:
        return isinstance(value, str)
    if kind == SWITCH:
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if kind == NUMBER:
        return math.isfinite(value) and 0 <= value <= _INT64_MAX
    lowest = {COUNT: 0, TIMES: 1, INTEGER: -_INT64_MAX}[kind]
    return isinstance(value, int) and lowest <= value <= _INT64_MAX


def parse_fault(body: bytes) -> Fault:
    """Return the fault of a body. Raises HttpError(400)."""
    rule = parse_object(body, FAULT_FIELDS)
    if rule.get("delay_ms", 0) > DELAY_MS_MAX:
        raise HttpError(
            HTTPStatus.BAD_REQUEST, f"field 'delay_ms' is more than {DELAY_MS_MAX}, a year"
        )
    try:
        return Fault(**rule)
    except ValueError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None


def parse_leader(body: bytes, own_id: int) -> tuple[str, int, int]:
    """Return topic, partition (0 if it is missing) and broker (the own one) of a body. Raises
    HttpError(400).
    """
    fields = parse_object(body, LEADER_FIELDS)
    if "topic" not in fields:
        raise HttpError(HTTPStatus.BAD_REQUEST, "field 'topic' is missing: expected a text")
    return fields["topic"], fields.get("partition", 0), fields.get("broker", own_id)


def show_fault(number: int, fault: Fault) -> dict[str, Any]:
    """Return a fault as JSON: its id, its fields, and the number of its hits."""
    fields: dict[str, Any] = {"id": number, "hits": fault.hits}
    for name in FAULT_FIELDS:
        value = getattr(fault, name, None)
        if value is not None and value is not False and value != _DEFAULTS.get(name):
            fields[name] = value.name if name == "error" else value
    return fields


def parse_advance_ms(body: bytes) -> int:
    """Return how far to move the clock, in ms. Raises HttpError(400)."""
    fields = parse_object(body, CLOCK_FIELDS)
    if not fields:
        raise HttpError(
            HTTPStatus.BAD_REQUEST, f"say how far: {', '.join(CLOCK_FIELDS)} (some of them)"
        )
    moved_ms = sum(value * _FACTORS_MS[name] for name, value in fields.items())
    if moved_ms > ADVANCE_MS_MAX:
        names = ", ".join(fields)
        raise HttpError(HTTPStatus.BAD_REQUEST, f"{names}: more than a hundred years")
    return int(moved_ms)
