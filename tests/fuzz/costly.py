"""Requests that could cost more than their bytes: one for each list and text that a request has.

They are made from the spec files: a new API is among them without being named. `requests_of` gives
the shapes of one version. Each is a function of a size, so that a test compares the cost at two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.in_process import batch_of
from tests.support.reference_codec import covers, default_of, present

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.reference_codec import MessageSpec

SMALL, LARGE = 60, 240
"""The two sizes of a list."""
HOLD_FREE = 1_000
"""Lines of a step that is not asked about growth."""
HOLD_GROWTH_MAX = 10
"""Lines that a step may take longer for one more item: what one walk over a list costs."""
TOPIC = "t"
"""A topic that exists, with one partition."""
PLAIN_VALUES: dict[str, Any] = {
    "acks": 1,
    "committed_leader_epoch": -1,
    "current_leader_epoch": -1,
    "generation_id": -1,
    "group_instance_id": None,
    "instance_id": None,
    "generation_id_or_member_epoch": -1,
    "isolation_level": 0,
    "iterations": 4096,
    "leader_epoch": -1,
    "max_bytes": 1 << 20,
    "max_num_offsets": 1,
    "max_wait_ms": 0,
    "mechanism": 1,
    "member_id": "",
    "num_partitions": 1,
    "partition_max_bytes": 1 << 20,
    "permission_type": 3,
    "principal": "User:a",
    "protocol_type": "consumer",
    "replica_id": -1,
    "replication_factor": 1,
    "response_partition_limit": 1 << 20,
    "session_epoch": -1,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "timeout_ms": 1_000,
    "validate_only": True,
}
"""Name of a field → a value with which its request gets past the first check; else 1, True or a
name."""


class Shape(NamedTuple):
    """One way in which a request may be large."""

    path: tuple[str, ...]
    """Names of the fields down to the list or text that grows; the others have one item."""
    kind: str
    """`most`: different names, `repeated`: the same, `longest`: a text of so many characters."""

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} {self.kind}"


def shapes_of(spec: MessageSpec, version: int) -> list[Shape]:
    """Return every shape of a request: a list grows in two ways, a text in one."""
    return list(_shapes(spec, spec.fields, version, ()))


def _shapes(
    spec: MessageSpec, fields: list[dict[str, Any]], version: int, above: tuple[str, ...]
) -> Iterator[Shape]:
    for field in present(fields, version):
        path = (*above, field["name"])
        kind = field["type"]
        if kind.startswith("[]"):
            yield Shape(path, "most")
            yield Shape(path, "repeated")
        if kind.removeprefix("[]") in {"string", "bytes"}:
            yield Shape(path, "longest")
        members = spec.members(field)
        if members is not None:
            yield from _shapes(spec, members, version, path)


def value_of(
    spec: MessageSpec, version: int, shape: Shape, size: int, topic_id: bytes
) -> dict[str, Any]:
    """Return the request of a shape as the dict that the reference codec takes.

    `topic_id`: the id of TOPIC.
    """
    return _Maker(spec, version, shape, size, topic_id).struct(spec.fields, (), 0)


class _Maker:
    """Makes one request."""

    def __init__(
        self, spec: MessageSpec, version: int, shape: Shape, size: int, topic_id: bytes
    ) -> None:
        self._spec = spec
        self._version = version
        self._shape = shape
        self._size = size
        self._topic_id = topic_id

    def struct(
        self, fields: list[dict[str, Any]], above: tuple[str, ...], number: int
    ) -> dict[str, Any]:
        field_values = {
            field["name"]: self._value(field, (*above, field["name"]), number)
            for field in present(fields, self._version)
        }
        if "topic_id" in field_values and not any(
            isinstance(value, str) for value in field_values.values()
        ):
            field_values["topic_id"] = number.to_bytes(16, "big") if number else self._topic_id
        return field_values

    def _value(self, field: dict[str, Any], path: tuple[str, ...], number: int) -> Any:
        kind = field["type"]
        is_on_path = self._shape.path[: len(path)] == path
        if not kind.startswith("[]"):
            return self._item(field, kind, path, number)
        if "tag" in field and not is_on_path:
            return default_of(self._spec, field, self._version)
        grows = self._shape.path == path and self._shape.kind != "longest"
        count = self._size if grows else 1
        is_repeated = grows and self._shape.kind == "repeated"
        return [
            self._item(field, kind[2:], path, 0 if is_repeated else index + number)
            for index in range(count)
        ]

    def _item(self, field: dict[str, Any], kind: str, path: tuple[str, ...], number: int) -> Any:
        members = self._spec.members(field)
        if members is not None:
            is_on_path = self._shape.path[: len(path)] == path
            if "tag" in field and not is_on_path:
                return default_of(self._spec, field, self._version)
            is_single = not field["type"].startswith("[]")
            if is_single and covers(field.get("nullable"), self._version) and not is_on_path:
                return None
            return self.struct(members, path, number)
        return self._plain(field, kind, path, number)

    def _plain(self, field: dict[str, Any], kind: str, path: tuple[str, ...], number: int) -> Any:
        name = field["name"]
        is_longest = self._shape.path == path and self._shape.kind == "longest"
        if kind == "string" and not is_longest and PLAIN_VALUES.get(name, "") is None:
            return None if covers(field.get("nullable"), self._version) else ""
        if kind == "string":
            text = str(PLAIN_VALUES.get(name, TOPIC if not number else f"{TOPIC}{number}"))
            return text + "x" * self._size if is_longest else text
        if kind == "bytes":
            return bytes(self._size) if is_longest else b"a" * 32
        if kind == "records":
            return bytes(batch_of(b"value"))
        if kind == "uuid":
            return default_of(self._spec, field, self._version)
        if kind == "bool":
            return bool(PLAIN_VALUES.get(name, True))
        if kind == "float64":
            return 1.0
        if name in PLAIN_VALUES:
            return PLAIN_VALUES[name]
        is_number_of_list = field["type"].startswith("[]")
        if kind == "int8":
            return number % 100
        return number if is_number_of_list or "partition" in name or "index" in name else 1
