"""The frames and the seed of a run: `make fuzz` sets them, and explores."""

from __future__ import annotations

import os
from random import SystemRandom

FRAMES = int(os.environ.get("MINIBROKER_FUZZ_FRAMES", "0"))
IS_EXPLORING = FRAMES > 0
SEED = int(os.environ.get("MINIBROKER_FUZZ_SEED", SystemRandom().getrandbits(32)))
