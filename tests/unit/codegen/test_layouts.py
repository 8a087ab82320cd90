"""Digests of layouts: equal while nothing that clients see has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol_specs.codegen.layouts import Digests, differences, digests_of, digests_text, with_new
from tests.unit.codegen.specs import api_of, field_data

if TYPE_CHECKING:
    from pathlib import Path

A = field_data("a", "int32", default=1)
B = field_data("b", "string", versions="1+")


def digests(directory: Path, *fields: dict[str, Any], **more: Any) -> Digests:
    """Return the digests of a small request with these fields."""
    return digests_of([api_of(directory, *fields, **more).request])


def test_versions_that_are_alike_have_one_digest(tmp_path: Path) -> None:
    found = digests(tmp_path, A, B)["ToyRequest"]
    assert list(found) == ["0", "1", "2", "3"]
    assert found["0"] != found["1"] != found["2"] == found["3"]


def test_documentation_may_change(tmp_path: Path) -> None:
    before = digests(tmp_path, A)
    assert differences(before, digests(tmp_path, {**A, "doc": "Other words."})) == []


@pytest.mark.parametrize(
    "fields",
    [
        (B, A),
        ({**A, "type": "int64"}, B),
        ({**A, "default": 2}, B),
        ({**A, "name": "c"}, B),
        (A, {**B, "nullable": "1+"}),
        (A,),
    ],
)
def test_fields_that_clients_see_may_not(
    tmp_path: Path, fields: tuple[dict[str, Any], ...]
) -> None:
    frozen = digests(tmp_path, A, B)
    assert "ToyRequest version 1" in differences(frozen, digests(tmp_path, *fields))


def test_a_new_version_is_added_and_the_old_ones_stay(tmp_path: Path) -> None:
    frozen = digests(tmp_path, A, versions="0-2")
    current = digests(tmp_path, {**A, "default": 5}, B)
    merged = with_new(frozen, current)["ToyRequest"]
    assert merged["3"] == current["ToyRequest"]["3"]
    assert merged["2"] == frozen["ToyRequest"]["2"]


def test_a_message_that_is_gone_is_a_difference() -> None:
    assert differences({"Gone": {"0": "x"}}, {}) == ["Gone version 0"]


def test_the_file_has_a_message_a_line() -> None:
    assert digests_text({"B": {"0": "y"}, "A": {}}) == '{\n  "A": {},\n  "B": {"0": "y"}\n}\n'
