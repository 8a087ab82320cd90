"""Apache Kafkas, or minibrokers, that start empty for one run of a client's suite, and go with it.

`Ground` says which Kafkas, `Way` how the suite comes to them: directly, or through a proxy for each
of their listeners.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from minibroker.testing import Proxy
from tests.support import java
from tests.support.certificates import (
    authority_pem,
    broker_certificate,
    client_certificate,
    pem_of,
    write_stores,
)
from tests.support.configured import ConfiguredMinibroker
from tests.support.peers import ONE_NODE, KafkaPeer, ZooKeeper
from tests.support.processes import free_port
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

JARS: Final = {"3.9.1": java.KAFKA_39, "4.3.1": java.TOOLS_43, "4.4.0": java.KAFKA_44}
"""Release → its jars; those of the tools of 4.3.1 have the broker."""
USER, PASSWORD = "alice", "secret"
MECHANISM: Final = "SCRAM-SHA-256"
START_SECONDS: Final = 60.0

_MODULES: Final = "org.apache.kafka.common.security"
SETTINGS: Final = {
    **ONE_NODE,
    "num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "5",
    "inter.broker.listener.name": "PLAINTEXT",
}
OF_ONE: Final = {
    # Without ACLs everybody may do everything, as in aiokafka's container.
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:admin;User:ANONYMOUS",
    "sasl.enabled.mechanisms": f"PLAIN,{MECHANISM},OAUTHBEARER",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{_MODULES}.plain.PlainLoginModule required user_admin="admin" user_test="test"'
        ' user_test2="test2";'
    ),
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
        f"{_MODULES}.scram.ScramLoginModule required;"
    ),
    "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
        f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;"
    ),
}
AUTHORIZERS: Final = {
    True: "kafka.security.authorizer.AclAuthorizer",
    False: "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
"""The authorizer of a Kafka with ZooKeeper, and of one without."""
OF_THREE: Final = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "zookeeper.session.timeout.ms": "60000",
    "listener.name.sasl_ssl.sasl.enabled.mechanisms": MECHANISM,
    "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
        f"{_MODULES}.scram.ScramLoginModule required;"
    ),
}


class Ground(NamedTuple):
    """A kind of Kafkas, and the place where logins end."""

    title: str
    release: str
    brokers: int = 1
    """One has listeners for the suites' own tests of logins, too. Three have a secured one only."""
    login_at_proxy: bool = False
    """The suite has no login: the proxy has one at Kafka, directly there is none."""
    is_minibroker: bool = False
    """The brokers are minibrokers with the settings of that Kafka."""

    @property
    def listeners(self) -> tuple[str, ...]:
        """Return the names of the listeners for the suite; the first is for most tests."""
        if self.login_at_proxy:
            return ("PLAINTEXT", "SASL_SSL")
        return ("PLAINTEXT", "SSL", "SASL_PLAINTEXT") if self.brokers == 1 else ("SASL_SSL",)

    @property
    def has_tls(self) -> bool:
        """Return whether all clients of Kafka speak TLS."""
        return self.listeners == ("SASL_SSL",)

    @property
    def has_zookeeper(self) -> bool:
        """Return whether the release runs with ZooKeeper here."""
        return self.release.startswith("3.")


GROUNDS: Final = {
    "3.9.1": Ground("3.9.1", "3.9.1"),
    "4.3.1": Ground("4.3.1", "4.3.1"),
    "4.4.0": Ground("4.4.0", "4.4.0"),
    "secured": Ground("3 x 3.9.1, SASL_SSL", "3.9.1", 3),
    "login": Ground("3 x 3.9.1, SASL_SSL at the proxy", "3.9.1", 3, login_at_proxy=True),
    "minibrokers": Ground("3 minibrokers, SASL_SSL", "3.9.1", 3, is_minibroker=True),
}


class Way(NamedTuple):
    """How a suite comes to Kafka."""

    ground: Ground
    addresses: Mapping[str, str]
    """Name of a listener → HOST:PORT, several with commas."""
    certificates: Path
    """The directory with `ca.crt`, `client.crt` and `client.key`."""

    @property
    def is_secured(self) -> bool:
        """Return whether all clients log in and speak TLS."""
        return "SASL_SSL" in self.addresses

    @property
    def address(self) -> str:
        """Return the address for most tests."""
        return next(iter(self.addresses.values()))


class Kafkas:
    """Starts Kafkas on free ports, below one directory and on one ZooKeeper.

    A context manager: its exit ends ZooKeeper.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._zookeeper = ZooKeeper(directory / "zookeeper")
        self._numbers = itertools.count()
        self._certificates = directory / "certificates"
        self._certificates.mkdir()
        client = client_certificate()
        files = {
            "ca.crt": authority_pem(),
            "client.crt": b"".join(part.bytes() for part in client.cert_chain_pems).decode(),
            "client.key": client.private_key_pem.bytes().decode(),
            "proxy.pem": pem_of(broker_certificate()),
        }
        for name, text in files.items():
            (self._certificates / name).write_text(text)
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
        with self._running(ground) as addresses:
            if ground.login_at_proxy:
                del addresses["SASL_SSL"]
            yield Way(ground, addresses, self._certificates)

    @contextmanager
    def through_proxy(self, ground: Ground) -> Iterator[Way]:
        """Start new Kafkas and their proxies; yield the way through these."""
        with self._running(ground) as addresses, ExitStack() as stack:
            if ground.login_at_proxy:
                del addresses["PLAINTEXT"]
            proxies = {
                "PLAINTEXT" if ground.login_at_proxy else listener: stack.enter_context(
                    self._proxy(listener, address, login=ground.login_at_proxy)
                )
                for listener, address in addresses.items()
            }
            fronts = {listener: proxy.bootstrap for listener, proxy in proxies.items()}
            yield Way(ground, fronts, self._certificates)
            for proxy in proxies.values():
                self.events += proxy.events

    def _proxy(self, listener: str, address: str, *, login: bool) -> Proxy:
        """Return a proxy before a listener. Logins of clients go on to Kafka, TLS ends and begins.

        `login`: the proxy has a login, and its clients speak plain text.
        """
        if "SSL" not in listener:
            return Proxy(address)
        tls = {
            "ssl.truststore.location": str(self._certificates / "ca.crt"),
            "ssl.truststore.type": "PEM",
        }
        if not login:
            certificate = self._certificates / "proxy.pem"
            return Proxy(address, {**tls, "security.protocol": "SSL"}, tls=certificate)
        user = {
            "security.protocol": "SASL_SSL",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "sasl.mechanism": MECHANISM,
        }
        return Proxy(address, {**tls, **user})

    @contextmanager
    def _running(self, ground: Ground) -> Iterator[dict[str, str]]:
        """Start new Kafkas; yield name of a listener → its addresses."""
        number = next(self._numbers)
        addresses: dict[str, list[str]] = {listener: [] for listener in ground.listeners}
        peers = [
            self._peer(ground, number, broker_id, addresses) for broker_id in range(ground.brokers)
        ]
        brokers: list[KafkaPeer] | list[ConfiguredMinibroker] = peers
        if ground.is_minibroker:
            brokers = [
                ConfiguredMinibroker(peer, peer.directory.with_suffix(".log")) for peer in peers
            ]
        with ExitStack() as stack, ThreadPoolExecutor(len(peers)) as threads:
            for broker in brokers:
                stack.callback(broker.kill)
            list(threads.map(lambda broker: broker.start(), brokers))
            _wait_until_whole(peers)
            add_user(peers[0].address)
            load_coordinators(peers[0])
            yield {listener: ",".join(parts) for listener, parts in addresses.items()}

    def _peer(
        self, ground: Ground, number: int, broker_id: int, addresses: dict[str, list[str]]
    ) -> KafkaPeer:
        """Return a broker that is not started; add those of its listeners to `addresses`."""
        directory = self._directory / f"kafka-{number}-{broker_id}"
        zookeeper = f"{self._zookeeper.connect}/suite-{number}" if ground.has_zookeeper else None
        peer = KafkaPeer(ground.release, directory, zookeeper=zookeeper, settings=SETTINGS)
        peer.jars = JARS[ground.release]
        ports = {"PLAINTEXT": peer.port}
        for listener in ground.listeners:
            address = f"127.0.0.1:{ports.setdefault(listener, free_port())}"
            addresses[listener].append(address)
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
        peer.settings |= {
            **write_stores(directory / "stores", broker_certificate(), authority_pem()),
            "broker.id": str(broker_id),
            "listeners": listeners,
            "advertised.listeners": listeners,
            **(OF_THREE if ground.brokers > 1 else OF_ONE),
        }
        if ground.brokers == 1:
            peer.settings["authorizer.class.name"] = AUTHORIZERS[ground.has_zookeeper]
        if not ground.has_zookeeper:
            protocols = {"CONTROLLER": "PLAINTEXT", **{name: name for name in ports}}
            peer.settings |= {
                "listeners": f"{listeners},CONTROLLER://127.0.0.1:{peer.controller_port}",
                "listener.security.protocol.map": ",".join(
                    f"{name}:{protocol}" for name, protocol in protocols.items()
                ),
            }
        return peer


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


def client_of(address: str) -> dict[str, Any]:
    """Return the settings of a client that says nothing while it tries again."""
    return {"bootstrap.servers": address, "log_level": 2}


def load_coordinators(peer: KafkaPeer) -> None:
    """Wait until all coordinators work: a new Kafka makes their topics when it is asked for them.

    Some tests of the suites take a coordinator that is not there yet for a failure. The names end
    in successive numbers, so that there is one for each partition of the internal topics.
    """
    client = client_of(peer.address)
    names = [f"suite-{number}" for number in range(int(ONE_NODE["offsets.topic.num.partitions"]))]
    for name in names:
        consumer = Consumer({**client, "group.id": name})
        wait_until(
            lambda consumer=consumer: _commits(consumer),  # type: ignore[misc]
            f"the group {name} commits",
            START_SECONDS,
        )
        consumer.close()
        Producer({**client, "transactional.id": name}).init_transactions(START_SECONDS)
    admin = AdminClient(client)
    for future in admin.delete_consumer_groups(names).values():
        future.result(START_SECONDS)
    if peer.zookeeper is None:
        _find_share_coordinators(peer, len(names))


def _commits(consumer: Consumer) -> bool:
    """Return whether a commit succeeds; a broker may not know the new topic yet."""
    offset = TopicPartition("__consumer_offsets", 0, 0)
    try:
        consumer.commit(offsets=[offset], asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return False
    return True


def _find_share_coordinators(peer: KafkaPeer, count: int) -> None:
    """Ask for the coordinators of share groups until each is there."""
    keys = [f"suite:{'A' * 22}:{partition}" for partition in range(count)]
    with WireClient(peer.host, peer.port) as client:
        wait_until(
            lambda: all(
                coordinator["error_code"] == 0
                for coordinator in client.call(
                    "find_coordinator", 6, key_type=2, coordinator_keys=keys
                )["coordinators"]
            ),
            f"{peer.address} has coordinators of share groups",
            START_SECONDS,
        )


def add_user(address: str) -> None:
    """Let the user log in at each broker."""
    admin = AdminClient(client_of(address))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    user = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
    for future in admin.alter_user_scram_credentials([user]).values():
        future.result(START_SECONDS)
