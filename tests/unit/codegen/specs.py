"""Small specs for the generator's tests, and their generated classes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from protocol_specs.codegen.emit_module import api_source
from protocol_specs.codegen.spec import ApiSpec, FieldSpec, Range

if TYPE_CHECKING:
    from pathlib import Path


ALL = Range(0, 3)


def field_data(name: str, kind: str, **more: Any) -> dict[str, Any]:
    """One field as the spec has it."""
    return {"name": name, "type": kind, "doc": "Text.", **more}


def field_of(name: str, kind: str, versions: Range = ALL, **more: Any) -> FieldSpec:
    """One field of a struct that has `versions`."""
    return FieldSpec(field_data(name, kind, **more), versions, "test")


def api_of(directory: Path, *request: dict[str, Any], **more: Any) -> ApiSpec:
    """An API, key 99, versions 0 to 3, flexible from 2, whose request has the given fields."""
    data = {
        "key": 99,
        "name": "toy",
        "api": "Toy",
        "versions": "0-3",
        "flexible": "2+",
        "doc": "A toy.",
        "version_notes": {"1": "Something new."},
        "request": {"fields": list(request)},
        "response": {"fields": []},
        **more,
    }
    path = directory / "99_toy.json"
    path.write_text(json.dumps(data))
    return ApiSpec(path)


def classes_of(api: ApiSpec) -> dict[str, Any]:
    """The generated module, run."""
    namespace: dict[str, Any] = {"__name__": "toy"}
    exec(compile(api_source(api), "toy.py", "exec"), namespace)  # what an import would do
    return namespace
