"""The records that every client wrote for the golden files."""

from __future__ import annotations

TIMESTAMP_MS = 1_700_000_000_000

RECORDS: tuple[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]], ...] = (
    (b"key", b"value", ()),
    (None, b"without a key", ()),
    (b"tombstone", None, ()),
    (b"", b"", ()),
    (b"headers", b"value", (("name", b"one"), ("other", b"two"))),
    (b"long", b"value " * 1000, ()),
)
"""(key, value, headers). The long value needs a length of three bytes and compresses well."""
