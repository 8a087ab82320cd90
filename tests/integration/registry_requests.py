"""The calls that are made to two registries, one after the other, from an empty one on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.support.registry_calls import posted, record

if TYPE_CHECKING:
    from collections.abc import Iterator


class RegistryRequest(NamedTuple):
    """One call."""

    method: str
    path: str
    body: Any = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}" + (f" {json.dumps(self.body)}" if self.body else "")


def get(path: str) -> RegistryRequest:
    return RegistryRequest("GET", path)


def delete(path: str) -> RegistryRequest:
    return RegistryRequest("DELETE", path)


def add(subject: str, schema: Any, kind: str = "AVRO", **more: Any) -> RegistryRequest:
    return RegistryRequest("POST", f"/subjects/{subject}/versions", posted(schema, kind, **more))


def look_up(subject: str, schema: Any, kind: str = "AVRO", query: str = "") -> RegistryRequest:
    return RegistryRequest("POST", f"/subjects/{subject}{query}", posted(schema, kind))


def check(subject: str, version: str, schema: Any, kind: str = "AVRO") -> RegistryRequest:
    path = f"/compatibility/subjects/{subject}/versions"
    return RegistryRequest("POST", f"{path}/{version}" if version else path, posted(schema, kind))


def level(subject: str, word: str) -> RegistryRequest:
    path = f"/config/{subject}" if subject else "/config"
    return RegistryRequest("PUT", path, {"compatibility": word})


LEVELS: Final = (
    *("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE"),
    *("FULL", "FULL_TRANSITIVE", "NONE"),
)
ENUM: Final = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
MORE_SYMBOLS: Final = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
CHANGES: Final = {
    "int-long": ('"int"', '"long"'),
    "long-int": ('"long"', '"int"'),
    "int-string": ('"int"', '"string"'),
    "string-bytes": ('"string"', '"bytes"'),
    "field-added": (record("a"), record("a", "b")),
    "field-added-with-default": (record("a"), record("a", "b?")),
    "field-removed": (record("a", "b"), record("a")),
    "symbol-added": (ENUM, MORE_SYMBOLS),
    "symbol-removed": (MORE_SYMBOLS, ENUM),
    "renamed": (record("a"), record("a", name="Other")),
    "union-wider": (["null", "int"], ["null", "int", "string"]),
    "array-items": ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}),
    "map-values": ({"type": "map", "values": "string"}, {"type": "map", "values": "int"}),
    "fixed-size": (
        {"type": "fixed", "name": "F", "size": 4},
        {"type": "fixed", "name": "F", "size": 8},
    ),
}
"""Name → an Avro schema, and the next one."""
WRONG: Final = (
    *("", "x", "{}", "[]", "null", '"nothing"', '{"type":"record"}', '{"type":"enum","name":"E"}'),
    *('{"type":"record","name":"R"}', '{"type":"record","name":"1","fields":[]}'),
    '{"type":"record","name":"R","fields":[{"name":"a","type":"Unknown"}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
    '["int","int"]',
    '{"type":"fixed","name":"F","size":-1}',
)
"""Texts that are no Avro schemas."""


def calls() -> Iterator[RegistryRequest]:
    """Yield the calls."""
    yield from empty()
    yield from versions()
    yield from levels()
    for text in WRONG:
        yield add("wrong", text)
    yield from deletions()
    yield from references()
    yield from other_formats()


def empty() -> Iterator[RegistryRequest]:
    """Yield calls of a registry that has nothing."""
    yield from map(get, ("/subjects", "/config", "/mode", "/schemas/types", "/contexts"))
    yield from map(get, ("/subjects/a/versions", "/subjects/a/versions/1", "/config/a"))
    yield from map(get, ("/subjects/a/versions/latest", "/schemas/ids/987654", "/nothing"))
    yield from map(get, ("/subjects/a/versions/1/referencedby", "/subjects/a/versions/1/schema"))
    yield from map(delete, ("/subjects/a", "/subjects/a/versions/1", "/config/a"))
    yield from (look_up("a", '"int"'), check("a", "", '"int"'), check("a", "latest", '"int"'))
    yield check("a", "1", '"int"')


def versions() -> Iterator[RegistryRequest]:
    """Yield calls about a subject with versions."""
    for schema in (record("a"), record("a"), record("a", "b?"), json.dumps(record("a"), indent=3)):
        yield add("orders", schema)
    yield add("bills", record("a"))
    yield from map(get, ("/subjects", "/subjects/orders/versions", "/subjects/bills/versions/1"))
    for version in ("1", "2", "3", "latest", "-1", "0", "x", "2147483648", "99999999999"):
        yield get(f"/subjects/orders/versions/{version}")
    yield from map(get, ("/subjects/orders/versions/1/schema", "/schemas/ids/1/versions"))
    yield from map(get, ("/schemas/ids/1", "/schemas/ids/1/schema", "/schemas/ids/1/subjects"))
    yield look_up("orders", record("a"))
    yield look_up("orders", record("z"))
    yield look_up("orders", "wrong")
    yield add("orders", record("a", "c"))
    yield RegistryRequest("POST", "/subjects/orders/versions", {})
    yield RegistryRequest("PUT", "/config", {"compatibility": "WRONG"})
    yield RegistryRequest("PUT", "/config/orders", {"compatibility": "WRONG"})
    yield RegistryRequest("PUT", "/mode", {"mode": "WRONG"})


def levels() -> Iterator[RegistryRequest]:
    """Yield checks of changes under each level."""
    for word in LEVELS:
        yield level("", word)
        yield get("/config")
    yield level("", "NONE")
    for name, (old, new) in CHANGES.items():
        yield add(name, old)
        for word in ("BACKWARD", "FORWARD", "FULL", "NONE"):
            yield level(name, word)
            yield check(name, "latest", new)
    yield level("int-long", "BACKWARD")
    yield get("/config/int-long")
    yield add("int-long", '"string"')
    yield add("int-long", '"long"')
    yield delete("/config/int-long")
    yield get("/config/int-long")
    yield level("", "BACKWARD")


def deletions() -> Iterator[RegistryRequest]:
    """Yield deletions, soft and hard."""
    for schema in ('"int"', '"long"'):
        yield add("gone", schema)
    yield delete("/subjects/gone/versions/1?permanent=true")
    yield from map(delete, ("/subjects/gone/versions/1", "/subjects/gone/versions/1"))
    yield from map(get, ("/subjects/gone/versions", "/subjects/gone/versions?deleted=true"))
    yield from map(get, ("/subjects/gone/versions/1", "/subjects/gone/versions/1?deleted=true"))
    yield delete("/subjects/gone/versions/1?permanent=true")
    yield delete("/subjects/gone/versions/9")
    yield delete("/subjects/gone?permanent=true")
    yield from map(delete, ("/subjects/gone", "/subjects/gone"))
    yield from map(get, ("/subjects/gone/versions", "/subjects/gone/versions?deleted=true"))
    yield look_up("gone", '"long"')
    yield look_up("gone", '"long"', query="?deleted=true")
    yield add("gone", '"long"')
    yield get("/subjects/gone/versions")
    yield delete("/subjects/gone")
    yield from map(delete, ("/subjects/gone?permanent=true", "/subjects/gone?permanent=true"))
    yield from map(get, ("/subjects/gone/versions?deleted=true",))


def references() -> Iterator[RegistryRequest]:
    """Yield schemas that refer to others."""
    user = '{"type":"record","name":"User","fields":[{"name":"order","type":"Order"}]}'
    yield add("user", user)
    yield add("user", user, references=(("Order", "orders", 9),))
    yield add("user", user, references=(("Order", "orders", 1),))
    yield from map(get, ("/subjects/user/versions/1", "/subjects/orders/versions/1/referencedby"))
    yield from map(delete, ("/subjects/orders/versions/1", "/subjects/orders"))
    yield delete("/subjects/user")
    yield delete("/subjects/user?permanent=true")
    yield delete("/subjects/orders/versions/1")


def other_formats() -> Iterator[RegistryRequest]:
    """Yield JSON Schemas and messages of Protobuf."""
    text = {"type": "object", "properties": {"a": {"type": "string"}}}
    yield add("json", text, "JSON")
    yield get("/subjects/json/versions/1")
    yield add("json", {**text, "required": ["a"]}, "JSON")
    yield check("json", "latest", {"type": "string"}, "JSON")
    yield add("json", "wrong", "JSON")
    proto = 'syntax = "proto3";\nmessage M {\n  string a = 1;\n}\n'
    yield add("proto", proto, "PROTOBUF")
    yield get("/subjects/proto/versions/1")
    yield check("proto", "latest", proto.replace("string a", "int64 a"), "PROTOBUF")
    yield check("proto", "latest", proto.replace("string a = 1", "string a = 2"), "PROTOBUF")
    yield add("proto", "wrong", "PROTOBUF")
    yield add("other", "wrong", "XML")
