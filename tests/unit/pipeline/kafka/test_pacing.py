"""A limit on bytes in a second, by a clock that the test moves."""

from __future__ import annotations

import pyarrow as pa
import pytest

from minibroker.pipeline.kafka import pacing


class ToldClock:
    """Time that passes only where somebody waits or works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 50.0
        monkeypatch.setattr(pacing.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(pacing.threading, "Event", lambda: self)

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds


def batch(*values: bytes | None) -> pa.RecordBatch:
    columns = {"key": pa.array([None] * len(values), pa.binary()), "value": pa.array(values)}
    return pa.RecordBatch.from_pydict({**columns, "topic": ["t" * 1000] * len(values)})


def test_bytes_are_of_keys_and_values_alone() -> None:
    assert 1_500 <= pacing.record_bytes(batch(b"x" * 1_000, b"y" * 500)) < 1_600


def test_each_batch_takes_its_time_and_the_last_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ToldClock(monkeypatch)
    whole = batch(b"x" * 10_000)
    size = pacing.record_bytes(whole)

    list(pacing.paced([whole, whole, whole], size / 2))

    assert clock.now_s == pytest.approx(50 + 6)


def test_work_between_batches_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ToldClock(monkeypatch)
    whole = batch(b"x" * 10_000)

    for _ in pacing.paced([whole, whole], pacing.record_bytes(whole)):
        clock.now_s += 5.0

    assert clock.now_s == pytest.approx(50 + 10)


def test_without_a_limit_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ToldClock(monkeypatch)

    assert len(list(pacing.paced([batch(b"x")] * 3, 0.0))) == 3
    assert clock.now_s == 50.0


def test_tasks_that_run_at_the_same_time_share_a_rate() -> None:
    assert pacing.share_of_task(None, 4, 2) == 0
    assert pacing.share_of_task(100, 4, 2) == 50
    assert pacing.share_of_task(100, 1, 2) == 100
