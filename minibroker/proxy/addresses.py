"""The addresses in answers: where each API has them, and how to write others into their place.

A client connects to what an answer says. So each address of Kafka's becomes the one of the proxy's
listener for it, in every API and version that has one. `ADDRESSES` is the table; a test compares it
with all messages that there are.

Fetch and Produce have addresses only beside an error ("the leader is now …", KIP-951), in a tagged
field at the end. `may_have_hint` looks at the last bytes of an answer, so that the usual answer is
not decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.kafka.protocol.api_keys import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    FETCH,
    FIND_COORDINATOR,
    METADATA,
    PRODUCE,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    UPDATE_RAFT_VOTER,
)
from minibroker.kafka.protocol.primitives import uvarint_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.kafka.protocol.message import Message

Address = tuple[str, int]


def name_of(address: Address) -> str:
    """Return an address as HOST:PORT, with brackets around an IPv6 one."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class AddressPlace(NamedTuple):
    """The places of addresses in the answers of an API."""

    ways: tuple[tuple[str, ...], ...]
    """Each way leads to structures with `host` and `port`."""
    first_version: int = 0
    """Older versions have none."""
    is_hint: bool = False
    """True if addresses come only beside an error, in a tagged field at the end."""


ADDRESSES: Final = {
    PRODUCE: AddressPlace((("node_endpoints",),), 10, is_hint=True),
    FETCH: AddressPlace((("node_endpoints",),), 16, is_hint=True),
    METADATA: AddressPlace((("brokers",),)),
    FIND_COORDINATOR: AddressPlace(((), ("coordinators",))),
    DESCRIBE_QUORUM: AddressPlace((("nodes", "listeners"),), 2),
    DESCRIBE_CLUSTER: AddressPlace((("brokers",),)),
    SHARE_FETCH: AddressPlace((("node_endpoints",),)),
    SHARE_ACKNOWLEDGE: AddressPlace((("node_endpoints",),)),
    UPDATE_RAFT_VOTER: AddressPlace((("current_leader",),)),
}
_PORT_MAX: Final = 65_535
_NO_HINT_IN_PRODUCE: Final = bytes(5)
"""throttle_time_ms of 0, and no tagged field. A port is never three zeros."""


def has_addresses(api_key: int, version: int) -> bool:
    """Return whether an answer has addresses, or may have some beside an error."""
    place = ADDRESSES.get(api_key)
    return place is not None and version >= place.first_version


def may_have_hint(api_key: int, data: bytes, at: int = 0, end: int | None = None) -> bool:
    """Return False only if the answer from `at` to `end` (None: the end of `data`) certainly has
    no address in the tagged field at its end.

    An address there ends in a port (four bytes), a rack (one zero byte, or its text) and a zero.
    Produce without one ends in its throttle time and a zero. Fetch without one ends in three
    zeros; a port that is a multiple of 256 ends so, too, but has two zeros and another byte before.
    """
    if end is None:
        end = len(data)
    if api_key == PRODUCE:
        return not data.endswith(_NO_HINT_IN_PRODUCE, at, end)
    if not data.endswith(b"\0\0\0", at, end):
        return True
    return data.endswith(b"\0\0", at, end - 4) and data[end - 4] != 0


def addressed_parts(api_key: int, answer: Message) -> Iterator[Any]:
    """Yield each structure of an answer that has an address (attributes `host` and `port`)."""
    for way in ADDRESSES[api_key].ways:
        for part in _along(answer, way):
            if part.host and 0 < part.port <= _PORT_MAX:
                yield part


def _along(part: Any, way: tuple[str, ...]) -> Iterator[Any]:
    if not way:
        yield part
        return
    inner = getattr(part, way[0])
    for each in inner if isinstance(inner, list) else () if inner is None else (inner,):
        yield from _along(each, way[1:])


def rewrite(api_key: int, answer: Message, own_address: Callable[[Address], Address]) -> bool:
    """Write other addresses into an answer; return whether there was one to change."""
    is_changed = False
    for part in addressed_parts(api_key, answer):
        address = (part.host, part.port)
        part.host, part.port = own_address(address)
        is_changed = is_changed or (part.host, part.port) != address
    return is_changed


def rewrite_all(api_key: int, answer: Message, address: Address) -> None:
    """Write one address over those of all brokers in an answer: one broker stands for all."""
    if api_key in ADDRESSES:
        rewrite(api_key, answer, lambda _: address)


def hide_hint(tail: bytearray) -> bool:
    """Hide the address in the tagged field at the end of an answer; return whether there was one.

    For an answer of Fetch that is too large to be collected: its size has left already, so nothing
    may grow or shrink. The number of the field becomes one that no client knows, and a client
    passes over such fields: it asks for the leader then, as it does without the field.
    """
    end = len(tail)
    at = tail.find(_HINT_START)
    while at >= 0:
        size, body = uvarint_in(tail, at + len(_HINT_START), end)
        if body + size == end and size > 1 and tail[body] > 1:
            tail[at + 1] = _UNKNOWN_TAG
            return True
        at = tail.find(_HINT_START, at + 1)
    return False


_HINT_START: Final = b"\x01\x00"
"""One tagged field, with the number 0."""
_UNKNOWN_TAG: Final = 0x7F
