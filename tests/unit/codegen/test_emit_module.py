"""Whole modules: what stands at the top, and names of structs that two sides use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol_specs.codegen.__main__ import SPECS
from protocol_specs.codegen.emit_module import api_source, stored_source
from protocol_specs.codegen.spec import StoredRecord
from tests.unit.codegen.specs import api_of, classes_of, field_data

if TYPE_CHECKING:
    from pathlib import Path


def test_the_top_says_what_it_is_and_where_it_comes_from(tmp_path: Path) -> None:
    source = api_source(api_of(tmp_path, field_data("a", "int8")))
    for text in (
        "Toy: key 99, versions 0 to 3.",
        "A toy.",
        "1: Something new.",
        "Generated from protocol_specs/apis/99_toy.json",
        "API_KEY = 99",
        "VERSIONS = (0, 3)",
        "FLEXIBLE_FROM: int | None = 2",
    ):
        assert text in source


def test_only_what_is_used_is_imported(tmp_path: Path) -> None:
    source = api_source(api_of(tmp_path, field_data("a", "string")))
    assert "ZERO_UUID" not in source
    assert "not_carried" not in source
    assert "import Struct" not in source


def part(kind: str) -> dict[str, Any]:
    """A side with a struct called Part."""
    return {"fields": [field_data("parts", "[]Part", fields=[field_data("a", kind)])]}


def test_a_struct_of_both_sides_is_one_class(tmp_path: Path) -> None:
    found = classes_of(api_of(tmp_path, request=part("int8"), response=part("int8")))
    assert "Part" in found
    assert "RequestPart" not in found


def test_structs_of_one_name_but_other_fields_get_the_side_in_front(tmp_path: Path) -> None:
    found = classes_of(api_of(tmp_path, request=part("int8"), response=part("int16")))
    assert "Part" not in found
    assert {"RequestPart", "ResponsePart"} <= found.keys()


def test_a_stored_record_has_no_api_key() -> None:
    source = stored_source(StoredRecord(SPECS / "stored" / "offset_commit.json"))
    assert "API_KEY" not in source
    assert "class OffsetCommitKey(VersionedMessage):" in source
    assert "class OffsetCommitValue(VersionedMessage):" in source
