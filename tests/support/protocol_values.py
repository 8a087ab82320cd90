"""Random values for messages, from the specs; conversions to generated objects and back."""

import random
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tests.support.reference_codec import UNSIGNED, MessageSpec, covers, default_of, present

BITS = {
    "int8": 8,
    "int16": 16,
    "uint16": 16,
    "error_code": 16,
    "int32": 32,
    "uint32": 32,
    "int64": 64,
}
TEXTS = ("", "a", "topic-a", "zażółć", "日本語", "x" * 126, "y" * 127, "z" * 300)
KNOWN_ERRORS_LAST = 127
TAME_INT64 = 1 << 41
"""A number that every codec's date type can hold: as a timestamp in ms it is in 2039."""


class ValueMaker:
    """Random values of one message; the same seed gives the same values.

    `tame` makes only values that foreign codecs accept, which turn numbers into durations, dates
    and error codes: known errors, int64 from 0 to `TAME_INT64`.
    """

    def __init__(self, spec: MessageSpec, seed: int, *, tame: bool = False) -> None:
        self.spec = spec
        self.random = random.Random(f"{spec}{seed}")
        self.tame = tame

    def message(self, version: int) -> dict[str, Any]:
        """Return one message as the dict that the reference codec takes."""
        return self._struct(self.spec.fields, version, 0)

    def _struct(self, fields: list[dict[str, Any]], version: int, depth: int) -> dict[str, Any]:
        return {f["name"]: self._value(f, version, depth) for f in present(fields, version)}

    def _value(self, field: dict[str, Any], version: int, depth: int) -> Any:
        pick = self.random.random()
        if covers(field.get("nullable"), version) and pick < 0.25:
            return None
        if "tag" in field and pick < 0.5:
            return default_of(self.spec, field, version)
        kind = field["type"]
        if kind.startswith("[]"):
            item = {key: field[key] for key in field.keys() - {"nullable", "tag"}} | {
                "type": kind[2:]
            }
            count = self.random.choice((0, 1, 1, 2, 3) if depth < 3 else (0, 1))
            return [self._value(item, version, depth + 1) for _ in range(count)]
        members = self.spec.members(field)
        if members is not None:
            return self._struct(members, version, depth + 1)
        return self._plain(kind)

    def _plain(self, kind: str) -> Any:
        rng = self.random
        if kind == "string":
            return rng.choice(TEXTS)
        if kind in ("bytes", "records"):
            return rng.randbytes(rng.choice((0, 1, 40, 127, 2000)))
        if kind == "uuid":
            return rng.randbytes(16)
        if kind == "bool":
            return rng.random() < 0.5
        if kind == "float64":
            return rng.uniform(-1e9, 1e9)
        if self.tame and kind == "error_code":
            return rng.randint(-1, KNOWN_ERRORS_LAST)
        if self.tame and kind == "int64":
            return rng.randint(0, TAME_INT64) // 1000 * 1000  # kio 0.5.0 drops milliseconds
        bits = BITS[kind]
        low = 0 if kind in UNSIGNED else -(1 << bits - 1)
        high = low + (1 << bits) - 1
        return rng.choice((low, high, 0 if low else 1, rng.randint(low, high)))


def class_of(spec: MessageSpec) -> Any:
    """Return the generated class of a message."""
    return getattr(import_module(f"minibroker.kafka.protocol.{spec.module}"), spec.class_name)


def to_object(spec: MessageSpec, value: dict[str, Any]) -> Any:
    """Return the generated object of a dict; absent fields get the constructor's defaults."""
    module = import_module(f"minibroker.kafka.protocol.{spec.module}")
    return class_of(spec)(**_arguments(spec, module, spec.fields, value))


def _arguments(
    spec: MessageSpec, module: Any, fields: list[dict[str, Any]], value: dict[str, Any]
) -> dict[str, Any]:
    arguments = {}
    for field in fields:
        if field["name"] not in value:
            continue
        item = value[field["name"]]
        members = spec.members(field)
        if members is not None and item is not None:
            make = _maker(spec, module, field, members)
            item = [make(part) for part in item] if field["type"].startswith("[]") else make(item)
        arguments[field["name"]] = item
    return arguments


def _maker(
    spec: MessageSpec, module: Any, field: dict[str, Any], members: list[dict[str, Any]]
) -> Callable[[dict[str, Any]], Any]:
    name = field["type"].removeprefix("[]")
    sides = [side for side in ("Request", "Response", "Key") if spec.class_name.endswith(side)]
    side_name = (sides[0] if sides else "Value") + name
    cls = getattr(module, side_name, None) or getattr(module, name)
    return lambda value: cls(**_arguments(spec, module, members, value))


def to_dict(spec: MessageSpec, message: Any, version: int) -> dict[str, Any]:
    """Return the dict of a generated object that the reference codec takes."""
    return _struct_dict(spec, spec.fields, message, version)


def _struct_dict(
    spec: MessageSpec, fields: list[dict[str, Any]], message: Any, version: int
) -> dict[str, Any]:
    items = {}
    for field in present(fields, version):
        item = getattr(message, field["name"])
        members = spec.members(field)
        if isinstance(item, memoryview):
            item = bytes(item)
        if members is not None:
            if item is None and "tag" in field and "nullable" not in field:
                item = default_of(spec, field, version)
            elif isinstance(item, list):
                item = [_struct_dict(spec, members, part, version) for part in item]
            elif item is not None:
                item = _struct_dict(spec, members, item, version)
        items[field["name"]] = item
    return items
