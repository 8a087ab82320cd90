"""One field as Python: annotation, default, comparison with it, lines that read and write."""

from __future__ import annotations

from typing import Any

import pytest

from protocol_specs.codegen import values
from protocol_specs.codegen.spec import Range, StructSpec
from tests.unit.codegen.specs import field_of

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
