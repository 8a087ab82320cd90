"""A slow codec that interprets the spec files: the second opinion on every generated line.

It shares nothing with `protocol_specs.codegen` and `minibroker.kafka.protocol`: it reads the JSON
by itself and walks it for each value. A message is a dict of its fields; fields that a version
does not have are left out. It packs and caches nothing, and slices bytes wherever that reads best.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPECS = Path(__file__).resolve().parents[2] / "protocol_specs"
SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
}
UNSIGNED = {"uint16", "uint32"}


class MessageSpec:
    """One side of an API or of a stored record, as in the JSON."""

    def __init__(
        self, module: str, class_name: str, data: dict[str, Any], whole: dict[str, Any]
    ) -> None:
        self.module = module
        self.class_name = class_name
        self.key: int | None = whole.get("key") if "api" in whole else None
        versions = data.get("versions") or whole["versions"]
        self.first, self.last = map(int, versions.split("-"))
        flexible = data["flexible"] if "flexible" in data else whole["flexible"]
        self.flexible_from = int(flexible[:-1]) if flexible else self.last + 1
        self.fields: list[dict[str, Any]] = data["fields"]
        self.structs: dict[str, Any] = data.get("structs", {})

    def __str__(self) -> str:
        return self.class_name

    @property
    def versions(self) -> range:
        return range(self.first, self.last + 1)

    def members(self, field: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the fields of the struct that the field holds; None for a plain value."""
        name = field["type"].removeprefix("[]")
        if name[0].islower():
            return None
        members = field["fields"] if "fields" in field else self.structs[name]["fields"]
        assert isinstance(members, list)
        return members


def load_specs() -> list[MessageSpec]:
    """Return every request, response, key and value."""
    specs = []
    for path in sorted((SPECS / "apis").glob("*.json")):
        whole = json.loads(path.read_text())
        for side in ("request", "response"):
            name = whole["api"] + side.title()
            specs.append(MessageSpec(f"messages.{whole['name']}", name, whole[side], whole))
    for path in sorted((SPECS / "stored").glob("*.json")):
        whole = json.loads(path.read_text())
        for side in ("key", "value"):
            if side in whole:
                name = whole[side]["class"]
                specs.append(MessageSpec(f"stored.{whole['name']}", name, whole[side], whole))
        specs += [
            MessageSpec(f"stored.{whole['name']}", record["class"], record, whole)
            for record in whole.get("records", [])
        ]
    return specs


def header_spec(side: str) -> MessageSpec:
    """Return the header of requests or of responses."""
    whole = json.loads((SPECS / "headers.json").read_text())
    return MessageSpec("header", f"{side}_header", whole[side], whole)


def covers(text: str | None, version: int) -> bool:
    """Return whether the range `"3+"`, `"0-8"` or `"1"` holds the version; None holds none."""
    if text is None:
        return False
    if text.endswith("+"):
        return version >= int(text[:-1])
    first, _, last = text.partition("-")
    return int(first) <= version <= int(last or first)


def present(fields: list[dict[str, Any]], version: int) -> Iterator[dict[str, Any]]:
    """Yield the fields that the version has, in the spec's order."""
    return (field for field in fields if covers(field.get("versions", "0+"), version))


def encode(spec: MessageSpec, value: dict[str, Any], version: int) -> bytes:
    """Return the message's bytes in this version."""
    return _encode_struct(spec, spec.fields, value, version)


def decode(spec: MessageSpec, data: bytes, version: int) -> dict[str, Any]:
    """Return the message of these bytes, all of which must be used."""
    value, rest = _decode_struct(spec, spec.fields, data, version)
    if rest:
        raise ValueError(f"{len(rest)} bytes are left over")
    return value


def default_of(spec: MessageSpec, field: dict[str, Any], version: int) -> Any:
    """Return the value of a field that was not sent."""
    if "default" in field:
        return field["default"]
    kind = field["type"]
    if kind.startswith("[]"):
        return []
    members = spec.members(field)
    if members is not None:
        return {m["name"]: default_of(spec, m, version) for m in present(members, version)}
    defaults = {
        "string": "",
        "bytes": b"",
        "records": None,
        "bool": False,
        "uuid": bytes(16),
        "float64": 0.0,
    }
    return defaults.get(kind, 0)


def uvarint(number: int) -> bytes:
    """Return the number in seven bits per byte, lowest first."""
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def _length(number: int, size: int, flexible: bool) -> bytes:
    return uvarint(number + 1) if flexible else number.to_bytes(size, "big", signed=True)


def _encode_struct(
    spec: MessageSpec, fields: list[dict[str, Any]], value: dict[str, Any], version: int
) -> bytes:
    out, tags = b"", {}
    for field in present(fields, version):
        data = _encode_value(spec, field, value[field["name"]], version)
        if "tag" not in field:
            out += data
        elif value[field["name"]] != default_of(spec, field, version):
            tags[field["tag"]] = data
    if version >= spec.flexible_from:
        out += uvarint(len(tags))
        for tag in sorted(tags):
            out += uvarint(tag) + uvarint(len(tags[tag])) + tags[tag]
    return out


def _encode_value(spec: MessageSpec, field: dict[str, Any], value: Any, version: int) -> bytes:
    flexible = version >= spec.flexible_from and field.get("compact", True)
    kind = field["type"]
    if kind.startswith("[]"):
        if value is None:
            return _length(-1, 4, flexible)
        item = {key: field[key] for key in field.keys() - {"nullable"}} | {"type": kind[2:]}
        return _length(len(value), 4, flexible) + b"".join(
            _encode_value(spec, item, part, version) for part in value
        )
    members = spec.members(field)
    if members is not None:
        marker = b"" if not covers(field.get("nullable"), version) else b"\x01"
        null = b"\0" if "tag" in field else b"\xff"
        return null if value is None else marker + _encode_struct(spec, members, value, version)
    if kind in ("string", "bytes", "records"):
        data = value.encode() if kind == "string" and value is not None else value
        size = 2 if kind == "string" else 4
        return (
            _length(-1, size, flexible)
            if data is None
            else _length(len(data), size, flexible) + data
        )
    if kind == "uuid":
        return bytes(value)
    if kind == "float64":
        return _float_bytes(value)
    return int(value).to_bytes(SIZES[kind], "big", signed=kind not in UNSIGNED)


def _decode_struct(
    spec: MessageSpec, fields: list[dict[str, Any]], data: bytes, version: int
) -> tuple[dict[str, Any], bytes]:
    value, tags = {}, {}
    for field in present(fields, version):
        if "tag" in field:
            tags[field["tag"]] = field
            value[field["name"]] = default_of(spec, field, version)
        else:
            value[field["name"]], data = _decode_value(spec, field, data, version)
    if version >= spec.flexible_from:
        count, data = _read_uvarint(data)
        for _ in range(count):
            tag, data = _read_uvarint(data)
            size, data = _read_uvarint(data)
            if tag in tags:
                value[tags[tag]["name"]], rest = _decode_value(
                    spec, tags[tag], data[:size], version
                )
                assert not rest, "a tagged field was longer than its value"
            data = data[size:]
    return value, data


def _decode_value(
    spec: MessageSpec, field: dict[str, Any], data: bytes, version: int
) -> tuple[Any, bytes]:
    flexible = version >= spec.flexible_from and field.get("compact", True)
    kind = field["type"]
    if kind.startswith("[]"):
        count, data = _read_length(data, 4, flexible)
        if count < 0:
            return None, data
        item = {key: field[key] for key in field.keys() - {"nullable"}} | {"type": kind[2:]}
        items = []
        for _ in range(count):
            part, data = _decode_value(spec, item, data, version)
            items.append(part)
        return items, data
    members = spec.members(field)
    if members is not None:
        if covers(field.get("nullable"), version):
            marker, data = data[0], data[1:]
            if marker == (0 if "tag" in field else 0xFF):
                return None, data
        return _decode_struct(spec, members, data, version)
    if kind in ("string", "bytes", "records"):
        size, data = _read_length(data, 2 if kind == "string" else 4, flexible)
        if size < 0:
            return None, data
        return (data[:size].decode() if kind == "string" else data[:size]), data[size:]
    if kind == "uuid":
        return data[:16], data[16:]
    if kind == "float64":
        return _float_from(data[:8]), data[8:]
    size = SIZES[kind]
    number = int.from_bytes(data[:size], "big", signed=kind not in UNSIGNED)
    return (bool(number) if kind == "bool" else number), data[size:]


def _read_uvarint(data: bytes) -> tuple[int, bytes]:
    number = 0
    for place, byte in enumerate(data):
        number += (byte % 128) * 128**place
        if byte < 128:
            return number, data[place + 1 :]
    raise ValueError("the varint does not end")


def _read_length(data: bytes, size: int, flexible: bool) -> tuple[int, bytes]:
    if flexible:
        number, data = _read_uvarint(data)
        return number - 1, data
    return int.from_bytes(data[:size], "big", signed=True), data[size:]


def _float_bytes(number: float) -> bytes:
    return struct.pack(">d", number)


def _float_from(data: bytes) -> float:
    number: float = struct.unpack(">d", data)[0]
    return number
