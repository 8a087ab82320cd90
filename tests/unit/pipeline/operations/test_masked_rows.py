"""Rows of a batch through the rules of a record."""

from __future__ import annotations

import pyarrow as pa

from minibroker.pipeline.operations.mask_rules import rules_of
from minibroker.pipeline.operations.masked_rows import masked_rows
from minibroker.pipeline.operations.masking import Masker

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_the_columns_come_back_with_places_and_reasons() -> None:
    masker = Masker(rules_of(["a=mask, headers.user=null"]), (), b"")
    headers = pa.array([[{"key": "user", "value": b"ann"}], None], HEADERS)
    values = pa.array([b'{"a":"x"}', b"ann"])
    found = masked_rows(masker, ["headers", "value"], [headers, values])
    assert found.to_pylist() == [
        {
            "headers": [{"key": "user", "value": None}],
            "value": b'{"a":"x"}',
            "found": 3,
            "reason": None,
        },
        {
            "headers": None,
            "value": None,
            "found": 0,
            "reason": "its value cannot be masked: it is no JSON",
        },
    ]
