"""`make pictures`: the conversations in docs/how-to/pictures, recorded from real clients.

    python -m tests.support.pictures

librdkafka speaks with a broker through `minibroker proxy --record`; `minibroker trace --svg` draws
the recording.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, KafkaException, Producer

from minibroker.testing import Broker
from tests.support.readme import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PICTURES: Final = ROOT / "docs" / "how-to" / "pictures"
GROUP_APIS: Final = "JoinGroup,SyncGroup,Heartbeat,LeaveGroup"
TRANSACTION_APIS: Final = "InitProducerId,AddPartitionsToTxn,Produce,EndTxn"
TIMEOUT_S: Final = 60.0


@contextmanager
def proxy(to: str, record: Path) -> Iterator[str]:
    """Run a proxy that records; give its address."""
    words = ["proxy", "--to", to, "--listen", "127.0.0.1:0", "--record", str(record)]
    with subprocess.Popen(
        [sys.executable, "-m", "minibroker", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().partition(" listening on ")[2].partition(",")[0]
        finally:
            process.terminate()


class Member:
    """A consumer in a group, polled by a thread of its own."""

    def __init__(self, address: str, client_id: str) -> None:
        self.assigned = threading.Event()
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "client.id": client_id,
                "group.id": "billing",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 300,
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe(["orders"], on_assign=lambda *_: self.assigned.set())
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._consumer.poll(0.1)
        self._consumer.close()

    def leave(self) -> None:
        """Leave the group."""
        self._stopping.set()
        self._thread.join(TIMEOUT_S)


def rebalance(broker: Broker, address: str) -> None:
    """Let a second consumer join a group, and leave it."""
    first = Member(address, "first")
    broker.wait_for_group("billing", members=1)
    assert first.assigned.wait(TIMEOUT_S)
    first.assigned.clear()
    second = Member(address, "second")
    assert second.assigned.wait(TIMEOUT_S)
    assert first.assigned.wait(TIMEOUT_S)
    second.leave()
    first.leave()


def fenced_producer(_: Broker, address: str) -> None:
    """Let a producer write while another one has taken its transactional id."""

    def producer(client_id: str) -> Producer:
        new_producer = Producer(
            {"bootstrap.servers": address, "client.id": client_id, "transactional.id": "invoices"}
        )
        new_producer.init_transactions(TIMEOUT_S)
        new_producer.begin_transaction()
        return new_producer

    old = producer("old")
    old.produce("orders", b"1")
    old.flush(TIMEOUT_S)
    new = producer("new")
    new.produce("orders", b"2")
    new.commit_transaction(TIMEOUT_S)
    old.produce("orders", b"3")
    try:
        old.commit_transaction(TIMEOUT_S)
    except KafkaException as error:
        sys.stdout.write(f"the old producer: {error.args[0].str()}\n")


def draw(name: str, apis: str, talk: Callable[[Broker, str], Any]) -> Path:
    """Record a conversation and draw it; return the picture."""
    target = PICTURES / f"{name}.svg"
    with tempfile.TemporaryDirectory() as directory, Broker() as broker:
        broker.create_topic("orders", partitions=3)
        record = Path(directory) / f"{name}.jsonl"
        with proxy(broker.bootstrap, record) as address:
            talk(broker, address)
        words = ["trace", "--dialogue", str(record), "--api", apis, "--svg", str(target)]
        subprocess.run([sys.executable, "-m", "minibroker", *words], check=True, timeout=TIMEOUT_S)
    return target


if __name__ == "__main__":
    for picture in (
        draw("rebalance", GROUP_APIS, rebalance),
        draw("fenced-producer", TRANSACTION_APIS, fenced_producer),
    ):
        sys.stdout.write(f"{picture.relative_to(ROOT)}: {picture.stat().st_size} bytes\n")
