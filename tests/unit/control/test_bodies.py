"""JSON bodies, field by field."""

from __future__ import annotations

import inspect
import json

import pytest

from minibroker.control.bodies import (
    FAULT_FIELDS,
    parse_advance_ms,
    parse_fault,
    parse_object,
    show_fault,
)
from minibroker.control.http import HttpError
from minibroker.testing import Fault


def test_every_argument_of_a_fault_is_a_field() -> None:
    assert set(FAULT_FIELDS) == set(inspect.signature(Fault).parameters)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("api", 1),
        ("twice", 1),
        ("partition", -1),
        ("partition", 1.5),
        ("partition", True),
        ("partition", 1 << 70),
        ("times", 0),
        ("delay_ms", "1"),
        ("delay_ms", 1e15),
        ("seed", 0.5),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(HttpError, match=field) as caught:
        parse_fault(json.dumps({field: value}).encode())
    assert caught.value.status == 400


def test_numbers_that_are_none() -> None:
    for text in (b'{"delay_ms": NaN}', b'{"delay_ms": Infinity}', b'{"delay_ms": 1e999}'):
        with pytest.raises(HttpError, match="delay_ms"):
            parse_fault(text)


def test_null_is_as_if_it_were_not_there() -> None:
    assert parse_object(b'{"topic": null, "group": "g"}', FAULT_FIELDS) == {"group": "g"}
    assert parse_object(b"", FAULT_FIELDS) == {}


def test_a_fault_comes_back_as_it_was_given() -> None:
    rule = {"error": "UNKNOWN_SERVER_ERROR", "partition": 0, "probability": 0.5, "times": 3}
    shown = show_fault(7, parse_fault(json.dumps(rule).encode()))
    assert shown == {"id": 7, "hits": 0, **rule}


def test_times_add_up() -> None:
    assert parse_advance_ms(b'{"hours": 0.5, "seconds": 2, "milliseconds": 3}') == 1_802_003
