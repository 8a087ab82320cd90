"""Frames for the fuzzing: good requests of every served API and version, and damage to them.

A frame is made from the specs in `protocol_specs/`, by the slow codec of the tests, so it shares no
code with the broker. There are three kinds of values:

    good   every field has a value that a client would send
    edge   a good one with a single field at an edge of its type
    wild   every field is random

and damage to the bytes of any of them: flipped bits, other bytes, parts cut out or put in, numbers
and varints at their edges, a length in front that is not the frame's.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.handlers.registry import supported_versions
from tests.support.batches import Item, batch
from tests.support.protocol_values import BITS, ValueMaker
from tests.support.reference_codec import UNSIGNED, covers, encode, load_specs
from tests.support.wire import request_header

if TYPE_CHECKING:
    from random import Random

    from tests.support.reference_codec import MessageSpec

TOPIC: Final = "fuzz"
RECORDS: Final = batch(Item(b"value", b"key", None, ((b"h", b"1"),)), b"x" * 40)
NEW_TOPICS: Final = ("made-1", "made-2", "made-3")
GROUPS: Final = ("group-1", "group-2", "group-3")
TRANSACTIONS: Final = ("transaction-1", "transaction-2")
CLIENT_ID: Final = "fuzz"

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
CREATE_PARTITIONS: Final = 37

# What a client would send, by the name of the field; a list is a choice.
GOOD: Final[dict[str, list[Any]]] = {
    "acks": [-1, 1],
    "assignor": [None],
    "client_software_name": ["fuzz"],
    "client_software_version": ["1"],
    "components": [[]],
    "coordinator_keys": list(GROUPS),
    "count": [3],
    "group": list(GROUPS),
    "group_id": list(GROUPS),
    "group_ids": list(GROUPS),
    "groups": list(GROUPS),
    "groups_names": list(GROUPS),
    "index": [0],
    "instance_id": [None],
    "isolation_level": [0, 1],
    "key": list(GROUPS),
    "key_type": [0, 1],
    "leader_epoch": [0, -1],
    "current_leader_epoch": [0, -1],
    "max_bytes": [1 << 20],
    "max_wait_ms": [1],
    "member_epoch": [0],
    "member_id": ["", "member"],
    "min_bytes": [0, 1],
    "partition": [0],
    "partition_index": [0, 1],
    "partition_indexes": [0, 1],
    "partition_max_bytes": [1 << 20],
    "partitions": [0, 1],
    "protocol_type": ["consumer"],
    "rack_id": ["", None],
    "rebalance_timeout_ms": [10_000],
    "records": [RECORDS],
    "replica_id": [-1],
    "replication_factor": [1],
    "num_partitions": [1, 2],
    "resource_name": [TOPIC],
    "resource_type": [2],
    "session_epoch": [-1, 0],
    "session_id": [0],
    "session_timeout_ms": [10_000],
    "timeout_ms": [100],
    "topic": [TOPIC],
    "topic_name": [TOPIC],
    "topic_names": [TOPIC],
    "transaction_timeout_ms": [60_000],
    "transactional_id": [None, *TRANSACTIONS],
    "transactional_ids": list(TRANSACTIONS),
    "validate_only": [True],
}
# What would change this test's own broker for good is only checked, or done to something else.
_ACL: Final[dict[str, list[Any]]] = {
    "host": ["*"],
    "operation": [3],
    "pattern_type": [3],
    "pattern_type_filter": [3],
    "permission_type": [3],
    "principal": ["User:nobody"],
    "resource_pattern_type": [3],
    "resource_type_filter": [2],
}
GOOD_OF_API: Final[dict[str, dict[str, list[Any]]]] = {
    "create_acls": _ACL,
    "delete_acls": _ACL,
    "describe_acls": _ACL,
    "create_topics": {"name": list(NEW_TOPICS), "validate_only": [True, False], "value": ["1000"]},
    "delete_topics": {"name": list(NEW_TOPICS), "topic_names": list(NEW_TOPICS)},
    "alter_configs": {"name": ["retention.ms", "no.such.key"], "value": ["100000"]},
    "incremental_alter_configs": {
        "name": ["retention.ms", "no.such.key"],
        "value": ["100000"],
        "config_operation": [0, 1],
    },
    "alter_client_quotas": {"entity_type": ["client-id"], "entity_name": ["nobody"]},
    "update_features": {"feature": ["group.version"], "max_version_level": [1]},
    "elect_leaders": {"partitions": [0]},
    "join_group": {"name": ["range"]},
}
EDGE_TEXTS: Final = ("", "a", "/", "..", "ä", "\0", "x" * 127, "x" * 249, "x" * 300, "x" * 32_767)
EDGE_FLOATS: Final = (0.0, -0.0, -1.0, 1e308, -1e308, float("inf"), float("-inf"), float("nan"))
NUMBER_EDGES: Final = (
    *(struct.pack(">h", number) for number in (0, -1, 1, -(2**15), 2**15 - 1)),
    *(struct.pack(">i", number) for number in (0, -1, 1, -(2**31), 2**31 - 1, 2**30, 2**20)),
    *(struct.pack(">q", number) for number in (0, -1, -(2**63), 2**63 - 1)),
)
VARINT_EDGES: Final = (
    b"\0",
    b"\x01",
    b"\x7f",
    b"\x80\x01",
    b"\xff\xff\x03",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\x01",
    b"\x80" * 12,
)


class Frame(NamedTuple):
    """One frame to send."""

    api_key: int
    version: int
    raw: bytes
    """The frame with its length in front."""
    correlation_id: int | None
    """The id that its answer must have; None for a damaged frame, which may have another."""
    is_torn: bool
    """The length in front is not the frame's: the broker may wait for more."""


def request_specs() -> dict[int, MessageSpec]:
    """Return the request of every served API by its key."""
    served = supported_versions()
    return {
        spec.key: spec
        for spec in load_specs()
        if spec.key in served and spec.class_name.endswith("Request")
    }


class GoodMaker(ValueMaker):
    """Values as a client sends them; `edge_at` counts fields until one gets an edge of its type."""

    def __init__(self, spec: MessageSpec, rng: Random, topic_id: bytes) -> None:
        super().__init__(spec, 0)
        self.random = rng
        self.edge_at = -1
        api = spec.module.rpartition(".")[2]
        self._good = GOOD | {"topic_id": [topic_id]} | GOOD_OF_API.get(api, {})

    def _value(self, field: dict[str, Any], version: int, depth: int) -> Any:
        name, kind = field["name"], field["type"]
        self.edge_at -= 1
        is_edge = self.edge_at == 0
        if kind.startswith("[]"):
            if is_edge and covers(field.get("nullable"), version):
                return None
            item = {key: field[key] for key in field.keys() - {"nullable", "tag"}}
            item["type"] = kind[2:]
            count = self.random.choice((0, 2, 50)) if is_edge else 1
            return [self._value(item, version, depth + 1) for _ in range(count)]
        members = self.spec.members(field)
        if members is not None:
            return self._struct(members, version, depth + 1)
        if is_edge:
            return self._edge(kind, is_nullable=covers(field.get("nullable"), version))
        return self._usual(name, kind, is_nullable=covers(field.get("nullable"), version))

    def _usual(self, name: str, kind: str, *, is_nullable: bool) -> Any:
        choices = self._good.get(name)
        if name == "name" and choices is None:
            choices = [TOPIC]
        if choices is not None:
            value = self.random.choice(choices)
            fits = isinstance(value, _TYPES.get(kind, int)) and (
                kind == "bool" or not isinstance(value, bool)
            )
            if fits or (value is None and is_nullable):
                return value
        return {"string": "", "bytes": b"", "records": RECORDS, "uuid": bytes(16)}.get(
            kind, False if kind == "bool" else 0.0 if kind == "float64" else 0
        )

    def _edge(self, kind: str, *, is_nullable: bool) -> Any:
        if is_nullable and self.random.random() < 0.3:
            return None
        if kind == "string":
            return self.random.choice(EDGE_TEXTS)
        if kind in ("bytes", "records"):
            return self.random.choice((b"", b"\0", RECORDS[:20], RECORDS[:-1], b"\xff" * 61))
        if kind == "uuid":
            return self.random.choice((bytes(16), b"\xff" * 16))
        if kind == "bool":
            return True
        if kind == "float64":
            return self.random.choice(EDGE_FLOATS)
        low = 0 if kind in UNSIGNED else -(1 << BITS[kind] - 1)
        high = low + (1 << BITS[kind]) - 1
        return self.random.choice((low, high, 0, 1, low + 1, high - 1, high // 2 + 1, high >> 8))


_TYPES: Final[dict[str, type]] = {"string": str, "bytes": bytes, "records": bytes, "uuid": bytes}


class FrameMaker:
    """Makes frames of all served APIs and versions; the same `rng` makes the same frames."""

    def __init__(self, rng: Random, topic_id: bytes) -> None:
        self.rng = rng
        self._topic_id = topic_id
        self._specs = request_specs()
        self.served = [
            (key, version)
            for key, (oldest, newest) in supported_versions().items()
            for version in range(oldest, newest + 1)
        ]
        self._correlation_id = 0

    def good(self, api_key: int, version: int) -> Frame:
        """Return a frame as a client would send it."""
        return self._frame(api_key, version, self._body(api_key, version, "good"))

    def any(self) -> Frame:
        """Return a frame of any API: good, at an edge, wild or damaged."""
        api_key, version = self.rng.choice(self.served)
        kind = self.rng.choice(("good", "edge", "edge", "wild"))
        frame = self._frame(api_key, version, self._body(api_key, version, kind))
        return self._damaged(frame) if self.rng.random() < 0.5 else frame

    def _body(self, api_key: int, version: int, kind: str) -> bytes:
        spec = self._specs[api_key]
        maker: ValueMaker
        if kind == "wild" and api_key not in _NEVER_WILD:
            maker = ValueMaker(spec, 0)
            maker.random = self.rng
            return encode(spec, maker.message(version), version)
        maker = GoodMaker(spec, self.rng, self._topic_id)
        if kind != "good":
            maker.edge_at = self.rng.randint(1, 12)
        return encode(spec, maker.message(version), version)

    def _frame(self, api_key: int, version: int, body: bytes) -> Frame:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        is_flexible = version >= self._specs[api_key].flexible_from
        head = request_header(api_key, version, self._correlation_id, CLIENT_ID, is_flexible)
        raw = struct.pack(">i", len(head) + len(body)) + head + body
        return Frame(api_key, version, raw, self._correlation_id, is_torn=False)

    def _damaged(self, frame: Frame) -> Frame:
        raw = bytearray(frame.raw)
        for _ in range(self.rng.choice((1, 1, 1, 2, 4))):
            _wound(raw, self.rng)
        if self.rng.random() < 0.9:  # a right length again, so that what is behind it is looked at
            raw[:4] = struct.pack(">i", len(raw) - 4)
        is_torn = raw[:4] != struct.pack(">i", len(raw) - 4)
        return Frame(frame.api_key, frame.version, bytes(raw), None, is_torn)


_NEVER_WILD: Final = frozenset({CREATE_TOPICS, DELETE_TOPICS, 33, 44, 49, CREATE_PARTITIONS})
"""Requests whose random values could delete the topic, limit our client, or take hours."""


def _wound(raw: bytearray, rng: Random) -> None:
    position = rng.randrange(4, len(raw)) if len(raw) > 4 else 0
    kind = rng.randrange(6)
    if kind == 0:
        raw[position] ^= 1 << rng.randrange(8)
    elif kind == 1:
        raw[position] = rng.randrange(256)
    elif kind == 2:
        del raw[max(8, position) :]
    elif kind == 3:
        raw[position:position] = rng.randbytes(rng.randint(1, 20))
    elif kind == 4:
        edge = rng.choice(NUMBER_EDGES)
        raw[position : position + len(edge)] = edge
    else:
        raw[position : position + 1] = rng.choice(VARINT_EDGES)
    while len(raw) < 8:
        raw.append(0)
