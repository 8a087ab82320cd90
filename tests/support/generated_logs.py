"""Partition directories written by minibroker's storage, with contents from a seed.

All formats, codecs and kinds of batches: idempotent, transactional, markers, headers, nulls, append
times, several segments. `damage` then damages a file as disks and crashes do.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from minibroker.broker.storage import log_reads
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record
from tests.support.logs import NOW_MS, TOPIC_ID, append_records, config, open_manager

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.storage.partition_log import PartitionLog

FORMATS = ("0.9.0", "0.10.2", "0.11.0", "3.0", "2.8")
PRODUCER = {"producer_id": 7, "producer_epoch": 2}


def write_logs(directory: Path, seeds: range) -> list[Path]:
    """Write one partition for each seed, close them cleanly, and return their directories."""
    manager = open_manager(str(directory))
    for seed in seeds:
        chance = random.Random(seed)
        settings = config(
            message_format_version=FORMATS[seed % len(FORMATS)],
            index_interval_bytes=chance.choice([100, 300, 4096]),
            segment_bytes=chance.choice([900, 2500, 1 << 20]),
            message_timestamp_type=chance.choice(["CreateTime", "CreateTime", "LogAppendTime"]),
        )
        log = manager.create_log("made", seed, TOPIC_ID, settings)
        fill(log, chance, magic=(0, 1, 2, 2, 2)[seed % len(FORMATS)])
    manager.close()
    return [directory / f"made-{seed}" for seed in seeds]


def fill(log: PartitionLog, chance: random.Random, *, magic: int) -> None:
    """Append a dozen batches of all kinds."""
    codecs = CODEC_NAMES if magic == 2 else CODEC_NAMES[:4]
    sequence = epoch = 0
    for _ in range(chance.randrange(1, 14)):
        records = _records(chance, with_headers=magic == 2)
        codec = chance.choice(codecs)
        if magic < 2:
            records_to_send = build_message_set(
                [record._replace(headers=()) for record in records],
                magic=magic,
                codec=CODEC_NAMES.index(codec),
                base_offset=0,
            )
            append_records(log, memoryview(records_to_send), 0, NOW_MS)
        else:
            is_transactional = chance.random() < 0.3
            producer_fields = {}
            if is_transactional or chance.random() < 0.3:
                producer_fields = {**PRODUCER, "base_sequence": sequence}
                sequence += len(records)
            records_to_send = build_batch(
                records, codec=codec, is_transactional=is_transactional, **producer_fields
            )
            epoch += chance.random() < 0.2
            append_records(log, memoryview(records_to_send), epoch, NOW_MS)
            if is_transactional:
                marker = build_marker(
                    TransactionMarker(chance.random() < 0.5, 4), timestamp_ms=NOW_MS, **PRODUCER
                )
                append_records(log, memoryview(marker), epoch, NOW_MS, origin="coordinator")
        log.write_staged()


def fetch(leader: PartitionLog, follower: PartitionLog, max_bytes: int) -> None:
    """Copy the leader's log like a follower, `max_bytes` a fetch: the last batch may be cut."""
    while follower.log_end_offset < leader.log_end_offset:
        fetched = log_reads.read(
            leader,
            follower.log_end_offset,
            max_bytes,
            end_offset=leader.log_end_offset,
            min_one_batch=True,
        )
        assert (
            follower.append_as_follower(fetched.records, leader.epochs.history.latest_epoch)
            is not None
        )


def _records(chance: random.Random, *, with_headers: bool) -> list[Record]:
    def field(most: int) -> bytes | None:
        if chance.random() < 0.2:
            return None
        letters = "abc λß\u20ac\U0001f600 0123456789"
        return "".join(chance.choices(letters, k=chance.randrange(most))).encode()

    headers = ()
    if with_headers and chance.random() < 0.3:
        headers = (("é", b"1"), ("", None))
    return [
        Record(number, NOW_MS + chance.randrange(500), field(8), field(90), headers)
        for number in range(chance.randrange(1, 7))
    ]


def damage(path: Path, chance: random.Random) -> None:
    """Cut the file, add to it, or change one byte of it."""
    content = bytearray(path.read_bytes())
    kind = chance.choice(["cut", "zeros", "half a header", "bit"])
    if kind == "cut":
        del content[chance.randrange(len(content)) :]
    elif kind == "zeros":
        content += bytes(chance.choice([8, 12, 96]))
    elif kind == "half a header":
        content += content[: chance.randrange(1, 17)]
    else:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
