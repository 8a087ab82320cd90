"""Key → the last offset it was seen at: what one round of compaction knows of the dirty part.

Filled by the first pass over the dirty records, asked by the second pass for every record of the
log. Its memory is bounded (`log.cleaner.dedupe.buffer.size` by the load factor): when it is full
the round ends at the offset it came to, and the next round goes on from there.

Short keys stand for themselves, longer ones as a digest of 24 bytes, which no short key can equal.

Differs from Kafka, whose table keeps MD5 digests at 24 bytes a key: here a key takes 160 bytes (an
entry of a Python dict), so the same buffer holds a seventh of the keys and a log of more keys takes
more rounds. A table of bytes searched by Python code takes five times as long for every key.

Source: Kafka SkimpyOffsetMap, Cleaner.buildOffsetMap.
"""

from hashlib import blake2b
from typing import Final

ENTRY_BYTES: Final = 160
"""Most that one key takes: 64 for its bytes, 32 for the offset, 64 of the dict just grown."""
DIGEST_BYTES: Final = 24
"""Keys of this length and more are hashed: then key and digest take equally much memory."""


class OffsetMap:
    """Used by one thread; emptied for every round."""

    __slots__ = ("_offsets", "keys_max", "latest_offset")

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        """Raises ValueError where not even one key fits."""
        self.keys_max = int(memory_bytes * load_factor) // ENTRY_BYTES
        if self.keys_max < 1:
            raise ValueError(
                f"log.cleaner.dedupe.buffer.size={memory_bytes} at a load factor of {load_factor} "
                f"holds no key, expected at least {ENTRY_BYTES} bytes of it"
            )
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1
        """Everything up to here was looked at; -1: nothing."""

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self.keys_max

    @property
    def utilization(self) -> float:
        """Share of the keys it may hold, 0 … 1."""
        return len(self._offsets) / self.keys_max

    def put(self, key: bytes, offset: int) -> None:
        """Note the last offset of a key. The caller has asked `is_full` before; offsets ascend."""
        if len(key) >= DIGEST_BYTES:
            key = blake2b(key, digest_size=DIGEST_BYTES).digest()
        self._offsets[key] = offset

    def get(self, key: bytes) -> int:
        """Return the last offset of `key`, -1 where it was not seen."""
        if len(key) >= DIGEST_BYTES:
            key = blake2b(key, digest_size=DIGEST_BYTES).digest()
        return self._offsets.get(key, -1)

    def clear(self) -> None:
        self._offsets = {}
        self.latest_offset = -1
