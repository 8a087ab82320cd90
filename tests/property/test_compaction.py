"""Compaction against a model: a list of records, and those that a reader must find.

For any records, codecs and segments, after any number of rounds with any memory, and after a start:

- every key has its last value, at its offset;
- what is found was put, at that offset, in that order; nothing above the compacted part is missing;
- a tombstone is there until its horizon is over, counted from the first round that met it, and goes
  with a round after that.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.broker.storage.files import Files
from minibroker.kafka.records.compression import CODEC_NAMES
from tests.support.compaction import compact, put
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    abandon,
    config,
    open_manager,
    records_of,
)

RETENTION_MS = 1000
TOPIC = config(
    cleanup_policy="compact",
    segment_bytes=700,
    index_interval_bytes=150,
    delete_retention_ms=RETENTION_MS,
)


class QuickFiles(Files):
    """Files that never sync, because there is no power cut here."""

    __slots__ = ()

    def sync(self, fd: int) -> None:  # type: ignore[override]
        """Do nothing."""

    def sync_directory(self, path: str) -> None:
        """Do nothing."""


class Put(NamedTuple):
    pairs: list[tuple[bytes, bytes | None]]
    codec: str


class Round(NamedTuple):
    later_ms: int
    keys_max: int
    rolls: bool


class Reopen(NamedTuple):
    """A stop and a start."""


PAIRS = st.tuples(
    st.integers(0, 7).map(lambda number: b"key-%d" % number * (1 + 3 * (number % 2))),
    st.none() | st.binary(max_size=40),
)
STEPS = st.lists(
    st.one_of(
        st.builds(Put, st.lists(PAIRS, min_size=1, max_size=6), st.sampled_from(CODEC_NAMES)),
        st.builds(Put, st.lists(PAIRS, min_size=1, max_size=2), st.just("none")),
        st.builds(
            Round,
            st.sampled_from((0, 1, RETENTION_MS // 2, RETENTION_MS, 3 * RETENTION_MS)),
            st.sampled_from((1, 2, 5, 1000)),
            st.booleans(),
        ),
        st.just(Reopen()),
    ),
    max_size=25,
)


class Model:
    """Every record that was put, and the effects of rounds on it."""

    def __init__(self) -> None:
        self.records: list[tuple[int, bytes, bytes | None]] = []
        self.due_ms: dict[int, int] = {}
        """Tombstone → the earliest time it may go: its segment was closed when a round ran."""
        self.overdue_ms: dict[int, int] = {}
        """Tombstone → when it must be gone: a round had certainly met it."""

    def last_offsets(self) -> dict[bytes, int]:
        return {key: offset for offset, key, _ in self.records}

    def check(self, stored: list[tuple[int, bytes | None, bytes | None]], now_ms: int) -> None:
        assert [record[0] for record in stored] == sorted({record[0] for record in stored})
        assert set(stored) <= set(self.records)
        offsets = {offset for offset, _, _ in stored}
        values = {offset: value for offset, _, value in self.records}
        for key, offset in self.last_offsets().items():
            if values[offset] is not None:
                assert offset in offsets, f"the last value of {key!r} is gone"
            elif offset not in offsets:
                due_ms = self.due_ms.get(offset)
                assert due_ms is not None, f"the tombstone of {key!r} went without a horizon"
                assert now_ms >= due_ms, f"the tombstone of {key!r} went before its time"


class Run:
    """A log and its model, side by side."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.now_ms = NOW_MS
        self.model = Model()
        self.open()

    def open(self) -> None:
        self.manager = open_manager(self.path, files=QuickFiles(), topic=TOPIC, clock=ManualClock())
        self.log = self.manager.create_log("t", 0, TOPIC_ID, TOPIC)

    def stored(self) -> list[tuple[int, bytes | None, bytes | None]]:
        return [(record.offset, record.key, record.value) for record in records_of(self.log)]

    def step(self, step: Put | Round | Reopen) -> None:
        if isinstance(step, Put):
            first = put(self.log, *step.pairs, codec=step.codec)
            for place, (key, value) in enumerate(step.pairs):
                self.model.records.append((first + place, key, value))
        elif isinstance(step, Round):
            self.round(step)
        else:
            self.manager.close()
            self.open()

    def round(self, step: Round) -> None:
        self.now_ms += step.later_ms
        if step.rolls:
            self.log.roll()
        first_offsets = {offset for offset, _, _ in self.stored()}
        overdue_ms = dict(self.model.overdue_ms)
        compact(self.log, self.now_ms, keys_max=step.keys_max, chunk_bytes=300)
        closed = self.log.active_segment.base_offset
        for offset, _, value in self.model.records:
            if value is None and offset in first_offsets and offset < closed:
                self.model.due_ms.setdefault(offset, self.now_ms + RETENTION_MS)
                if offset < (self.log.clean_offset or 0):
                    self.model.overdue_ms.setdefault(offset, self.now_ms + RETENTION_MS)
        offsets = {offset for offset, _, _ in self.stored()}
        for offset, due_ms in overdue_ms.items():
            assert offset not in offsets or self.now_ms < due_ms, "a tombstone outlived its time"
        assert {offset for offset in first_offsets if offset >= closed} <= offsets


@settings(max_examples=120)
@given(steps=STEPS)
def test_a_reader_finds_the_last_value_of_every_key(steps: list[Put | Round | Reopen]) -> None:
    with tempfile.TemporaryDirectory() as path:
        run = Run(str(Path(path, "data")))
        for step in steps:
            run.step(step)
            run.model.check(run.stored(), run.now_ms)
        run.log.roll()
        while (run.log.clean_offset or 0) < run.log.log_end_offset:
            compact(run.log, run.now_ms)
        run.model.check(run.stored(), run.now_ms)
        last = set(run.model.last_offsets().values())
        assert {offset for offset, _, _ in run.stored()} <= last, (
            "a value that was replaced is left"
        )
        abandon(run.manager)
