"""Fixtures of the tools' tests: a small data directory, and the tools' output as text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.cli.program import run_words
from minibroker.clock import SystemClock
from tests.support.compaction import end_transaction
from tests.support.logs import NOW_MS, TOPIC_ID, append_records, batch, config, open_manager

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


class Outcome(NamedTuple):
    output: str
    errors: str
    code: int


@pytest.fixture
async def tree(tmp_path: Path) -> AsyncIterator[EmbeddedTree]:
    """An open tree, empty."""
    empty_tree = EmbeddedTree(tmp_path / "metadata.db", SystemClock())
    await empty_tree.open()
    yield empty_tree
    await empty_tree.close()


@pytest.fixture
def dump() -> Callable[..., Outcome]:
    """`minibroker dump-log` with these words."""

    def run(*words: object) -> Outcome:
        out, errors = io.StringIO(), io.StringIO()
        code = run_words(["dump-log", *map(str, words)], out, errors)
        return Outcome(out.getvalue(), errors.getvalue(), code)

    return run


@pytest.fixture
def check() -> Callable[..., Outcome]:
    """`minibroker check-log` with these words."""

    def run(*words: object) -> Outcome:
        out, errors = io.StringIO(), io.StringIO()
        code = run_words(["check-log", *map(str, words)], out, errors)
        return Outcome(out.getvalue(), errors.getvalue(), code)

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log directory, closed cleanly: partition t-0 with segments at 0, 12 and 22; the first has
    an aborted transaction (9, 10, marker at 11), the second begins leader epoch 1.
    """
    path = tmp_path / "data"
    manager = open_manager(str(path))
    settings = config(index_interval_bytes=100)
    log = manager.create_log("t", 0, TOPIC_ID, settings)
    for number in range(9):
        one_batch = batch(b"value-%d" % number * 5, timestamp_ms=NOW_MS + number)
        append_records(log, one_batch, 0, NOW_MS)
    producer = {"producer_id": 7, "producer_epoch": 0}
    one_batch = batch(b"x", b"y", sequence=0, **producer)
    one_batch[22] |= 0x10  # transactional
    from minibroker.kafka.records.batch import compute_crc  # noqa: PLC0415

    one_batch[17:21] = compute_crc(one_batch, 0, len(one_batch)).to_bytes(4, "big")
    append_records(log, one_batch, 0, NOW_MS)
    end_transaction(log, 7, is_commit=False)
    log.roll()
    for number in range(10):
        append_records(log, batch(bytes(40), timestamp_ms=NOW_MS + 50 + number), 1, NOW_MS)
    log.write_staged()
    log.roll()
    append_records(log, batch(b"last"), 1, NOW_MS)
    manager.close()
    return path
