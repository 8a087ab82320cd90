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
_KNOWN = {
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


def _check(rule: dict[str, Any], value: Any, where: str, schema: dict[str, Any]) -> list[str]:
    unknown = rule.keys() - _KNOWN
    assert not unknown, f"schema.json uses {unknown}, which is not understood here"
    if "$ref" in rule:
        return _check(schema["$defs"][rule["$ref"].removeprefix("#/$defs/")], value, where, schema)
    if "anyOf" in rule:
        tries = [_check(option, value, where, schema) for option in rule["anyOf"]]
        return (
            [] if [] in tries else [f"{where}: fits none of {len(tries)} forms; first {tries[0]}"]
        )
    found = []
    types = rule.get("type", [])
    if types and not _is_one_of(value, [types] if isinstance(types, str) else types):
        return [f"{where}: {value!r} is no {types}"]
    if "enum" in rule and value not in rule["enum"]:
        found.append(f"{where}: {value!r} is none of {rule['enum']}")
    if isinstance(value, str):
        if not re.search(rule.get("pattern", ""), value):
            found.append(f"{where}: {value!r} does not look like {rule['pattern']}")
        if len(value) < rule.get("minLength", 0):
            found.append(f"{where}: must not be empty")
    if isinstance(value, list) and "items" in rule:
        for number, item in enumerate(value):
            found += _check(rule["items"], item, f"{where}[{number}]", schema)
    if isinstance(value, dict):
        found += _check_object(rule, value, where, schema)
    return found


def _is_one_of(value: Any, names: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES[name]) for name in names if name != "boolean")


def _check_object(
    rule: dict[str, Any], value: dict[str, Any], where: str, schema: dict[str, Any]
) -> list[str]:
    found = [
        f"{where}: {name} is missing" for name in rule.get("required", []) if name not in value
    ]
    for name, item in value.items():
        here = f"{where}.{name}"
        matching = [r for p, r in rule.get("patternProperties", {}).items() if re.search(p, name)]
        if name in rule.get("properties", {}):
            found += _check(rule["properties"][name], item, here, schema)
        elif matching:
            found += _check(matching[0], item, here, schema)
        elif not rule.get("additionalProperties", True):
            found.append(f"{here}: unknown key")
    return found
