"""The log against a list: append, roll, flush, truncate, delete from the start, reopen, kill, power
cut.

The model is a plain list of values and the number of them that must survive a power cut. After
every step the log answers every offset, the ends and a lookup by time as the list does.
"""

from __future__ import annotations

import shutil
import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from minibroker.storage.log_directory import LogDirectory
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    abandon,
    batch,
    config,
    open_manager,
    records_of,
)

SETTINGS = config(segment_bytes=1200, index_interval_bytes=200)
CODECS = st.sampled_from(["none", "gzip", "zstd"])


class LogMachine(RuleBasedStateMachine):
    """One partition; `values` and `times` are what it must hold from `start` on."""

    @initialize()
    def begin(self) -> None:
        self.path = tempfile.mkdtemp()
        self.files = FaultyFiles(self.path)
        self.values: list[bytes] = []
        self.times: list[int] = []
        self.start = 0
        self.durable = 0
        self.sequence = 0
        self.epoch = 0
        self._open()

    def _open(self) -> None:
        self.manager = open_manager(
            self.path, files=self.files, topic=SETTINGS, clock=ManualClock()
        )
        self.log = self.manager.create_log("t", 0, TOPIC_ID, SETTINGS)

    @rule(
        values=st.lists(st.binary(max_size=150), min_size=1, max_size=4),
        delay=st.integers(-500, 500),
        codec=CODECS,
        idempotent=st.booleans(),
        written=st.booleans(),
    )
    def append(
        self, values: list[bytes], delay: int, codec: str, idempotent: bool, written: bool
    ) -> None:
        times = [NOW_MS + 100 * len(self.values) + delay - part for part in range(len(values))]
        given = {"producer_id": 1, "producer_epoch": 0, "sequence": self.sequence}
        info = self.log.append(
            batch(*values, timestamps=times, codec=codec, **(given if idempotent else {})),
            self.epoch,
            NOW_MS,
        )
        assert info.first_offset == len(self.values)
        assert not info.duplicate
        self.values += values
        self.times += times
        if idempotent:
            self.sequence += len(values)
        if written:
            self.log.write_staged()

    @rule()
    def begin_epoch(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.durable = len(self.values)

    @rule()
    def checkpoint(self) -> None:
        self.manager.checkpoint_now()

    @precondition(lambda self: len(self.values) > self.start)
    @rule(data=st.data())
    def delete_from_the_start(self, data: st.DataObject) -> None:
        self.log.write_staged()
        self.start = data.draw(st.integers(self.start, len(self.values)))
        self.log.advance_log_start(self.start)
        self.manager.checkpoint_now()

    @precondition(lambda self: len(self.values) > self.start)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """At the start of a batch, as replicas are truncated; producers begin anew afterwards."""
        self.log.write_staged()
        offset = data.draw(st.integers(self.start, len(self.values) - 1))
        segment = self.log.segments.floor(offset)
        assert segment is not None
        found = segment.find_batch(offset)
        assert found is not None
        base = next(segment.headers(found[0]))[1].base_offset
        if base < self.start:
            return
        assert self.manager.truncate("t", 0, base)
        self.log.flush()
        self.values, self.times = self.values[:base], self.times[:base]
        self.durable = base
        entry = self.log.producers().get(1)
        self.sequence = 0 if entry is None else entry.last_sequence + 1

    @rule()
    def stop_and_start(self) -> None:
        self.manager.close()
        self.durable = len(self.values)
        self._open()

    @rule()
    def kill(self) -> None:
        self.log.write_staged()
        abandon(self.manager)
        self._open()

    @rule(kept=st.floats(0, 1))
    def cut_the_power(self, kept: float) -> None:
        self.log.write_staged()
        abandon(self.manager)
        self.files.power_cut(lambda unsynced: int(unsynced * kept))
        self._open()
        end = self.log.log_end_offset
        assert end >= self.durable
        self.values, self.times = self.values[:end], self.times[:end]
        self.durable = end
        self.log.flush()
        entry = self.log.producers().get(1)
        self.sequence = 0 if entry is None else entry.last_sequence + 1

    @invariant()
    def the_log_is_the_list(self) -> None:
        log = self.log
        log.write_staged()
        assert (log.log_start_offset, log.log_end_offset) == (self.start, len(self.values))
        assert log.log_start_offset <= log.recovery_point or log.log_end_offset == self.start
        found = records_of(log)
        assert [one.offset for one in found] == list(range(self.start, len(self.values)))
        assert [one.value for one in found] == self.values[self.start :]
        assert [one.timestamp for one in found] == self.times[self.start :]
        target = NOW_MS + 50 * len(self.values)
        expected = next(
            (n for n in range(self.start, len(self.times)) if self.times[n] >= target), None
        )
        hit = log.offset_for_timestamp(target)
        assert (None if hit is None else hit.offset) == expected

    def teardown(self) -> None:
        if hasattr(self, "manager"):
            abandon(self.manager)
            LogDirectory.held.discard(self.path)
            self.files.forget_pins()
            shutil.rmtree(self.path, ignore_errors=True)


LogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestLog = LogMachine.TestCase
