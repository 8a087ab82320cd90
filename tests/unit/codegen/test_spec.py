"""Spec files as objects: ranges cut to their parents, mistakes named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol_specs.codegen.spec import (
    Range,
    SpecError,
    StoredRecord,
    flexible_start,
    parse_range,
    whole_range,
)
from tests.unit.codegen.specs import api_of, field_data, field_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "found"), [("1+", Range(1, 3)), ("1-2", Range(1, 2)), ("2", Range(2, 2)), (None, None)]
)
def test_a_range_in_its_three_forms(text: str | None, found: Range | None) -> None:
    assert parse_range(text, Range(0, 3), "here") == found


def test_whole_ranges_and_flexible_starts() -> None:
    assert whole_range("0-13") == Range(0, 13)
    assert flexible_start("9+") == 9
    assert flexible_start(None) is None
    assert 2 in Range(1, 2)
    assert 3 not in Range(1, 2)


@pytest.mark.parametrize("text", ["2-4", "4+", "2-1"])
def test_a_range_outside_its_parent_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match=r"here: versions .* do not lie within 0-3"):
        parse_range(text, Range(0, 3), "here")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (field_data("a", "int33"), "no type is called int33"),
        (field_data("read", "int32"), "not usable as a Python name"),
        (field_data("class", "int32"), "not usable as a Python name"),
        (field_data("a", "int32", typo=1), r"unknown keys \['typo'\]"),
        (field_data("a", "string", default=None), "null is the default"),
        (field_data("a", "[]Unknown"), "no struct is called Unknown"),
    ],
)
def test_a_mistake_in_a_field_is_named(tmp_path: Path, data: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        api_of(tmp_path, data)


def test_two_fields_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="share a name"):
        api_of(tmp_path, field_data("a", "int8"), field_data("a", "int8"))


def test_the_file_name_says_key_and_name(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="holds key 98"):
        api_of(tmp_path, key=98)
    path = tmp_path / "wrong.json"
    path.write_text('{"name": "right", "doc": "", "version_notes": {}}')
    with pytest.raises(SpecError, match="holds right"):
        StoredRecord(path)


def test_a_field_without_a_range_has_its_parents() -> None:
    assert field_of("a", "int8", Range(1, 2)).versions == Range(1, 2)


def test_defaults_by_type() -> None:
    assert field_of("a", "int8").default == 0
    assert field_of("a", "string", nullable="0+").default == ""
    assert field_of("a", "[]string").default == []
    assert field_of("a", "records").default is None
    assert field_of("a", "bool").default is False


def test_users_of_a_struct_stand_after_it(tmp_path: Path) -> None:
    request = {
        "fields": [field_data("outer", "Outer")],
        "structs": {
            "Outer": {"versions": "0+", "fields": [field_data("inner", "[]Inner")]},
            "Inner": {"versions": "0+", "fields": [field_data("a", "int8")]},
        },
    }
    api = api_of(tmp_path, request=request)
    assert [struct.name for struct in api.request.structs] == ["Inner", "Outer", "ToyRequest"]
    assert api.request.structs[0].doc == "Text."
    assert not api.request.is_flexible(1)
    assert api.request.is_flexible(2)
