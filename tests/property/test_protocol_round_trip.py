"""Guard: every message in every version comes back unchanged, and equals the slow codec's bytes.

Seeded values reach every version of every message each time; Hypothesis looks for the odd one.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minibroker.kafka.protocol.primitives import Reader, Writer
from tests.support.message_bytes import body_of, copy_of
from tests.support.protocol_values import BITS, ValueMaker, class_of, to_dict, to_object
from tests.support.reference_codec import (
    UNSIGNED,
    MessageSpec,
    covers,
    decode,
    default_of,
    encode,
    load_specs,
    present,
)

SPECS = load_specs()
SEEDS = range(4)
every_message = pytest.mark.parametrize("spec", SPECS, ids=str)


def both_ways(spec: MessageSpec, value: dict[str, Any], version: int) -> None:
    """Check: generated write = slow encode; generated read and slow decode return the value."""
    expected = encode(spec, value, version)
    writer = Writer()
    to_object(spec, value).write(writer, version)
    assert writer.size == len(expected)
    assert writer.to_bytes() == expected
    reader = Reader(expected)
    message = class_of(spec).read(reader, version)
    assert reader.remaining == 0
    assert to_dict(spec, message, version) == value
    assert decode(spec, expected, version) == value


@every_message
def test_every_version_round_trips(spec: MessageSpec) -> None:
    assert (spec.first, spec.last) == class_of(spec).VERSIONS
    for version in spec.versions:
        for seed in SEEDS:
            both_ways(spec, ValueMaker(spec, seed).message(version), version)


@every_message
def test_defaults_round_trip(spec: MessageSpec) -> None:
    """An object made without arguments is the protocol's default, in every version."""
    for version in spec.versions:
        value = {f["name"]: default_of(spec, f, version) for f in present(spec.fields, version)}
        message = class_of(spec)()
        assert body_of(message, version) == encode(spec, value, version)
        assert copy_of(message, version) == message


NUMBERS = {
    kind: st.integers(0, (1 << bits) - 1)
    if kind in UNSIGNED
    else st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    for kind, bits in BITS.items()
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=140)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    **NUMBERS,
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "string": TEXT,
    "bytes": st.binary(max_size=140),
    "records": st.binary(max_size=1100),
    "uuid": st.binary(min_size=16, max_size=16),
}


def values_of(
    spec: MessageSpec, fields: list[dict[str, Any]], version: int
) -> st.SearchStrategy[Any]:
    """Return values of a struct in one version."""
    return st.fixed_dictionaries(
        {f["name"]: _values_of_field(spec, f, version) for f in present(fields, version)}
    )


def _values_of_field(
    spec: MessageSpec, field: dict[str, Any], version: int
) -> st.SearchStrategy[Any]:
    kind = field["type"].removeprefix("[]")
    members = spec.members(field)
    plain_value = PLAIN[kind] if members is None else values_of(spec, members, version)
    if field["type"].startswith("[]"):
        plain_value = st.lists(plain_value, max_size=2)
    return st.none() | plain_value if covers(field.get("nullable"), version) else plain_value


@every_message
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_round_trips(spec: MessageSpec, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(spec.versions))
    both_ways(spec, data.draw(values_of(spec, spec.fields, version)), version)
