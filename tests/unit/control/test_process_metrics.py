"""Metrics of the process, and how often they are gathered."""

from __future__ import annotations

import asyncio
import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from minibroker.control import process_metrics
from minibroker.control.process_metrics import FRESH_S, ProcessMetrics


async def test_the_process_is_looked_at_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(process_metrics, "monotonic", lambda: now_s)
    looked = 0
    generate = process_metrics.generate_latest

    def counted(registry: object) -> bytes:
        nonlocal looked
        looked += 1
        return generate(registry)

    monkeypatch.setattr(process_metrics, "generate_latest", counted)
    metrics = ProcessMetrics()
    first = await metrics.text()
    now_s += FRESH_S - 0.001
    assert await metrics.text() == first
    assert looked == 1
    now_s += 0.001
    await metrics.text()
    assert looked == 2
    names = {family.name for family in text_string_to_metric_families(first)}
    assert {"process_cpu_seconds", "process_open_fds", "process_resident_memory_bytes"} <= names


async def test_the_loop_goes_on_while_the_kernel_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    has_gone_on, threads = threading.Event(), []

    def slow(_: object) -> bytes:
        threads.append(threading.current_thread())
        assert has_gone_on.wait(60)
        return b"text"

    monkeypatch.setattr(process_metrics, "generate_latest", slow)
    metrics = ProcessMetrics()
    asked_twice = asyncio.gather(metrics.text(), metrics.text())
    await asyncio.sleep(0)
    has_gone_on.set()
    assert await asked_twice == ["text", "text"]
    assert len(threads) == 1
    assert threads != [threading.current_thread()]
