"""The imports behind the ready line: what works on logs and records, a module at a time.

A start without a topic does without these modules, see `storage/log_manager.py`. Somebody makes a
topic soon, and all of them at once would hold the loop for 8 ms. So they come while the loop is
idle. A module takes less than 1 ms, requests go before the next one, and a request that needs the
rest at once imports it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from importlib import import_module
from typing import Final

logger = logging.getLogger(__name__)

PAUSE_S: Final = 0.001
"""Pause before each module: requests that have arrived meanwhile are answered first."""

MODULES: Final = (
    "minibroker.broker.evidence",
    "minibroker.broker.partitions.cold_reads",
    "minibroker.kafka.records",
    "minibroker.kafka.records.crc",
    "minibroker.kafka.records.batch",
    "minibroker.kafka.records.compression",
    "minibroker.kafka.records.turns",
    "minibroker.kafka.records.record",
    "minibroker.kafka.records.contents",
    "minibroker.kafka.records.produce_rules",
    "minibroker.broker.storage.record_checks",
    "minibroker.kafka.records.builder",
    "minibroker.broker.storage.validator",
    "minibroker.broker.partitions.checking",
    "minibroker.broker.storage.batch_walks",
    "minibroker.broker.storage.indexes",
    "minibroker.kafka.records.control",
    "minibroker.broker.storage.producer_state",
    "minibroker.broker.storage.txn_index",
    "minibroker.broker.storage.segment",
    "minibroker.broker.storage.producer_files",
    "minibroker.broker.storage.partition_directory",
    "minibroker.broker.storage.tasks",
    "minibroker.broker.storage.segment_files",
    "minibroker.broker.storage.producers",
    "minibroker.broker.storage.durability",
    "minibroker.broker.storage.epochs",
    "minibroker.broker.storage.tail",
    "minibroker.broker.storage.follower_records",
    "minibroker.broker.storage.partition_log",
    "minibroker.kafka.records.legacy_lz4",
    "minibroker.kafka.records.message_set",
    "minibroker.kafka.records.conversion",
    "minibroker.broker.storage.log_reads",
    "minibroker.broker.storage.slice_places",
    "minibroker.broker.server.direct_socket",
    "minibroker.broker.storage.retention",
    "minibroker.broker.partitions.role",
    "minibroker.broker.partitions.replica_progress",
    "minibroker.broker.partitions.replicas",
    "minibroker.broker.partitions.partition",
    "minibroker.broker.storage.recovery",
)
"""In the order of their imports of each other, so that a step imports one module alone."""


async def import_rest() -> None:
    """Import what the start left out, and say so if the checksums of records will be slow."""
    for name in MODULES:
        if name not in sys.modules:
            await asyncio.sleep(PAUSE_S)
            import_module(name)
    if sys.modules["minibroker.kafka.records.crc"].IS_SLOW:
        logger.warning(
            "the package crc32c is missing, so Python computes the checksums of records, some MB a"
            " second: pip install crc32c builds it with a C compiler"
        )
    gc.freeze()  # modules stay for ever, as those of the start
