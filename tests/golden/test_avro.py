"""Avro schemas have the text and the incompatibilities that Avro's Java gives (`record_avro`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from minibroker.registry.compatibility import avro_checks
from minibroker.registry.formats import InvalidSchemaError, ParsedSchema, parse
from minibroker.registry.formats.avro_types import AvroType
from tests.golden.record_avro import RECORDED

CASES: dict[str, list[dict[str, Any]]] = json.loads(RECORDED.read_text())

KNOWN_TEXTS = {
    '"big":123456789012345678901234567890': "Java refuses a property beyond 64 bits, we keep it",
    '"type":"n.In"': "Java defines a type of a reference twice, ours has its name",
}
"""Part of a schema → why we differ."""

KNOWN_PAIRS = {
    "TYPE_MISMATCH /fields/0/type reader type: ENUM not compatible with writer type: RECORD": (
        "Java compares the enum of a missing field with the record; the field is what is missing"
    ),
}
"""Reason of Java → why ours is another."""


def schema(text: str, *references: str) -> ParsedSchema:
    return parse("AVRO", text, [(f"r{index}", other) for index, other in enumerate(references)])


@pytest.mark.parametrize("case", CASES["texts"], ids=lambda case: case["schemas"][-1][:60])
def test_a_schema_has_the_text_of_java(case: dict[str, Any]) -> None:
    *references, text = case["schemas"]
    if any(part in text for part in KNOWN_TEXTS):
        schema(text, *references)
    elif case["text"] is None:
        with pytest.raises(InvalidSchemaError):
            schema(text, *references)
    else:
        assert schema(text, *references).canonical == case["text"]


@pytest.mark.parametrize("case", CASES["pairs"], ids=lambda case: case["reader"][:60])
def test_a_pair_has_the_reasons_of_java(case: dict[str, Any]) -> None:
    reader, writer = schema(case["reader"]).content, schema(case["writer"]).content
    assert isinstance(reader, AvroType)
    assert isinstance(writer, AvroType)
    reasons = [
        f"{reason.kind} {reason.path} {reason.detail}"
        for reason in avro_checks.incompatibilities(reader, writer)
    ]
    if case["reasons"] is None or case["reasons"][:1] == [*KNOWN_PAIRS]:
        assert len(reasons) == 1
    else:
        assert reasons == case["reasons"]


def test_the_canonical_text_is_canonical() -> None:
    for case in CASES["texts"]:
        *references, _ = case["schemas"]
        if case["text"] is not None:
            canonical = schema(case["text"], *references).canonical
            assert schema(canonical, *references).canonical == canonical
