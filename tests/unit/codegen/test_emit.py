"""Generated classes of toy specs at work: layouts that are merged, tags, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.protocol.primitives import Reader, Writer
from protocol_specs.codegen.emit import layout_name
from protocol_specs.codegen.emit_module import api_source
from tests.unit.codegen.specs import api_of, classes_of, field_data

if TYPE_CHECKING:
    from pathlib import Path


def test_neighbouring_numbers_are_packed_together_per_version(tmp_path: Path) -> None:
    api = api_of(
        tmp_path,
        field_data("a", "int32"),
        field_data("b", "int64", versions="1+", default=-1, ignorable=True),
        field_data("c", "bool"),
    )
    source = api_source(api)
    assert '_IQZ = Struct(">iq?")' in source
    assert '_IZ = Struct(">i?")' in source
    assert "self.a, self.b, self.c = reader.fixed(_IQZ)" in source
    toy = classes_of(api)["ToyRequest"]
    for version, data in ((0, b"\0\0\0\5\1"), (1, b"\0\0\0\5" + bytes(7) + b"\7\1")):
        writer = Writer()
        toy(a=5, b=7, c=True).write(writer, version)
        assert writer.to_bytes() == data
        back = toy.read(Reader(data), version)
        assert (back.a, back.b, back.c) == (5, 7 if version else -1, True)


def test_documentation_is_safe_in_a_docstring(tmp_path: Path) -> None:
    data = {**field_data("a", "int8", versions="1+"), "doc": 'Ends in "quotes"'}
    source = api_source(api_of(tmp_path, data))
    assert '"""v1+. Ends in \'quotes\'."""' in source
    compile(source, "toy.py", "exec")


def test_names_of_layouts() -> None:
    assert layout_name("ihq") == "_IHQ"
    assert layout_name("?HI") == "_ZUHUI"


def test_a_tag_that_comes_later_than_flexible_versions(tmp_path: Path) -> None:
    toy = classes_of(api_of(tmp_path, field_data("a", "int32", versions="3", tag=4)))["ToyRequest"]
    writer = Writer()
    toy(a=1).write(writer, 3)
    assert writer.to_bytes() == b"\x01\x04\x04\x00\x00\x00\x01"
    assert toy.read(Reader(writer.to_bytes()), 3) == toy(a=1)
    assert toy.read(Reader(writer.to_bytes()), 2) == toy()
    for version in (0, 2):
        with pytest.raises(ValueError, match=f"ToyRequest version {version} cannot carry a"):
            toy(a=1).write(Writer(), version)


def test_an_ignorable_tag_is_dropped_where_it_has_no_place(tmp_path: Path) -> None:
    data = field_data("a", "int32", versions="3", tag=4, ignorable=True)
    toy = classes_of(api_of(tmp_path, data))["ToyRequest"]
    for version, expected in ((0, b""), (2, b"\x00")):
        writer = Writer()
        toy(a=1).write(writer, version)
        assert writer.to_bytes() == expected


def test_a_message_without_fields(tmp_path: Path) -> None:
    toy = classes_of(api_of(tmp_path))["ToyRequest"]
    writer = Writer()
    toy().write(writer, 2)
    assert writer.to_bytes() == b"\x00"
    assert toy.read(Reader(b"\x00"), 2) == toy()
    assert toy.read(Reader(b""), 1) == toy()
