"""The generated files are those that the generator makes, and the specs are complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.cli.reference import page
from protocol_specs.codegen.__main__ import PACKAGE, ROOT, current_digests, frozen_digests, generate
from protocol_specs.codegen.layouts import differences
from tests.support.reference_codec import MessageSpec, load_specs
from tests.support.spec_schema import problems

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SPECS = ROOT / "protocol_specs"
SPEC_FILES = [*sorted(SPECS.glob("*/*.json")), SPECS / "errors.json", SPECS / "layouts.json"]


def test_generated_is_fresh() -> None:
    stale = [path.name for path, text in generate().items() if path.read_text() != text]
    assert not stale, f"run `python -m protocol_specs.codegen`: {stale}"


def test_the_reference_of_the_command_line_is_fresh() -> None:
    """A verb or an option that is declared is on the page."""
    path = ROOT / "docs" / "reference" / "command-line.md"
    assert path.read_text() == page(), "run `make generate`"


def test_nothing_lies_beside_the_generated_modules() -> None:
    files = set(generate())
    for folder in ("messages", "stored"):
        modules = set((PACKAGE / "kafka" / "protocol" / folder).glob("*.py"))
        assert {path for path in modules if path.name != "__init__.py"} <= files


@pytest.mark.parametrize("path", SPEC_FILES, ids=lambda path: path.stem)
def test_a_spec_file_keeps_to_the_schema(path: Path) -> None:
    assert problems(path) == []


def fields_of(spec: MessageSpec) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every field at any depth, with its path."""

    def walk(fields: list[dict[str, Any]], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for field in fields:
            yield f"{place}.{field['name']}", field
            yield from walk(field.get("fields", []), f"{place}.{field['name']}")

    yield from walk(spec.fields, spec.class_name)
    for name, struct in spec.structs.items():
        yield from walk(struct["fields"], f"{spec.class_name}.{name}")


def test_every_field_is_documented() -> None:
    empty = [place for spec in load_specs() for place, f in fields_of(spec) if not f["doc"].strip()]
    assert empty == []


def test_the_apis_are_those_of_brokers_with_and_without_zookeeper() -> None:
    """Keys 4 to 7 and 67 are for ZooKeeper; 52 to 54 and the like are KRaft's own."""
    keys = {spec.key for spec in load_specs() if spec.key is not None}
    expected = {*range(52), 55, 56, 57, 60, 61, 64, 65, 66, 67, 68, 69, 71, 72}
    assert keys == expected | set(range(74, 95))


# Guard: a version that clients speak never changes its layout again.


def test_no_frozen_layout_has_changed() -> None:
    changed = differences(frozen_digests(), current_digests())
    assert not changed, (
        "fields of a released version were renamed, moved, retyped or given another default; a new "
        f"layout needs a new version: {changed}"
    )


def test_every_version_is_frozen() -> None:
    frozen = frozen_digests()
    new = [
        f"{name} version {version}"
        for name, versions in current_digests().items()
        for version in versions
        if version not in frozen.get(name, {})
    ]
    assert not new, f"run `python -m protocol_specs.codegen --freeze`: {new}"
