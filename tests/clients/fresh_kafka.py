"""Apache Kafkas that start empty for one run of a client's suite, and go with it.

`Ground` says which Kafkas, `Way` how the suite comes to them: directly, or through a proxy.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from minibroker.testing import Proxy
from tests.support import java
from tests.support.certificates import authority_pem, broker_certificate, pem_of, write_stores
from tests.support.peers import ONE_NODE, KafkaPeer, ZooKeeper
from tests.support.processes import free_port
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JARS: Final = {"3.9.1": java.KAFKA_39, "4.3.1": java.TOOLS_43, "4.4.0": java.KAFKA_44}
"""Release → its jars; those of the tools of 4.3.1 have the broker."""
USER, PASSWORD = "alice", "secret"
MECHANISM: Final = "SCRAM-SHA-256"
START_SECONDS: Final = 60.0
SETTINGS: Final = {
    **ONE_NODE,
    "num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "5",
}
OF_THREE: Final = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "zookeeper.session.timeout.ms": "60000",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
    "listener.name.sasl_ssl.sasl.enabled.mechanisms": MECHANISM,
    "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "inter.broker.listener.name": "PLAINTEXT",
}


class Ground(NamedTuple):
    """A kind of Kafkas, and the place where logins end."""

    title: str
    release: str
    brokers: int = 1
    secured: bool = False
    """Clients come with TLS and a password, to Kafka or to the proxy."""
    login_at_proxy: bool = False
    """Before the proxy the suite has no login: the proxy has one at Kafka."""


GROUNDS: Final = {
    "3.9.1": Ground("3.9.1", "3.9.1"),
    "4.3.1": Ground("4.3.1", "4.3.1"),
    "4.4.0": Ground("4.4.0", "4.4.0"),
    "secured": Ground("3 x 3.9.1, SASL_SSL", "3.9.1", 3, secured=True),
    "login": Ground(
        "3 x 3.9.1, SASL_SSL at the proxy", "3.9.1", 3, secured=True, login_at_proxy=True
    ),
}


class Way(NamedTuple):
    """How a suite comes to Kafka."""

    address: str
    """HOST:PORT, several with commas."""
    ground: Ground
    authority: Path | None
    """The CA of the certificates that clients see; None: neither TLS nor login."""


class Kafkas:
    """Starts Kafkas on free ports, below one directory and on one ZooKeeper.

    A context manager: its exit ends ZooKeeper.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._zookeeper = ZooKeeper(directory / "zookeeper")
        self._numbers = itertools.count()
        self._authority = directory / "ca.pem"
        self._authority.write_text(authority_pem())
        self._certificate = directory / "proxy.pem"
        self._certificate.write_text(pem_of(broker_certificate()))
        self.events: list[str] = []
        """Sentences of the proxies so far about what is unusual."""

    def __enter__(self) -> Kafkas:
        self._zookeeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._zookeeper.stop()

    @contextmanager
    def directly(self, ground: Ground) -> Iterator[Way]:
        """Start new Kafkas; yield the way to them."""
        with self._running(ground) as address:
            yield Way(address, ground, self._authority if ground.secured else None)

    @contextmanager
    def through_proxy(self, ground: Ground) -> Iterator[Way]:
        """Start new Kafkas and a proxy; yield the way through it."""
        settings: dict[str, str] = {}
        if ground.secured:
            settings = {
                "security.protocol": "SASL_SSL" if ground.login_at_proxy else "SSL",
                "ssl.truststore.location": str(self._authority),
                "ssl.truststore.type": "PEM",
            }
        if ground.login_at_proxy:
            login = {"username": USER, "password": PASSWORD, "mechanism": MECHANISM}
            settings |= {f"sasl.{key}": value for key, value in login.items()}
        ends_tls = ground.secured and not ground.login_at_proxy
        certificate = self._certificate if ends_tls else None
        with (
            self._running(ground) as address,
            Proxy(address, settings, tls=certificate) as proxy,
        ):
            yield Way(proxy.bootstrap, ground, self._authority if ends_tls else None)
            self.events += proxy.events

    @contextmanager
    def _running(self, ground: Ground) -> Iterator[str]:
        number = next(self._numbers)
        peers = [self._peer(ground, number, broker_id) for broker_id in range(ground.brokers)]
        with ExitStack() as stack, ThreadPoolExecutor(len(peers)) as threads:
            for peer in peers:
                stack.callback(peer.kill)
            list(threads.map(KafkaPeer.start, peers))
            _wait_until_whole(peers)
            if not ground.secured:
                yield peers[0].address
                return
            _add_user(peers)
            yield ",".join(f"127.0.0.1:{_port(peer)}" for peer in peers)

    def _peer(self, ground: Ground, number: int, broker_id: int) -> KafkaPeer:
        is_39 = ground.release == "3.9.1"
        port = free_port()
        settings = SETTINGS
        directory = self._directory / f"kafka-{number}-{broker_id}"
        if ground.brokers > 1:
            listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{free_port()}"
            stores = write_stores(directory / "stores", broker_certificate(), authority_pem())
            settings = {
                **SETTINGS,
                **OF_THREE,
                **stores,
                "broker.id": str(broker_id),
                "listeners": listeners,
                "advertised.listeners": listeners,
            }
        peer = KafkaPeer(
            ground.release,
            directory,
            zookeeper=f"{self._zookeeper.connect}/suite-{number}" if is_39 else None,
            settings=settings,
            port=port,
        )
        peer.jars = JARS[ground.release]
        return peer


def _port(peer: KafkaPeer) -> str:
    """Return the port of the listener with SASL_SSL."""
    return peer.settings["listeners"].rpartition(":")[2]


def _wait_until_whole(peers: list[KafkaPeer]) -> None:
    """Wait until each broker knows all."""
    for peer in peers:
        with WireClient(peer.host, peer.port) as client:
            wait_until(
                lambda client=client: (  # type: ignore[misc]
                    len(client.call("metadata", 1, topics=[])["brokers"]) == len(peers)
                ),
                f"{peer.address} knows {len(peers)} brokers",
                START_SECONDS,
            )


def _add_user(peers: list[KafkaPeer]) -> None:
    """Let the user log in at each broker."""
    admin = AdminClient({"bootstrap.servers": peers[0].address})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    user = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
    for future in admin.alter_user_scram_credentials([user]).values():
        future.result(START_SECONDS)
