"""Damaged schemas end in InvalidSchemaError or are compared, and nothing else.

A schema of `compat_registry/pairs.py` is damaged: parts of it are replaced by other parts, keywords
of any draft and values of any type. Bytes of a .proto text are cut, doubled and swapped.
"""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.registry.compatibility import incompatibilities
from minibroker.registry.formats import InvalidSchemaError, parse
from tests.compat_registry.pairs import pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = st.integers(0, 2**32)
POOLS: dict[str, list[Any]] = {
    kind: [json.loads(text) for pair in pairs() if pair.kind == kind for text in pair[2:]]
    for kind in ("AVRO", "JSON")
}
PROTOS = [pair.new for pair in pairs() if pair.kind == "PROTOBUF"]
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 1e300, 2**70, "", "a", "#", "#/foo", "int", "record"),
    *([], {}, [1], {"a": 1}, ["int", "int"], {"type": "int"}, {"$ref": "#"}, {"$ref": "#/foo"}),
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-04/schema#",
)
KEYS = (
    *("$ref", "$id", "id", "$anchor", "$schema", "$dynamicRef", "$recursiveRef", "$defs", "foo"),
    *("type", "properties", "items", "prefixItems", "allOf", "anyOf", "not", "enum", "const"),
    *("required", "patternProperties", "additionalProperties", "dependencies", "if", "then"),
    *("dependentSchemas", "dependentRequired", "unevaluatedProperties", "unevaluatedItems"),
    *("minimum", "exclusiveMinimum", "multipleOf", "contains", "minContains", "propertyNames"),
    *("name", "namespace", "fields", "symbols", "default", "aliases", "size", "logicalType"),
    *("precision", "doc", "order", "values", "definitions", "maxItems", "uniqueItems"),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of each value inside."""
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield value, key
        yield from places(value[key])


def damaged(schema: Any, pool: list[Any], random: Random) -> Any:
    """Return a copy with one to three wounds."""
    root = {"schema": deepcopy(schema)}
    for _ in range(random.randint(1, 3)):
        container, key = random.choice([*places(root)])
        kind = random.random()
        other = random.choice(VALUES) if random.random() < 0.6 else random.choice(pool)
        if kind < 0.6 and isinstance(container[key], dict):
            container[key][random.choice(KEYS)] = deepcopy(other)
        elif kind < 0.9 or container is root:
            container[key] = deepcopy(other)
        else:
            del container[key]
    return root["schema"]


@pytest.mark.parametrize("kind", POOLS)
@settings(max_examples=400)
@given(seed=SEEDS)
def test_a_damaged_schema_is_invalid_or_compared(kind: str, seed: int) -> None:
    random = Random(seed)
    schema = random.choice(POOLS[kind])
    try:
        wounded = parse(kind, json.dumps(damaged(schema, POOLS[kind], random)))
    except InvalidSchemaError:
        return
    whole = parse(kind, json.dumps(schema))
    incompatibilities(whole, wounded)
    incompatibilities(wounded, whole)
    assert parse(kind, wounded.canonical).canonical == wounded.canonical


@pytest.mark.parametrize("kind", POOLS)
@settings(max_examples=100)
@given(seed=SEEDS)
def test_a_damaged_text_is_invalid_or_a_schema(kind: str, seed: int) -> None:
    random = Random(seed)
    text = torn(json.dumps(random.choice(POOLS[kind])), random)
    try:
        parse(kind, text)
    except InvalidSchemaError:
        return


def torn(text: str, random: Random) -> str:
    """Return a text with a part cut, doubled or put elsewhere."""
    first, last = sorted(random.sample(range(len(text)), 2))
    part = text[first:last]
    place = random.randrange(len(text))
    return random.choice(
        [
            text[:first] + text[last:],
            text[:last] + part + text[last:],
            text[:place] + part + text[place:],
            text[:first] + random.choice('\0"\\{}[]<>;é\ud800') + text[first:],
        ]
    )


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_a_damaged_proto_is_invalid_or_compared(seed: int) -> None:
    random = Random(seed)
    text = random.choice(PROTOS)
    try:
        wounded = parse("PROTOBUF", torn(text, random))
    except InvalidSchemaError:
        return
    whole = parse("PROTOBUF", text)
    incompatibilities(whole, wounded)
    incompatibilities(wounded, whole)
    assert parse("PROTOBUF", wounded.canonical).canonical == wounded.canonical
