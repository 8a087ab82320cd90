"""Apache Kafka 3.9.1 and 4.4.0 with several listeners, one after the other, to be recorded."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tests.support.peers import KafkaPeer, ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Outcome = TypeVar("_Outcome")


def of_both(record: Callable[[KafkaPeer], _Outcome]) -> tuple[_Outcome, _Outcome]:
    """Return what `record` found with 3.9.1 and with 4.4.0; it gets brokers that do not run yet."""
    with tempfile.TemporaryDirectory() as directory:
        zookeeper = ZooKeeper(Path(directory, "zookeeper"))
        zookeeper.start()
        try:
            old = record(KafkaPeer("3.9.1", Path(directory, "39"), zookeeper=zookeeper.connect))
        finally:
            zookeeper.stop()
        return old, record(KafkaPeer("4.4.0", Path(directory, "44")))


def listeners(kafka: KafkaPeer, ports: Mapping[str, int]) -> dict[str, str]:
    """Return the settings by which a Kafka listens at these ports (listener → port)."""
    addresses = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
    inner = [] if kafka.zookeeper else [f"CONTROLLER://127.0.0.1:{kafka.controller_port}"]
    return {
        "listeners": ",".join([*addresses, *inner]),
        "advertised.listeners": ",".join(addresses),
    }
