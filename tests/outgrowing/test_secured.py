"""A broker that lets only known users in becomes a node that does: passwords, credentials, ACLs and
delegation tokens hold on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.outgrowing.administration import Administration
from tests.outgrowing.nodes import Login, Nodes
from tests.outgrowing.reading import WAIT_S, read_topic
from tests.outgrowing.sides import OneCluster
from tests.outgrowing.view import differences, view_of
from tests.support.peers import ONE_NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

pytestmark = pytest.mark.java

ADMIN, ALICE, BOB, CAROL = "admin", "alice", "bob", "carol"
PASSWORDS = {ADMIN: "admin's, =secret", ALICE: "alice-secret", BOB: 'bob "the" secret'}
SCRAM_PASSWORD = "carol-secret"
"""The password of Carol, whose credential was made while the broker ran."""
SECRET, SHARED = "secret", "shared"
SETTINGS = {
    **ONE_NODE,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN}",
    "delegation.token.secret.key": "a key of tokens",
}


class Users:
    """The clients of a secured cluster."""

    def __init__(self, cluster: OneCluster) -> None:
        self._cluster = cluster

    def of(
        self, user: str, mechanism: str = "PLAIN", password: str | None = None
    ) -> dict[str, str]:
        """Return the settings of a user's client."""
        return {
            **self._cluster.clients(),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password or PASSWORDS[user],
        }

    def ways_of_carol(self) -> Mapping[str, str]:
        """Return the settings of the user with a SCRAM credential."""
        return self.of(CAROL, "SCRAM-SHA-256", SCRAM_PASSWORD)


def allow(user: str, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    """Return the ACL that lets a user do this."""
    literal = ResourcePatternType.LITERAL
    return AclBinding(kind, name, literal, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def prepare(users: Users) -> None:
    """Make topics, ACLs, and the user that logs in by SCRAM."""
    admin = AdminClient({**users.of(ADMIN)})
    futures = [*admin.create_topics([NewTopic(SHARED, 1, 1), NewTopic(SECRET, 1, 1)]).values()]
    acls = [
        allow(user, ResourceType.TOPIC, SHARED, operation)
        for user in (ALICE, CAROL)
        for operation in (AclOperation.WRITE, AclOperation.READ)
    ]
    acls.append(allow(CAROL, ResourceType.GROUP, "reads-all", AclOperation.READ))
    futures += admin.create_acls(acls).values()
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    credential = UserScramCredentialUpsertion(CAROL, info, SCRAM_PASSWORD.encode())
    futures += admin.alter_user_scram_credentials([credential]).values()
    for future in futures:
        future.result(WAIT_S)


def write(client: Mapping[str, str], topic: str, value: str) -> KafkaError | None:
    """Write a record; return the error."""
    errors: list[KafkaError | None] = []
    producer = Producer({**client})
    producer.produce(topic, value, on_delivery=lambda error, _message: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    return errors[0]


def assert_that_rules_hold(users: Users, values: list[str]) -> None:
    """Check logins and ACLs; `values` are written before, and grow."""
    for client in (users.of(ALICE, "SCRAM-SHA-512"), users.ways_of_carol()):
        values.append(f"value-{len(values)}")
        assert write(client, SHARED, values[-1]) is None
        refusal = write(client, SECRET, "refused")
        assert refusal is not None
        assert refusal.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    refusal = write(users.of(BOB), SHARED, "refused")
    assert refusal is not None
    assert refusal.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert [record.value for record in read_topic(users.ways_of_carol(), SHARED)] == values
    with pytest.raises(KafkaException):
        Consumer({**users.of(ALICE, "PLAIN", "wrong"), "group.id": "g"}).list_topics(timeout=3)


def make_token(cluster: OneCluster) -> None:
    """Make a delegation token of the administrator."""
    with Nodes(cluster.address, cluster.login) as nodes:
        answer = nodes.any("create_delegation_token", 2, renewers=[], max_lifetime_ms=-1)
    assert not answer["error_code"], answer


@pytest.fixture
def cluster(new_cluster: Callable[..., OneCluster], tmp_path: Path) -> OneCluster:
    """A cluster with SASL_SSL, users and ACLs; not started."""
    users = tmp_path / "users"
    users.write_text("".join(f"{name}:{password}\n" for name, password in PASSWORDS.items()))
    authority = tmp_path / "cluster-0" / "data-tls" / "ca.pem"
    return new_cluster(
        "4.4",
        settings=SETTINGS,
        options=("--security", "SASL_SSL", "--user", f"@{users}"),
        login=Login(ADMIN, PASSWORDS[ADMIN], str(authority)),
    )


def test_passwords_acls_and_tokens_hold_on_both_sides(cluster: OneCluster) -> None:
    cluster.serve()
    users = Users(cluster)
    prepare(users)
    make_token(cluster)
    administration = Administration(cluster.clients(), cluster.login, [])
    administration.change(0)
    values: list[str] = []
    assert_that_rules_hold(users, values)
    view = view_of(cluster.address, cluster.login)
    assert view["tokens"]
    assert view["acls"]

    cluster.stop()
    cluster.hand_over()
    cluster.kafka()
    assert differences(view, view_of(cluster.address, cluster.login)) == []
    assert_that_rules_hold(users, values)
    make_token(cluster)
    administration.change(1)
    view = view_of(cluster.address, cluster.login)

    cluster.kill()
    cluster.take_back()
    cluster.serve()
    assert differences(view, view_of(cluster.address, cluster.login)) == []
    assert_that_rules_hold(users, values)
