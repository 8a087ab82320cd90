"""Three minibrokers whose listeners become secure one broker at a time, and the load meanwhile.

`SecuredBrokers` are processes on one ZooKeeper, each with three ports: PLAINTEXT, SSL, SASL_SSL. A
stage says which of them are open, and which one carries requests between brokers. `Load` are
idempotent producers with acks=all; `check` compares what was acknowledged with what is there.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import confluent_kafka
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from tests.compat_cluster.three_brokers import IDS, SETTINGS
from tests.support.broker import Minibroker
from tests.support.processes import free_port
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.compat_cluster.tree import ClusterTree

WAIT_S: Final = 120.0
READ_S: Final = 0.2
LISTENERS: Final = ("PLAINTEXT", "SSL", "SASL_SSL")
MECHANISM: Final = "SCRAM-SHA-512"
TOPIC: Final = "secured"
PARTITIONS: Final = 6


class Stage(NamedTuple):
    """The listeners of a broker."""

    listener_names: tuple[str, ...]
    between_brokers: str


class Login(NamedTuple):
    """A user and its password."""

    name: str
    password: str


def jaas_line(login: Login) -> str:
    """Return the line with which a broker logs in at others."""
    return (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        f' username="{login.name}" password="{login.password}";'
    )


class SecuredBrokers:
    """Brokers 0, 1 and 2. The methods are called by one thread."""

    def __init__(
        self, directory: Path, connect: str, tree: ClusterTree, stores: Mapping[str, str]
    ) -> None:
        """`stores`: settings of the key store and the trust store of all brokers."""
        self.tree = tree
        self.ports = [{name: free_port() for name in LISTENERS} for _ in IDS]
        self.stores = dict(stores)
        self.login = Login("broker", "broker-secret")
        """The user by which brokers that are started from now on log in at others."""
        self.restarts = 0
        self._brokers = [
            Minibroker(
                directory / f"data-{broker_id}",
                directory / f"broker-{broker_id}.log",
                zookeeper=connect,
                listen=f"127.0.0.1:{self.ports[broker_id]['PLAINTEXT']}",
            )
            for broker_id in IDS
        ]

    def start(self, n: int, stage: Stage) -> None:
        """Start a broker with these listeners; it is registered."""
        broker, ports = self._brokers[n], self.ports[n]
        first = stage.listener_names[0]
        broker.listen = f"127.0.0.1:{ports[first]}"
        broker.settings = {
            **SETTINGS,
            **self.stores,
            "broker.id": str(n),
            "min.insync.replicas": "2",
            "zookeeper.session.timeout.ms": "18000",
            "listeners": ",".join(
                f"{name}://127.0.0.1:{ports[name]}" for name in stage.listener_names
            ),
            "inter.broker.listener.name": stage.between_brokers,
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": jaas_line(self.login),
        }
        broker.start()
        wait_until(lambda: n in self.tree.brokers(), f"broker {n} is registered", WAIT_S)

    def move(self, stage: Stage) -> None:
        """Restart one broker after the other with these listeners; all are in sync in between."""
        for n in IDS:
            self._brokers[n].stop()
            wait_until(lambda n=n: n not in self.tree.brokers(), f"broker {n} is gone", WAIT_S)  # type: ignore[misc]
            self.start(n, stage)
            self.restarts += 1
            self.wait_until_in_sync()

    def wait_until_in_sync(self) -> None:
        """Wait until each partition has all its replicas in sync."""
        for partition in range(PARTITIONS):

            def is_in_sync(partition: int = partition) -> bool:
                state = self.tree.state(TOPIC, partition)
                return state is not None and set(state["isr"]) == set(IDS)

            wait_until(is_in_sync, f"{TOPIC}-{partition} is in sync", WAIT_S)

    def address(self, listener: str) -> str:
        """Return the addresses of a listener of all brokers."""
        return ",".join(f"127.0.0.1:{ports[listener]}" for ports in self.ports)

    def set_on_each(self, client: Mapping[str, str], key: str, value: str) -> None:
        """Change a setting of each broker while it runs, as kafka-configs does."""
        admin = AdminClient(dict(client))
        for broker_id in IDS:
            entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(
                ConfigResource.Type.BROKER, str(broker_id), incremental_configs=[entry]
            )
            for future in admin.incremental_alter_configs([resource]).values():
                future.result(WAIT_S)

    def log_of(self, n: int) -> str:
        """Return what a broker logged in all its lives."""
        return self._brokers[n].log_path.read_text(errors="replace")

    def kill_all(self) -> None:
        """Kill what runs."""
        for broker in self._brokers:
            broker.kill()


class Load:
    """Producers that count from 0 in every partition; a context manager around their threads."""

    def __init__(self, producers: int, client: Mapping[str, str]) -> None:
        """`client`: settings of the first clients."""
        self._client = dict(client)
        self._generation = 0
        self._progress = threading.Condition()
        self._is_ending = False
        self._generations = [0] * producers
        """Producer → the generation of its settings."""
        self.acknowledged: list[dict[int, dict[int, int]]] = [
            defaultdict(dict) for _ in range(producers)
        ]
        """Producer → partition → its number → offset. The producer's thread writes it."""
        self.errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(producers)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending = True
        for thread in self._threads:
            thread.join(WAIT_S)

    def use(self, client: Mapping[str, str]) -> None:
        """Replace every client by one with these settings; each has had a record acknowledged."""
        self._client = dict(client)
        self._generation += 1
        self.wait(
            lambda: set(self._generations) == {self._generation}, "clients with other settings"
        )
        self.wait_for_more()

    def wait_for_more(self, count: int = 300) -> None:
        """Wait until each producer has had so many more records acknowledged."""
        first_counts = [self._count(number) for number in range(len(self._threads))]
        self.wait(
            lambda: all(
                self._count(number) >= count_before + count
                for number, count_before in enumerate(first_counts)
            ),
            f"{count} more records",
        )

    def wait(self, holds: Any, event: str) -> None:
        """Wait until this holds, asked at each acknowledgement."""
        with self._progress:
            met = self._progress.wait_for(holds, WAIT_S)
        assert met, f"waited {WAIT_S:g} s for {event}; errors: {self.errors[-5:]}"

    def _count(self, number: int) -> int:
        return sum(map(len, list(self.acknowledged[number].values())))

    def total(self) -> int:
        """Return how many records were acknowledged."""
        return sum(self._count(number) for number in range(len(self._threads)))

    def _run(self, number: int) -> None:
        following = [0] * PARTITIONS
        while not self._is_ending:
            generation = self._generation
            producer = confluent_kafka.Producer(
                {
                    **self._client,
                    "enable.idempotence": True,
                    "acks": "all",
                    "linger.ms": 2,
                    "message.timeout.ms": int(WAIT_S * 1000),
                    "reconnect.backoff.max.ms": 500,
                    "log_level": 0,
                    "error_cb": lambda error: self.errors.append(str(error)),
                }
            )
            while not self._is_ending and generation == self._generation:
                for partition in range(PARTITIONS):
                    value = following[partition]
                    following[partition] += 1
                    producer.produce(
                        TOPIC,
                        value.to_bytes(8, "big"),
                        bytes([number]),
                        partition,
                        on_delivery=partial(self._note, number, generation, value),
                    )
                producer.poll(0.01)
                while len(producer) > 500 and not self._is_ending:
                    producer.poll(0.05)
            unsent = producer.flush(WAIT_S)
            if unsent:
                self.errors.append(f"producer {number}: {unsent} records were not acknowledged")

    def _note(self, number: int, generation: int, value: int, error: Any, message: Any) -> None:
        with self._progress:
            if error is not None:
                self.errors.append(f"producer {number}, record {value}: {error}")
            else:
                self.acknowledged[number][message.partition()][value] = message.offset()
                self._generations[number] = generation
            self._progress.notify_all()

    def check(self, client: Mapping[str, str]) -> list[str]:
        """Return what is lost, doubled, out of order, or was not acknowledged and should be."""
        wrong = [error for error in self.errors if error.startswith("producer ")]
        offsets: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        consumer = confluent_kafka.Consumer(
            {**client, "group.id": "check", "enable.auto.commit": False}
        )
        try:
            for partition in range(PARTITIONS):
                at = confluent_kafka.TopicPartition(TOPIC, partition, 0)
                _, end = consumer.get_watermark_offsets(at, WAIT_S)
                consumer.assign([at])
                position, deadline = 0, time.monotonic() + WAIT_S
                while position < end:
                    assert time.monotonic() < deadline, f"{partition} ends at {position} of {end}"
                    for message in consumer.consume(1000, READ_S):
                        assert message.error() is None, message.error()
                        number, value = message.key()[0], int.from_bytes(message.value(), "big")
                        offsets[number, partition].append((value, message.offset()))
                        position = message.offset() + 1
        finally:
            consumer.close()
        for number, partitions in enumerate(self.acknowledged):
            for partition, acknowledged in partitions.items():
                own_offsets = offsets[number, partition]
                values = [value for value, _ in own_offsets]
                place = f"producer {number}, partition {partition}"
                if values != list(range(len(values))):
                    wrong.append(f"{place}: values are not 0 to {len(values) - 1} in order")
                missing = acknowledged.items() - set(own_offsets)
                if missing:
                    wrong.append(f"{place}: acknowledged and not there: {sorted(missing)[:5]}")
        return wrong
