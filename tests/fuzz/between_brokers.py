"""Hostile requests between brokers: true ones, with some fields that no broker would send.

A field has a value that fits the broker of the test, or one at an edge: epochs that are old, newer
than any, or negative; partitions that are not there; brokers that are none; lists that are empty,
long, or have one broker many times; topics that are unknown.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from tests.support.protocol_values import ValueMaker
from tests.support.reference_codec import covers, encode, load_specs
from tests.support.wire import request_header

if TYPE_CHECKING:
    from random import Random

    from tests.support.reference_codec import MessageSpec

KEYS: Final = (1, 4, 5, 6, 7, 23, 56, 67)
"""Fetch, LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, OffsetForLeaderEpoch,
AlterPartition, AllocateProducerIds."""
VERSIONS: Final = {1: (4, 18), 4: (0, 7), 5: (0, 4), 6: (0, 8), 7: (0, 3), 23: (3, 4), 56: (0, 3)}
"""Those that brokers send each other."""
CLIENT_ID: Final = "fuzz"
HOSTILE_CHANCE: Final = 0.12
NEVER_HOSTILE: Final = frozenset({"max_wait_ms", "session_epoch"})
"""A long poll would have the test wait; a session would remember what a request before it said."""
COUNTS: Final = (0, 2, 2, 7, 40)
LONG: Final = 300
"""Brokers of a long list."""
INT16, INT32, INT64 = 2**15 - 1, 2**31 - 1, 2**63 - 1


class HostileMaker(ValueMaker):
    """Makes the values of one request. `values_by_field`: name of a field → values that fit."""

    def __init__(
        self, spec: MessageSpec, rng: Random, values_by_field: dict[str, list[Any]]
    ) -> None:
        super().__init__(spec, 0)
        self.random = rng
        self._values_by_field = values_by_field

    def _value(self, field: dict[str, Any], version: int, depth: int) -> Any:
        rng = self.random
        kind = field["type"]
        is_hostile = rng.random() < HOSTILE_CHANCE and field["name"] not in NEVER_HOSTILE
        if kind.startswith("[]"):
            if is_hostile and covers(field.get("nullable"), version):
                return None
            item = {key: field[key] for key in field.keys() - {"nullable", "tag"}}
            item["type"] = kind[2:]
            count = rng.choice(COUNTS if depth < 3 else COUNTS[:-1]) if is_hostile else 1
            if kind == "[]int32":
                if is_hostile and rng.random() < 0.3:
                    return [rng.randint(-2, INT32) for _ in range(LONG)]
                if field["name"] in self._values_by_field:
                    return list(rng.choice(self._values_by_field[field["name"]]))
            return [self._value(item, version, depth + 1) for _ in range(count)]
        members = self.spec.members(field)
        if members is not None:
            return self._struct(members, version, depth + 1)
        if is_hostile:
            return self._hostile(kind, is_nullable=covers(field.get("nullable"), version))
        values = self._values_by_field.get(field["name"])
        if values is not None:
            return rng.choice(values)
        return {"string": "", "bytes": b"", "records": b"", "uuid": bytes(16)}.get(kind, 0)

    def _hostile(self, kind: str, *, is_nullable: bool) -> Any:
        rng = self.random
        if is_nullable and rng.random() < 0.3:
            return None
        if kind == "string":
            return rng.choice(("", "..", "unknown", "\0", "x" * 30_000))
        if kind == "uuid":
            return rng.choice((bytes(16), b"\xff" * 16))
        if kind == "bool":
            return rng.random() < 0.5
        highest = {"int8": 127, "int16": INT16, "int32": INT32, "int64": INT64, "uint16": INT16}
        top = highest.get(kind, 0)
        return rng.choice((-1, 0, 1, 7, top, top - 1)) if top else self._plain(kind)


class HostileRequests:
    """Makes frames; the same `rng` makes the same ones."""

    def __init__(self, rng: Random, values_by_field: dict[str, list[Any]]) -> None:
        self._rng = rng
        self._values_by_field = values_by_field
        self._specs = {
            spec.key: spec
            for spec in load_specs()
            if spec.key in KEYS and spec.class_name.endswith("Request")
        }

    def next(self, correlation_id: int) -> tuple[int, int, bytes]:
        """Return API key, version and a whole frame."""
        api_key = self._rng.choice(KEYS)
        version = self._rng.randint(*VERSIONS.get(api_key, (0, 0)))
        spec = self._specs[api_key]
        maker = HostileMaker(spec, self._rng, self._values_by_field)
        body = encode(spec, maker.message(version), version)
        is_flexible = version >= spec.flexible_from
        head = request_header(api_key, version, correlation_id, CLIENT_ID, is_flexible)
        return api_key, version, struct.pack(">i", len(head) + len(body)) + head + body
