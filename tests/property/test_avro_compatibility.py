"""Laws of Avro compatibility: data of a compatible writer is read; two checkers agree.

fastavro reads the data, and Apache Avro's own checker behind its own parser gives a second verdict.
A pair of schemas comes from a seed: the second has a few edits of the first.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

import fastavro
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse as avro_parse
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.registry.compatibility import incompatibilities
from minibroker.registry.formats import parse

DEFAULTS: dict[str, Any] = {
    "null": None, "boolean": True, "int": 1, "long": 2, "float": 0.5, "double": 1.5,
    "bytes": "x", "string": "y",
}  # fmt: skip
SEEDS = st.integers(0, 2**32)


class Maker:
    """Schemas and data of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._count = 0

    def schema(self, depth: int = 3) -> Any:
        kind = self.random.random()
        if depth == 0 or kind < 0.25:
            return self.random.choice([*DEFAULTS])
        if kind < 0.35:
            symbols = self.random.sample("XYZ", self.random.randint(1, 3))
            default = {"default": symbols[0]} if self.random.random() < 0.3 else {}
            return {"type": "enum", "name": self._name(), "symbols": symbols, **default}
        if kind < 0.4:
            return {"type": "fixed", "name": self._name(), "size": self.random.randint(1, 2)}
        if kind < 0.5:
            return {"type": "array", "items": self.schema(depth - 1)}
        if kind < 0.6:
            return {"type": "map", "values": self.schema(depth - 1)}
        if kind < 0.75:
            return self._union(depth)
        names = self.random.sample("abc", self.random.randint(0, 3))
        fields = [self._field(name, depth) for name in names]
        return {"type": "record", "name": self._name(), "fields": fields}

    def edited(self, schema: Any) -> Any:
        """Return the schema with one to three changes."""
        schema = {"root": deepcopy(schema)}
        for _ in range(self.random.randint(1, 3)):
            places = [*_places(schema)]
            container, key = self.random.choice(places)
            self._edit(container, key)
            if "default" in container and key == "type":
                del container["default"]
                if isinstance(container["type"], str) and self.random.random() < 0.7:
                    container["default"] = DEFAULTS[container["type"]]
        return schema["root"]

    def datum(self, schema: Any) -> Any:
        """Return data of a schema, as fastavro takes it."""
        if isinstance(schema, list):
            branch = self.random.choice(schema)
            name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
            return None if name == "null" else (name, self.datum(branch))
        if isinstance(schema, str):
            value = DEFAULTS[schema]
            return value.encode() if schema == "bytes" else value
        match schema["type"]:
            case "enum":
                return self.random.choice(schema["symbols"])
            case "fixed":
                return b"x" * schema["size"]
            case "array":
                return [self.datum(schema["items"])]
            case "map":
                return {"k": self.datum(schema["values"])}
        return {field["name"]: self.datum(field["type"]) for field in schema["fields"]}

    def _edit(self, container: Any, key: Any) -> None:
        node = container[key]
        kind = self.random.random()
        if kind < 0.3 or isinstance(node, str):
            container[key] = self.random.choice([*DEFAULTS])
        elif isinstance(node, list):
            if kind < 0.6 and len(node) > 1:
                node.pop(self.random.randrange(len(node)))
            else:
                self.random.shuffle(node)
        elif node["type"] == "enum":
            node["symbols"] = self.random.sample("XYZ", self.random.randint(1, 3))
            node.pop("default", None)
        elif node["type"] == "fixed":
            node["size"] = 3
        elif node["type"] == "record":
            self._edit_record(node)

    def _edit_record(self, node: Any) -> None:
        kind = self.random.random()
        names = {field["name"] for field in node["fields"]}
        if kind < 0.3 and names:
            node["fields"].pop(self.random.randrange(len(names)))
        elif kind < 0.7 and len(names) < 3:
            node["fields"].append(self._field(min({*"abc"} - names), 1))
        elif kind < 0.85 and names:
            field = self.random.choice(node["fields"])
            field["aliases"], field["name"] = [field["name"]], "z"
            if "z" in names:
                node["fields"].remove(field)
        else:
            node["aliases"], node["name"] = [node["name"]], self._name()
            if self.random.random() < 0.5:
                del node["aliases"]

    def _field(self, name: str, depth: int) -> dict[str, Any]:
        field = {"name": name, "type": self.schema(depth - 1)}
        if isinstance(field["type"], str) and self.random.random() < 0.5:
            field["default"] = DEFAULTS[field["type"]]
        return field

    def _union(self, depth: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self.random.randint(1, 3)):
            node = self.schema(depth - 1)
            if not isinstance(node, list):
                name = node if isinstance(node, str) else node.get("name", node["type"])
                branches[name] = node
        return [*branches.values()] or ["null"]

    def _name(self) -> str:
        self._count += 1
        return f"N{self._count}"


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of each type, but no branch of a union: two would be equal."""
    for key in ("root", "items", "values", "type"):
        if isinstance(node.get(key), list | dict) or (node.keys() != {"type"} and key in node):
            if key == "type" and "name" in node and isinstance(node["type"], str):
                if "fields" in node or "symbols" in node or "size" in node:
                    continue
            elif key == "type" and isinstance(node["type"], str):
                continue
            yield node, key
            if isinstance(node[key], dict):
                yield from _places(node[key])
            elif isinstance(node[key], list):
                for branch in node[key]:
                    if isinstance(branch, dict):
                        yield from _places(branch)
    for field in node.get("fields", ()):
        yield from _places(field)


def reasons(reader: Any, writer: Any) -> list[str]:
    return incompatibilities(parse("AVRO", json.dumps(reader)), parse("AVRO", json.dumps(writer)))


@settings(max_examples=700)
@given(seed=SEEDS)
def test_data_of_a_compatible_writer_is_read(seed: int) -> None:
    maker = Maker(seed)
    writer = maker.schema()
    reader = maker.edited(writer)
    if not reasons(reader, writer):
        for _ in range(5):
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, writer, maker.datum(writer))
            buffer.seek(0)
            fastavro.schemaless_reader(buffer, writer, reader)


@settings(max_examples=700)
@given(seed=SEEDS)
def test_the_checker_of_avro_agrees(seed: int) -> None:
    maker = Maker(seed)
    first = maker.schema()
    second = maker.edited(first)
    for reader, writer in ((first, second), (second, first)):
        verdict = ReaderWriterCompatibilityChecker().get_compatibility(
            avro_parse(json.dumps(reader)), avro_parse(json.dumps(writer))
        )
        is_compatible = verdict.compatibility is SchemaCompatibilityType.compatible
        own = reasons(reader, writer)
        # Only Avro's Java refuses a field that aliases match twice.
        assert bool(own) != is_compatible or "more than one field" in own[0], own


@settings(max_examples=80)
@given(seed=SEEDS)
def test_a_text_of_avro_is_canonical_and_normalized_once(seed: int) -> None:
    schema = Maker(seed).schema()
    avro_schema = parse("AVRO", json.dumps(schema))
    assert parse("AVRO", avro_schema.canonical).canonical == avro_schema.canonical
    assert parse("AVRO", avro_schema.normalized).normalized == avro_schema.normalized
    assert not reasons(schema, json.loads(avro_schema.normalized))
