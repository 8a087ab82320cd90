"""Laws of JSON Schema compatibility: documents of a compatible writer fit the reader.

The package `jsonschema` says which documents fit a schema. A pair of schemas comes from a seed and
is mostly near: one keyword more, one less.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from minibroker.registry.compatibility import incompatibilities
from minibroker.registry.formats import ParsedSchema, parse

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("a", "b", "ab")
SCALARS: tuple[Any, ...] = (None, True, False, 0, 1, 2, 3, 1.5, -1, "", "a", "bb", "ccc")
NUMBERS = (-1, 0, 1, 1.5, 2)
PATTERNS = ("a", "^b")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
VALIDATORS: dict[str, Any] = {"7": Draft7Validator, "2020": Draft202012Validator}
SEEDS = st.integers(0, 2**32)
BOTH = pytest.mark.parametrize("draft", VALIDATORS)


class Maker:
    """Schemas and documents of one seed. No schema has a default: it could replace a property."""

    def __init__(self, seed: int, draft: str) -> None:
        self.random = Random(seed)
        self.draft = draft

    def document(self, depth: int = 2) -> Any:
        kind = self.random.random()
        if depth == 0 or kind < 0.4:
            return self.random.choice(SCALARS)
        if kind < 0.7:
            return [self.document(depth - 1) for _ in range(self.random.randint(0, 3))]
        return {
            self.random.choice(NAMES): self.document(depth - 1)
            for _ in range(self.random.randint(0, 3))
        }

    def schema(self, depth: int = 2) -> Any:
        kind = self.random.random()
        if kind < 0.05:
            return self.random.random() < 0.7
        if depth == 0 or kind < 0.3:
            return self._some(self._scalars(), 0.25)
        own: dict[str, Callable[[], Any]]
        own = self._objects(depth) if kind < 0.6 else self._arrays(depth)
        return self._some(own if kind < 0.8 else self._logic(depth), 0.4)

    def pair(self) -> tuple[Any, Any]:
        """Return two schemas: mostly one with a keyword less, or a keyword more, than the other."""
        first = self.schema()
        if not isinstance(first, dict) or self.random.random() < 0.2:
            return first, self.schema()
        second = {**first}
        if second and self.random.random() < 0.5:
            del second[self.random.choice(sorted(second))]
        keywords = {**self._scalars(), **self._objects(1), **self._arrays(1), **self._logic(1)}
        key = self.random.choice(sorted(keywords))
        second[key] = keywords[key]()
        return (first, second) if self.random.random() < 0.3 else (second, first)

    def _some(self, keywords: dict[str, Callable[[], Any]], share: float) -> dict[str, Any]:
        arguments = {key: make() for key, make in keywords.items() if self.random.random() < share}
        if self.random.random() < 0.4:
            arguments["type"] = self.random.choice([*TYPES, [*self.random.sample(TYPES, 2)]])
        return arguments

    def _scalars(self) -> dict[str, Callable[[], Any]]:
        bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        return {
            **dict.fromkeys(bounds, lambda: self.random.choice(NUMBERS)),
            **dict.fromkeys(("minLength", "maxLength"), lambda: self.random.randint(0, 3)),
            "multipleOf": lambda: self.random.choice((0.5, 1, 2)),
            "pattern": lambda: self.random.choice(PATTERNS),
            "enum": lambda: self.random.sample(SCALARS, self.random.randint(1, 4)),
            "const": lambda: self.document(1),
        }

    def _objects(self, depth: int) -> dict[str, Callable[[], Any]]:
        def part() -> Any:
            return self.schema(depth - 1)

        def names() -> list[str]:
            return self.random.sample(NAMES, self.random.randint(0, 2))

        keywords: dict[str, Callable[[], Any]] = {
            "properties": lambda: {self.random.choice(NAMES): part() for _ in range(2)},
            "patternProperties": lambda: {self.random.choice(PATTERNS): part()},
            "additionalProperties": lambda: self.random.choice((False, part())),
            "required": names,
            "minProperties": lambda: self.random.randint(0, 2),
            "maxProperties": lambda: self.random.randint(0, 2),
            "propertyNames": lambda: {"maxLength": 1},
        }
        if self.draft == "7":
            needs = (names, part)
            keywords["dependencies"] = lambda: {
                self.random.choice(NAMES): self.random.choice(needs)()
            }
        else:
            keywords["dependentSchemas"] = lambda: {self.random.choice(NAMES): part()}
            keywords["dependentRequired"] = lambda: {self.random.choice(NAMES): names()}
            keywords["unevaluatedProperties"] = lambda: self.random.choice((False, part()))
        return keywords

    def _arrays(self, depth: int) -> dict[str, Callable[[], Any]]:
        def part() -> Any:
            return self.schema(depth - 1)

        def parts() -> list[Any]:
            return [part() for _ in range(self.random.randint(1, 3))]

        keywords: dict[str, Callable[[], Any]] = {
            "items": part,
            "minItems": lambda: self.random.randint(0, 3),
            "maxItems": lambda: self.random.randint(0, 3),
            "uniqueItems": lambda: self.random.random() < 0.5,
            "contains": part,
        }
        if self.draft == "7":
            # jsonschema fails on `additionalItems` beside `items: true`.
            return {**keywords, "items": parts, "additionalItems": part}
        keywords["prefixItems"] = parts
        keywords["unevaluatedItems"] = part
        keywords["minContains"] = keywords["maxContains"] = lambda: self.random.randint(0, 2)
        return keywords

    def _logic(self, depth: int) -> dict[str, Callable[[], Any]]:
        def part() -> Any:
            return self.schema(depth - 1)

        def parts() -> list[Any]:
            return [part() for _ in range(self.random.randint(1, 3))]

        return {
            "allOf": parts,
            "anyOf": parts,
            **dict.fromkeys(("not", "if", "then", "else"), part),
        }

    def schema_of(self, schema: Any) -> ParsedSchema:
        if self.draft != "7" and isinstance(schema, dict):
            schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        return parse("JSON", json.dumps(schema))


@BOTH
@settings(max_examples=350)
@given(seed=SEEDS)
def test_documents_of_a_compatible_writer_fit_the_reader(draft: str, seed: int) -> None:
    maker = Maker(seed, draft)
    writer, reader = maker.pair()
    if incompatibilities(maker.schema_of(reader), maker.schema_of(writer)):
        return
    writes, reads = VALIDATORS[draft](writer), VALIDATORS[draft](reader)
    for document in [*SCALARS, {}, [], *(maker.document() for _ in range(30))]:
        if writes.is_valid(document):
            assert reads.is_valid(document), (writer, reader, document)


@BOTH
@settings(max_examples=100)
@given(seed=SEEDS)
def test_a_schema_is_compatible_with_itself(draft: str, seed: int) -> None:
    maker = Maker(seed, draft)
    schema = maker.schema()
    assert not incompatibilities(maker.schema_of(schema), maker.schema_of(schema))


@settings(max_examples=50)
@given(seed=SEEDS)
def test_a_text_is_normalized_once(seed: int) -> None:
    maker = Maker(seed, "7")
    normalized = maker.schema_of(maker.schema()).normalized
    assert parse("JSON", normalized).normalized == normalized
