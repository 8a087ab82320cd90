"""Three brokers whose only listener asks for SASL: they log in at each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.kafka.errors import ConfigError
from minibroker.testing import Cluster
from tests.support.signed_tokens import AUDIENCE, rsa_key, write_jwks, write_key
from tests.support.token_provider import CLIENT, TokenProvider
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

LINE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "replica.fetch.wait.max.ms": "50",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{LINE} username="admin" password="admin-secret" user_admin="admin-secret";'
    ),
}


def produce_to_all(cluster: Cluster) -> None:
    """Produce a record that every broker has to have."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "admin-secret",
            "acks": "all",
        }
    )
    errors: list[object] = []
    producer.produce("t", b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(180) == 0
    assert errors == [None]


def test_followers_log_in_at_their_leader() -> None:
    with Cluster(3, config=SETTINGS, topics=["t"]) as cluster:
        wait_until(lambda: cluster.in_sync("t") == [0, 1, 2], "all replicas are in sync")
        produce_to_all(cluster)


def test_followers_log_in_with_a_token() -> None:
    settings = {
        **SETTINGS,
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
            ' unsecuredLoginStringClaim_sub="admin";'
        ),
    }
    with Cluster(3, config=settings, topics=["t"]) as cluster:
        wait_until(lambda: cluster.in_sync("t") == [0, 1, 2], "all replicas are in sync")
        produce_to_all(cluster)


@pytest.mark.parametrize("proof", ["secret", "assertion"])
def test_followers_log_in_with_a_token_of_a_provider(tmp_path: Path, proof: str) -> None:
    handlers = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"
    of_mechanism = "listener.name.sasl_plaintext.oauthbearer.sasl"
    is_secret = proof == "secret"
    with TokenProvider() as provider:
        settings = {
            **SETTINGS,
            "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            f"{of_mechanism}.jaas.config": (
                f"{handlers}LoginModule required scope=kafka"
                + (f' clientId="{CLIENT[0]}" clientSecret="{CLIENT[1]}";' if is_secret else ";")
            ),
            f"{of_mechanism}.login.callback.handler.class": f"{handlers}LoginCallbackHandler",
            f"{of_mechanism}.server.callback.handler.class": f"{handlers}ValidatorCallbackHandler",
            f"{of_mechanism}.oauthbearer.token.endpoint.url": provider.url,
            f"{of_mechanism}.oauthbearer.jwks.endpoint.url": write_jwks(tmp_path),
            f"{of_mechanism}.oauthbearer.expected.audience": AUDIENCE,
        }
        if not is_secret:
            provider.public_key = rsa_key("broker").public_key()
            settings |= {
                f"{of_mechanism}.oauthbearer.assertion.{name}": text
                for name, text in {
                    "claim.aud": provider.url,
                    "claim.iss": CLIENT[0],
                    "claim.sub": CLIENT[0],
                    "private.key.file": write_key(tmp_path / "key.pem", rsa_key("broker")),
                }.items()
            }
        with Cluster(3, config=settings, topics=["t"]) as cluster:
            wait_until(lambda: cluster.in_sync("t") == [0, 1, 2], "all replicas are in sync")
            produce_to_all(cluster)
        assert provider.tokens
        fields = {"grant_type": "client_credentials", "scope": "kafka"}
        for request in provider.requests:
            assert fields.items() <= request.fields.items()
            assert ("client_assertion" in request.fields) is not is_secret


def test_followers_go_on_when_their_sessions_end() -> None:
    """A session of a second is left after 850 ms, so that no request finds it ended."""
    settings = {**SETTINGS, "connections.max.reauth.ms": "1000"}
    with Cluster(3, config=settings, topics=["t"]) as cluster:
        connections: list[object] = []

        def has_had_two_connections() -> bool:
            peer = peers._peers and peers._peers._peers.get(leader)
            connection = peer and peer.connection
            if connection and not any(connection is other for other in connections):
                connections.append(connection)
            return len(connections) > 1

        wait_until(lambda: cluster.leader("t") >= 0, "the partition has a leader")
        leader = cluster.leader("t")
        peers = cluster.node((leader + 1) % 3).app.replication
        wait_until(has_had_two_connections, "another connection takes over")
        produce_to_all(cluster)
        wait_until(lambda: cluster.in_sync("t") == [0, 1, 2], "all replicas are in sync")


def test_a_broker_without_a_login_for_the_others_does_not_start() -> None:
    settings = {**SETTINGS, "sasl.mechanism.inter.broker.protocol": "GSSAPI"}
    with pytest.raises(ConfigError, match="protocol=GSSAPI"), Cluster(2, config=settings):
        pass
