"""`protocol_specs/schema.json` applied to the spec files: the part of JSON Schema that it uses.

No validator library is a dependency of the tests; the schema keeps to type, properties, required,
additionalProperties, patternProperties, items, enum, pattern, anyOf, $ref and minLength; any other
keyword is refused here.
"""

import json
import re
from pathlib import Path
from typing import Any

SPECS = Path(__file__).resolve().parents[2] / "protocol_specs"
_KEYWORDS = {
    "$ref", "additionalProperties", "anyOf", "enum", "items", "minLength", "pattern",
    "patternProperties", "properties", "required", "type", "description",
}  # fmt: skip
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def problems(path: Path) -> list[str]:
    """Return the faults of one spec file, each with its place in the file."""
    schema = json.loads((SPECS / "schema.json").read_text())
    kind = {"apis": "api", "stored": "stored"}.get(path.parent.name, path.stem)
    return list(_check(schema["$defs"][kind], json.loads(path.read_text()), "", schema))


def _check(rule: dict[str, Any], value: Any, place: str, schema: dict[str, Any]) -> list[str]:
    unknown = rule.keys() - _KEYWORDS
    assert not unknown, f"schema.json uses {unknown}, which is not understood here"
    if "$ref" in rule:
        return _check(schema["$defs"][rule["$ref"].removeprefix("#/$defs/")], value, place, schema)
    if "anyOf" in rule:
        tries = [_check(option, value, place, schema) for option in rule["anyOf"]]
        return (
            [] if [] in tries else [f"{place}: fits none of {len(tries)} forms; first {tries[0]}"]
        )
    faults = []
    types = rule.get("type", [])
    if types and not _is_one_of(value, [types] if isinstance(types, str) else types):
        return [f"{place}: {value!r} is no {types}"]
    if "enum" in rule and value not in rule["enum"]:
        faults.append(f"{place}: {value!r} is none of {rule['enum']}")
    if isinstance(value, str):
        if not re.search(rule.get("pattern", ""), value):
            faults.append(f"{place}: {value!r} does not look like {rule['pattern']}")
        if len(value) < rule.get("minLength", 0):
            faults.append(f"{place}: must not be empty")
    if isinstance(value, list) and "items" in rule:
        for number, item in enumerate(value):
            faults += _check(rule["items"], item, f"{place}[{number}]", schema)
    if isinstance(value, dict):
        faults += _check_object(rule, value, place, schema)
    return faults


def _is_one_of(value: Any, names: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES[name]) for name in names if name != "boolean")


def _check_object(
    rule: dict[str, Any], value: dict[str, Any], place: str, schema: dict[str, Any]
) -> list[str]:
    faults = [
        f"{place}: {name} is missing" for name in rule.get("required", []) if name not in value
    ]
    for name, item in value.items():
        inner_place = f"{place}.{name}"
        matching = [r for p, r in rule.get("patternProperties", {}).items() if re.search(p, name)]
        if name in rule.get("properties", {}):
            faults += _check(rule["properties"][name], item, inner_place, schema)
        elif matching:
            faults += _check(matching[0], item, inner_place, schema)
        elif not rule.get("additionalProperties", True):
            faults.append(f"{inner_place}: unknown key")
    return faults
