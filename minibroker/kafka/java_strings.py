"""Hash codes of strings as Java computes them, addresses and quoted texts as Java has them.

Kafka finds the partition of a group or a transactional id with the hash code, and its hash tables
are in the order of hash codes. Source: java.lang.String.hashCode, Kafka Utils.abs. Members of
groups and hosts of ACLs have addresses as text (java.net.InetAddress.getHostAddress). JAAS lines
have names and passwords in quotes (java.io.StreamTokenizer).
"""

from __future__ import annotations

from functools import lru_cache
from struct import unpack
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

HASHES_KEPT: Final = 1 << 14
"""Cached hash codes: ids and topic names repeat, and Python computes a hash code slowly."""
HASHED_LENGTH_MAX: Final = 256
"""A longer text has one of a few places of its own: it is kept with its hash code."""
LONG_HASHES_KEPT: Final = 16
"""One request asks several times about its text."""
_MASK: Final = 0xFFFFFFFF
_SMALLEST: Final = 1 << 31
_SMALL_TABLE: Final = 16
"""Places of a HashSet that holds at most twelve texts."""


def string_hash(text: str) -> int:
    """Return Java's String.hashCode as an unsigned 32-bit number, over UTF-16 units.
    A half of a surrogate pair counts as a unit.
    """
    return _kept_hash(text) if len(text) <= HASHED_LENGTH_MAX else _long_hash(text)


def _hash(text: str) -> int:
    data = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for unit in unpack(f">{len(data) // 2}H", data):
        result = (result * 31 + unit) & _MASK
    return result


_kept_hash = lru_cache(HASHES_KEPT)(_hash)
_long_hash = lru_cache(LONG_HASHES_KEPT)(_hash)


def partition_for(key: str, partition_count: int) -> int:
    """Return the partition of an internal topic that keeps `key`: Kafka's Utils.abs, modulo."""
    code = string_hash(key)
    if code == _SMALLEST:  # the smallest int has no positive counterpart
        code = 0
    elif code > _SMALLEST:
        code = _MASK + 1 - code
    return code % partition_count


def host_address(host: str) -> str:
    """Return an IP address as Java writes it: all eight groups of IPv6, `::1` → `0:0:0:0:0:0:0:1`.
    An IPv4 address that IPv6 carries is the IPv4 address: `::ffff:127.0.0.1` → `127.0.0.1`.
    Raises ValueError for a text with a colon that is no address.
    """
    if ":" not in host:
        return host
    from ipaddress import IPv6Address  # noqa: PLC0415  IPv6 only

    address, percent, zone = host.partition("%")
    ip_address = IPv6Address(address)
    if ip_address.ipv4_mapped is not None:
        return str(ip_address.ipv4_mapped)
    groups = ip_address.exploded.split(":")
    return ":".join(f"{int(group, 16):x}" for group in groups) + percent + zone


def quoted(text: str) -> str:
    """Return a text in quotes, as it stands in a JAAS line."""
    for letter, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(letter, escaped)
    return f'"{text}"'


def small_set_order(texts: Iterable[str]) -> list[str]:
    """Return different texts, at most twelve, in the order of a Java HashSet."""

    def place(text: str) -> int:
        code = string_hash(text)
        return (code ^ code >> 16) & _SMALL_TABLE - 1

    return sorted(dict.fromkeys(texts), key=place)
