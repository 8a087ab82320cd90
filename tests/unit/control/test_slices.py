"""`/metrics` as Prometheus' own parser reads it; long families in slices."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from minibroker.control import exposition
from minibroker.control.exposition import Exposition

if TYPE_CHECKING:
    import pytest

    from minibroker.testing import Broker
    from tests.unit.control.conftest import Control


def samples(text: bytes | bytearray) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """(Name, labels) → value. Every family comes once."""
    found = list(text_string_to_metric_families(text.decode()))
    names = [family.name for family in found]
    assert len(names) == len(set(names))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in found
        for sample in family.samples
    }


def of(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def test_a_killed_broker_says_that_it_is_down(control: Control) -> None:
    with control.broker.faults.add(broker="killed"):
        found = samples(control.raw("GET", "/metrics")[2])
    assert found[of("minibroker_up")] == 0
    assert not any(name.startswith("kafka_") for name, _ in found)


def test_many_partitions_are_shown_in_slices(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposition, "SLICE_S", 0.0)
    count = 31
    kafka_broker.create_topic("wide", count)

    async def turns(node: object) -> tuple[bytearray, int]:
        taken = 0

        async def count_turns() -> None:
            nonlocal taken
            while True:
                taken += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count_turns())
        text = await Exposition(kafka_broker._node).text()
        counting.cancel()
        return text, taken

    text, taken = kafka_broker.await_node(turns)
    ends = [name for name, _ in samples(text) if name == "kafka_log_log_logendoffset"]
    assert len(ends) == count
    assert taken >= 5 * count  # counted for the cluster, and in four families
