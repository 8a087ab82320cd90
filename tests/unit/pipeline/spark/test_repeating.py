"""A call that is repeated while a block runs."""

from __future__ import annotations

import threading

from minibroker.pipeline.spark.repeating import repeated


def test_the_calls_end_with_the_block() -> None:
    called = threading.Semaphore(0)
    before = threading.active_count()
    with repeated(0.001, called.release):
        for _ in range(3):
            assert called.acquire(timeout=60)
    assert threading.active_count() == before


def test_a_block_may_end_before_the_first_call() -> None:
    called = threading.Event()
    with repeated(3_600.0, called.set):
        pass
    assert not called.is_set()
