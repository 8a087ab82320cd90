"""Spec files as objects: ranges cut to their parents, mistakes named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol_specs.codegen import values
from protocol_specs.codegen.spec import (
    Range,
    SpecError,
    StoredRecord,
    StructSpec,
    flexible_start,
    parse_range,
    whole_range,
)
from tests.unit.codegen.specs import api_of, field_data, field_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1+", Range(1, 3)), ("1-2", Range(1, 2)), ("2", Range(2, 2)), (None, None)],
)
def test_a_range_in_its_three_forms(text: str | None, expected: Range | None) -> None:
    assert parse_range(text, Range(0, 3), "here") == expected


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


# One field as Python: annotation, default, comparison with it, lines that read and write.


ALL = Range(0, 3)


@pytest.mark.parametrize(
    ("kind", "more", "annotation", "default", "is_set"),
    [
        ("int32", {}, "int", "0", "self.a != 0"),
        ("int32", {"default": -1}, "int", "-1", "self.a != -1"),
        ("bool", {}, "bool", "False", "self.a"),
        ("bool", {"default": True}, "bool", "True", "not self.a"),
        ("float64", {}, "float", "0.0", "self.a != 0.0"),
        ("error_code", {}, "int", "0", "self.a != 0"),
        ("string", {}, "str", '""', 'self.a != ""'),
        ("string", {"nullable": "0+", "default": None}, "str | None", "None", "self.a is not None"),
        ("bytes", {}, "bytes", 'b""', 'self.a != b""'),
        ("uuid", {}, "bytes", "ZERO_UUID", "self.a != ZERO_UUID"),
        ("records", {}, "Buffer | None", "None", "self.a is not None"),
        ("[]int32", {}, "list[int]", "[]", "self.a"),
        ("[]string", {"nullable": "1+"}, "list[str] | None", "[]", "(self.a is None or self.a)"),
    ],
)
def test_a_field_in_python(
    kind: str, more: dict[str, Any], annotation: str, default: str, is_set: str
) -> None:
    field = field_of("a", kind, **more)
    assert values.python_type(field, {}) == annotation
    assert values.default(field, {}) == default
    assert values.is_set(field, {}) == is_set


def test_mutable_defaults_are_fresh_and_null_can_be_said() -> None:
    assert values.constructor_parts(field_of("a", "[]int32"), {}) == (
        "a: list[int] | None = None",
        "[] if a is None else a",
    )
    assert values.constructor_parts(field_of("a", "[]int32", nullable="0+"), {}) == (
        "a: list[int] | None | tuple[()] = ()",
        "[] if isinstance(a, tuple) else a",
    )


def test_a_string_branches_where_versions_become_flexible() -> None:
    lines = values.read_lines(field_of("a", "string"), ALL, 2, {})
    assert lines == [
        "if version >= 2:",
        "    self.a = reader.compact_string()",
        "else:",
        "    self.a = reader.string()",
    ]


def test_null_in_a_version_without_it_is_refused_when_writing() -> None:
    lines = values.write_lines(field_of("a", "string", nullable="1+"), "writer", ALL, None, {})
    assert lines == [
        "if version >= 1:",
        "    writer.nullable_string(self.a)",
        "else:",
        "    if self.a is None:",
        '        raise null_not_carried("a", version)',
        "    writer.string(self.a)",
    ]


def test_arrays_of_numbers_are_read_at_once() -> None:
    assert values.read_lines(field_of("a", "[]int32"), ALL, None, {}) == [
        "count = reader.array_count()",
        'self.a = reader.numbers(count, "i")',
    ]
    assert values.write_lines(field_of("a", "[]int32"), "writer", ALL, None, {}) == [
        "writer.array_count(len(self.a))",
        'writer.numbers(self.a, "i")',
    ]


def test_a_nullable_struct_has_a_marker() -> None:
    field = field_of("a", "Part", nullable="0+", default=None)
    field.struct = StructSpec("Part", ALL)
    names = {field.struct: "Part"}
    assert values.read_lines(field, ALL, None, names) == [
        "self.a = Part.read(reader, version) if reader.int8() >= 0 else None"
    ]
    assert values.write_lines(field, "writer", ALL, None, names)[:2] == [
        "if self.a is None:",
        "    writer.int8(-1)",
    ]


def test_a_tagged_struct_counts_as_set_when_it_differs_from_its_defaults() -> None:
    field = field_of("a", "Part", tag=0)
    field.struct = StructSpec("Part", ALL)
    names = {field.struct: "Part"}
    assert values.python_type(field, names) == "Part | None"
    assert values.is_set(field, names) == "self.a is not None and self.a != Part()"
