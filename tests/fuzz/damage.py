"""Damages frames and tokens of logins, by seeded chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


def damaged(chance: random.Random, frame: bytes) -> bytes:
    """Return a frame with some bytes changed, cut or added; seldom unchanged."""
    changed = bytearray(frame)
    for _ in range(chance.randrange(4)):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    end = chance.choice([len(changed), len(changed), chance.randrange(len(changed) + 1)])
    return bytes(changed[:end]) + chance.randbytes(chance.choice([0, 0, 5]))
