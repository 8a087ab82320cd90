"""Secured clusters of minibroker and Apache Kafka 3.9.1: one ZooKeeper, one set of ACLs and tokens.

Brokers talk to each other through SASL_SSL, by SCRAM or PLAIN, with AclAuthorizer on. Each kind is
the controller in its turn. ACLs that one broker sets decide on every broker. Delegation tokens that
one kind makes are used, renewed and ended on the other.

`make secure-move` runs it; other runs leave it out (`conftest.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from minibroker.broker.config.authorizers import ACL_AUTHORIZER
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from tests.compat_cluster.securing import Login
from tests.compat_cluster.three_brokers import IDS, SETTINGS, ThreeBrokers
from tests.compat_cluster.tree import WAIT_S, ClusterTree
from tests.support import java
from tests.support.certificates import authority_pem, broker_certificate, write_stores
from tests.support.configured import ConfiguredMinibroker
from tests.support.peers import KafkaPeer
from tests.support.processes import free_port
from tests.support.sasl_login import log_in, log_in_by_token
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.broker import Minibroker
    from tests.support.peers import ZooKeeper

BROKER, ADMIN = Login("broker", "broker-secret"), Login("admin", "admin-secret")
ALICE = Login("alice", "alice-secret")
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
BETWEEN, CLIENTS = "SASL_SSL", "SASL_PLAINTEXT"
FORBIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Kind(NamedTuple):
    """A kind of cluster."""

    mechanism: str
    """How brokers log in at each other."""
    kafkas: frozenset[int]


KINDS = {
    "scram-one-kafka": Kind("SCRAM-SHA-512", frozenset({0})),
    "plain-two-kafkas": Kind("PLAIN", frozenset({0, 2})),
}


class Mixed:
    """Three brokers, and connections of users to each of them."""

    def __init__(self, brokers: ThreeBrokers, ports: list[int], kind: Kind) -> None:
        self.brokers = brokers
        self.kind = kind
        self._ports = ports
        self._clients: list[WireClient] = []

    def connect(self, n: int) -> WireClient:
        """Return a connection without a login."""
        client = WireClient("127.0.0.1", self._ports[n])
        self._clients.append(client)
        return client

    def user(self, n: int, login: Login) -> WireClient:
        """Return a connection of a user."""
        client = self.connect(n)
        assert log_in(client, *login) == 0
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()


def settings_of(
    n: int, kind: Kind, stores: dict[str, str], ports: dict[str, int]
) -> dict[str, str]:
    """Return the settings of a broker of either kind."""
    addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    users = " ".join(f'user_{name}="{secret}"' for name, secret in (BROKER, ADMIN, ALICE))
    own = f'username="{BROKER.name}" password="{BROKER.password}"'
    plain, scram = (f"{module} required {{}};" for module in MODULES.values())
    between = f"listener.name.{BETWEEN.lower()}"
    clients = f"listener.name.{CLIENTS.lower()}"
    return {
        **SETTINGS,
        **stores,
        "broker.id": str(n),
        "listeners": addresses,
        "advertised.listeners": addresses,
        "inter.broker.listener.name": BETWEEN,
        "sasl.mechanism.inter.broker.protocol": kind.mechanism,
        f"{between}.sasl.enabled.mechanisms": kind.mechanism,
        f"{between}.{kind.mechanism.lower()}.sasl.jaas.config": (
            plain.format(f"{own} {users}") if kind.mechanism == "PLAIN" else scram.format(own)
        ),
        f"{clients}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        f"{clients}.plain.sasl.jaas.config": plain.format(users),
        f"{clients}.scram-sha-512.sasl.jaas.config": scram.format("").replace(" ;", ";"),
        "authorizer.class.name": ACL_AUTHORIZER,
        "super.users": f"User:{BROKER.name};User:{ADMIN.name}",
        "delegation.token.secret.key": "the same on every broker",
        "min.insync.replicas": "2",
    }


@pytest.fixture(params=KINDS)
def mixed(request: pytest.FixtureRequest, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Mixed]:
    kind = KINDS[request.param]
    connect = f"{zookeeper.connect}/secured-{request.param}"
    stores = write_stores(tmp_path / "stores", broker_certificate(), authority_pem())
    with ClusterTree(connect) as tree:
        if kind.mechanism != "PLAIN":
            # Before the first broker nobody but ZooKeeper knows a user.
            java.run_java(
                java.KAFKA_39,
                "kafka.admin.ConfigCommand",
                *("--zookeeper", connect, "--alter", "--entity-type", "users"),
                *("--entity-name", BROKER.name),
                *("--add-config", f"{kind.mechanism}=[password={BROKER.password}]"),
            )
        brokers_so_far: list[KafkaPeer | Minibroker] = []
        ports = []
        for broker_id in IDS:
            listeners = {name: free_port() for name in ("PLAINTEXT", CLIENTS, BETWEEN)}
            peer = KafkaPeer(
                "3.9.1",
                tmp_path / f"kafka-{broker_id}",
                zookeeper=connect,
                settings=settings_of(broker_id, kind, stores, listeners),
                log_dir=tmp_path / f"data-{broker_id}",
                port=listeners["PLAINTEXT"],
            )
            ports.append(listeners[CLIENTS])
            own = ConfiguredMinibroker(peer, tmp_path / f"minibroker-{broker_id}.log")
            own.host, own.port = peer.host, peer.port
            brokers_so_far.append(peer if broker_id in kind.kafkas else own)
        brokers = ThreeBrokers(request.param, tree, brokers_so_far)
        new_mixed = Mixed(brokers, ports, kind)
        try:
            brokers.start_all()
            yield new_mixed
        finally:
            new_mixed.close()
            brokers.kill_all()


def acl(topic: str, permission: Permission = Permission.ALLOW) -> dict[str, Any]:
    return {
        "resource_type": int(ResourceType.TOPIC),
        "resource_name": topic,
        "resource_pattern_type": int(PatternType.LITERAL),
        "principal": f"User:{ALICE.name}",
        "host": "*",
        "operation": int(Operation.DESCRIBE),
        "permission_type": int(permission),
    }


def filter_of(topic: str, permission: Permission = Permission.ALLOW) -> dict[str, Any]:
    return {
        "resource_type_filter": int(ResourceType.TOPIC),
        "resource_name_filter": topic,
        "pattern_type_filter": int(PatternType.LITERAL),
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": int(permission),
    }


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_one_cluster_has_one_set_of_acls_and_tokens(mixed: Mixed) -> None:
    a_kafka = min(mixed.kind.kafkas)
    for turn, controller in enumerate((a_kafka, 1)):
        mixed.brokers.make_controller(controller)
        topic = f"topic-{turn}"
        replicate(mixed, topic)
        acls_decide_on_every_broker(mixed, topic)
        for maker, user in ((a_kafka, 1), (1, a_kafka)):
            tokens_are_used_elsewhere(mixed, maker, user)


def replicate(mixed: Mixed, topic: str) -> None:
    """A topic is made, and every replica gets in sync: brokers log in at each other."""
    controller = mixed.brokers.tree.controller
    assert controller is not None
    admin = mixed.user(controller, ADMIN)
    topic_request = {"name": topic, "num_partitions": 3, "replication_factor": 3}
    answer = admin.call("create_topics", 4, topics=[topic_request], timeout_ms=60_000)
    assert answer["topics"][0]["error_code"] == 0, answer

    def is_in_sync(partition: int) -> bool:
        state = mixed.brokers.tree.state(topic, partition)
        return state is not None and set(state["isr"]) == set(IDS)

    for partition in range(3):
        wait_until(
            lambda partition=partition: is_in_sync(partition),  # type: ignore[misc]
            f"{topic}-{partition} is in sync",
            WAIT_S,
        )


def acls_decide_on_every_broker(mixed: Mixed, topic: str) -> None:
    """Each broker allows, and takes away; the connections of alice stay open meanwhile."""
    alice = [mixed.user(n, ALICE) for n in IDS]
    admins = [mixed.user(n, ADMIN) for n in IDS]

    def code_at(n: int) -> int:
        request = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        return int(alice[n].call("metadata", 8, **request)["topics"][0]["error_code"])

    def expect(code: int, changed_at: int, event: str) -> None:
        # The broker that answered goes by it at once, the others when they have heard of it.
        assert code_at(changed_at) == code, event
        for n in IDS:
            wait_until(lambda n=n: code_at(n) == code, f"broker {n}: {event}", WAIT_S)  # type: ignore[misc]

    for broker_id in IDS:
        assert code_at(broker_id) == FORBIDDEN
    for broker_id in IDS:
        answer = admins[broker_id].call("create_acls", 2, creations=[acl(topic)])
        assert answer["results"][0]["error_code"] == 0, answer
        expect(0, broker_id, f"broker {broker_id} has allowed it")
        answer = admins[broker_id].call("create_acls", 2, creations=[acl(topic, Permission.DENY)])
        assert answer["results"][0]["error_code"] == 0, answer
        expect(FORBIDDEN, broker_id, f"broker {broker_id} has denied it")
        other = (broker_id + 1) % 3
        filters = [filter_of(topic, Permission.DENY)]
        answer = admins[other].call("delete_acls", 2, filters=filters)
        assert len(answer["filter_results"][0]["matching_acls"]) == 1, answer
        expect(0, other, f"broker {other} denies it no more")
        answer = admins[other].call("delete_acls", 2, filters=[filter_of(topic)])
        assert len(answer["filter_results"][0]["matching_acls"]) == 1, answer
        expect(FORBIDDEN, other, f"broker {other} allows it no more")


def tokens_are_used_elsewhere(mixed: Mixed, maker: int, user: int) -> None:
    """A token of one broker logs in at another, which renews and ends it."""
    new_token = mixed.user(maker, ALICE).call(
        "create_delegation_token", 2, renewers=[], max_lifetime_ms=3_600_000
    )
    assert new_token["error_code"] == 0, new_token
    token_id, secret = new_token["token_id"], bytes(new_token["hmac"])

    def logs_in_at(n: int) -> bool:
        return log_in_by_token(mixed.connect(n), token_id, secret) == 0

    for n in IDS:
        wait_until(lambda n=n: logs_in_at(n), f"broker {n} knows the token", WAIT_S)  # type: ignore[misc]
    tokens = mixed.user(user, ALICE).call("describe_delegation_token", 2, owners=None)
    assert token_id in [token["token_id"] for token in tokens["tokens"]], tokens
    by_token = mixed.connect(user)
    assert log_in_by_token(by_token, token_id, secret) == 0
    refused = by_token.call("create_delegation_token", 2, renewers=[], max_lifetime_ms=-1)
    assert refused["error_code"] == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, refused
    renewed = mixed.user(user, ALICE).call(
        "renew_delegation_token", 2, hmac=secret, renew_period_ms=600_000
    )
    assert renewed["error_code"] == 0, renewed
    ended = mixed.user(user, ALICE).call(
        "expire_delegation_token", 2, hmac=secret, expiry_time_period_ms=-1
    )
    assert ended["error_code"] == 0, ended
    for n in IDS:
        wait_until(lambda n=n: not logs_in_at(n), f"broker {n} knows the token no more", WAIT_S)  # type: ignore[misc]
