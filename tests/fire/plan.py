"""The number of kills of the tests in this folder, their random numbers, the brokers' settings."""

from __future__ import annotations

import os

KILLS = int(os.environ.get("MINIBROKER_FIRE_KILLS", "3"))

SEED = int(os.environ.get("MINIBROKER_FIRE_SEED", "1"))

SETTINGS = {
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": "200000",
}
