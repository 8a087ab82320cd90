"""The parsed schemas that a registry remembers: the last ones, within a bound of bytes."""

from __future__ import annotations

import asyncio
import json

import pytest

from minibroker.registry import formats
from minibroker.registry.checking import CACHE_BYTES_MAX, CACHE_SIZE, ResolvedSchema, SchemaChecks


def schema(number: int, doc_bytes: int = 0) -> ResolvedSchema:
    text = {"type": "record", "name": f"R{number}", "doc": "x" * doc_bytes, "fields": []}
    return ResolvedSchema("AVRO", json.dumps(text), ())


@pytest.fixture
def parsings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the format has parsed."""
    texts = []
    parse = formats.parse

    def counted(kind: str, text: str, references: tuple[tuple[str, str], ...] = ()) -> object:
        texts.append(text)
        return parse(kind, text, references)

    monkeypatch.setattr(formats, "parse", counted)
    return texts


async def parse_all(*schemas: ResolvedSchema) -> None:
    checks = SchemaChecks()
    try:
        for each in schemas:
            await checks.parse(each)
    finally:
        checks.close()


def test_schema_that_was_used_just_now_is_not_parsed_again(parsings: list[str]) -> None:
    asyncio.run(parse_all(*map(schema, range(CACHE_SIZE)), schema(0), schema(1)))
    assert len(parsings) == CACHE_SIZE


def test_schema_that_was_not_used_for_long_is_parsed_again(parsings: list[str]) -> None:
    asyncio.run(parse_all(*map(schema, range(CACHE_SIZE + 1)), schema(1), schema(0)))
    assert parsings[CACHE_SIZE + 1 :] == [schema(0).text]


def test_large_schemas_make_room_for_each_other(parsings: list[str]) -> None:
    large = [schema(number, CACHE_BYTES_MAX // 2) for number in range(2)]
    asyncio.run(parse_all(*large, large[1], large[0], large[1]))
    assert len(parsings) == 4


def test_schema_beyond_the_bound_leaves_nothing_behind(parsings: list[str]) -> None:
    asyncio.run(parse_all(schema(0), schema(1, CACHE_BYTES_MAX), schema(0), schema(0)))
    assert len(parsings) == 3
