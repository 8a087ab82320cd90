"""A cluster of three minibrokers becomes secure under load, as Kafka's documentation says it.

PLAINTEXT → SSL → SASL_SSL, one broker at a time: a listener is added, requests between brokers move
to it, clients follow, the old listener is closed. Then credentials and certificates are replaced.
Idempotent producers with acks=all write all the while. Nothing is lost, doubled or out of order.

`make secure-move` runs it; other runs leave it out (`conftest.py`).

Source: Kafka's documentation, "Incorporating Security Features in a Running Cluster".
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.compat_cluster.securing import (
    MECHANISM,
    PARTITIONS,
    TOPIC,
    WAIT_S,
    Load,
    Login,
    SecuredBrokers,
    Stage,
)
from tests.compat_cluster.three_brokers import IDS
from tests.compat_cluster.tree import ClusterTree
from tests.support.certificates import (
    authority_pem,
    broker_certificate,
    client_certificate,
    pem_for_java,
    write_stores,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.peers import ZooKeeper

OPEN = Stage(("PLAINTEXT",), "PLAINTEXT")
ALICE, CAROL = Login("alice", "alice-secret"), Login("carol", "carol-secret")
STORE_KEYS = "listener.name.sasl_ssl.ssl.{}.location"


@pytest.fixture
def brokers(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[SecuredBrokers]:
    connect = f"{zookeeper.connect}/secure-move"
    stores = write_stores(tmp_path / "stores", broker_certificate(), authority_pem())
    with ClusterTree(connect) as tree:
        secured = SecuredBrokers(tmp_path, connect, tree, stores)
        try:
            for broker_id in IDS:
                secured.start(broker_id, OPEN)
            yield secured
        finally:
            secured.kill_all()


class Clients:
    """The settings of clients, by listener."""

    def __init__(self, brokers: SecuredBrokers, directory: Path) -> None:
        self._brokers = brokers
        self._trusted = directory / "trusted-by-clients.pem"
        self._trusted.write_text(authority_pem(0) + authority_pem(1))
        self._certificate = directory / "client.pem"
        self._certificate.write_text(pem_for_java(client_certificate("alice")))

    def plain(self) -> dict[str, str]:
        return {"bootstrap.servers": self._brokers.address("PLAINTEXT")}

    def tls(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self._brokers.address("SSL"),
            "security.protocol": "SSL",
            "ssl.ca.location": str(self._trusted),
            "ssl.certificate.location": str(self._certificate),
            "ssl.key.location": str(self._certificate),
        }

    def scram(self, login: Login) -> dict[str, str]:
        return {
            "bootstrap.servers": self._brokers.address("SASL_SSL"),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self._trusted),
            "sasl.mechanism": MECHANISM,
            "sasl.username": login.name,
            "sasl.password": login.password,
        }


def set_password(client: Mapping[str, str], login: Login) -> None:
    """Make a user, or give it another password."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsertion = UserScramCredentialUpsertion(login.name, info, login.password.encode())
    alter(client, upsertion)


def alter(client: Mapping[str, str], change: object) -> None:
    admin = AdminClient(dict(client))
    for future in admin.alter_user_scram_credentials([change]).values():
        future.result(WAIT_S)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_cluster_becomes_secure_under_load(brokers: SecuredBrokers, tmp_path: Path) -> None:
    clients = Clients(brokers, tmp_path)
    admin = AdminClient(clients.plain())
    for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, len(IDS))]).values():
        future.result(WAIT_S)
    brokers.wait_until_in_sync()
    with Load(2, clients.plain()) as load:
        load.wait_for_more()
        to_tls(brokers, clients, load)
        to_sasl(brokers, clients, load)
        rotate_credentials(brokers, clients, load)
        rotate_certificates(brokers, clients, load, tmp_path)
    wrong = load.check(clients.scram(CAROL))
    say(f"{load.total():,} records acknowledged, {brokers.restarts} restarts")
    assert not wrong, "\n".join(wrong[:20])
    for broker_id in IDS:
        log = brokers.log_of(broker_id)
        assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:3000]


def to_tls(brokers: SecuredBrokers, clients: Clients, load: Load) -> None:
    """PLAINTEXT → SSL."""
    say("a listener SSL is added")
    brokers.move(Stage(("PLAINTEXT", "SSL"), "PLAINTEXT"))
    say("clients use it")
    load.use(clients.tls())
    say("brokers use it")
    brokers.move(Stage(("PLAINTEXT", "SSL"), "SSL"))
    load.wait_for_more()


def to_sasl(brokers: SecuredBrokers, clients: Clients, load: Load) -> None:
    """SSL → SASL_SSL."""
    say("the users are made, PLAINTEXT is closed, a listener SASL_SSL is added")
    for login in (brokers.login, ALICE):
        set_password(clients.tls(), login)
    brokers.move(Stage(("SSL", "SASL_SSL"), "SSL"))
    say("clients use it")
    load.use(clients.scram(ALICE))
    say("brokers use it")
    brokers.move(Stage(("SSL", "SASL_SSL"), "SASL_SSL"))
    load.wait_for_more()
    say("SSL is closed")
    brokers.move(Stage(("SASL_SSL",), "SASL_SSL"))
    load.wait_for_more()


def rotate_credentials(brokers: SecuredBrokers, clients: Clients, load: Load) -> None:
    """Another password for alice, another user for clients, another one for brokers."""
    say("alice gets another password; clients that are logged in stay")
    changed = Login(ALICE.name, "another-secret")
    set_password(clients.scram(ALICE), changed)
    load.wait_for_more()
    load.use(clients.scram(changed))
    say("clients become carol, and alice is removed")
    set_password(clients.scram(changed), CAROL)
    load.use(clients.scram(CAROL))
    alter(
        clients.scram(CAROL), UserScramCredentialDeletion(ALICE.name, ScramMechanism.SCRAM_SHA_512)
    )
    say("brokers become another user, and the old one is removed")
    old_login = brokers.login
    brokers.login = Login("broker-2", "broker-2-secret")
    set_password(clients.scram(CAROL), brokers.login)
    brokers.move(Stage(("SASL_SSL",), "SASL_SSL"))
    alter(
        clients.scram(CAROL),
        UserScramCredentialDeletion(old_login.name, ScramMechanism.SCRAM_SHA_512),
    )
    load.wait_for_more()


def rotate_certificates(
    brokers: SecuredBrokers, clients: Clients, load: Load, directory: Path
) -> None:
    """All brokers trust both authorities, then show other certificates, then trust only one."""
    both = authority_pem(0) + authority_pem(1)
    client = clients.scram(CAROL)
    for store, number, trusted in (
        ("brokers trust another authority, too", 0, both),
        ("brokers show certificates of it", 1, both),
        ("brokers trust it alone", 1, authority_pem(1)),
    ):
        say(store)
        stores = write_stores(
            directory / store.replace(" ", "-"), broker_certificate(number), trusted
        )
        for kind in ("truststore", "keystore"):
            key = STORE_KEYS.format(kind)
            brokers.set_on_each(client, key, stores[f"ssl.{kind}.location"])
        load.use(client)
        brokers.stores = stores
    say("one broker after the other is started again")
    brokers.move(Stage(("SASL_SSL",), "SASL_SSL"))
    load.use(client)
