"""The minibrokers on which the suite of a client runs: a process each, on one ZooKeeper."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.support.broker import wait_until_acquainted
from tests.support.configured import ConfiguredMinibroker
from tests.support.peers import KafkaPeer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def brokers_of(
    directory: Path, connect: str, ports: Mapping[int, int], settings: Mapping[int, dict[str, str]]
) -> dict[int, ConfiguredMinibroker]:
    """Return brokers that are not started; `ports` and `settings` by id."""
    brokers = {}
    for broker_id, port in ports.items():
        peer = KafkaPeer(
            "3.9.1",
            directory / f"broker-{broker_id}",
            zookeeper=connect,
            settings={"broker.id": str(broker_id), **settings[broker_id]},
            port=port,
            common={},
        )
        brokers[broker_id] = ConfiguredMinibroker(peer, directory / f"broker-{broker_id}.log")
    return brokers


def start_all(brokers: Mapping[int, ConfiguredMinibroker]) -> None:
    """Start all of them at once; each knows the others."""
    with ThreadPoolExecutor(len(brokers)) as threads:
        list(threads.map(lambda broker: broker.start(), brokers.values()))
    wait_until_acquainted(list(brokers.values()))
