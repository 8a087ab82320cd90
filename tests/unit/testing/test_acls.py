"""`acls=[…]` and `broker.acls`: the words of a test, and what a client may do then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.authorizers import STANDARD_AUTHORIZER
from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.testing import Allow, Broker, Cluster, Deny
from minibroker.testing.acls import authorizer_settings, rule_of
from tests.support.late_news import result_after_news
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.testing.acls import AclRule
    from minibroker.testing.cluster import ClusterBroker

USERS = {"alice": "alice-secret", "bob": "bob-secret"}
READ_ORDERS = Allow("alice", "READ", topic="orders")
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(
        topics=["orders", "other"], security="SASL_PLAINTEXT", users=USERS, acls=[READ_ORDERS]
    ) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


def topics_seen(settings: dict[str, Any], *names: str) -> list[int]:
    """Return the error of each topic, as a user is told it who logs in by PLAIN."""
    host, _, port = settings["bootstrap.servers"].split(",")[0].rpartition(":")
    login = f"\0{settings['sasl.username']}\0{settings['sasl.password']}".encode()
    with WireClient(host, int(port)) as client:
        assert client.call("sasl_handshake", 1, mechanism="PLAIN")["error_code"] == 0
        assert client.call("sasl_authenticate", 1, auth_bytes=login)["error_code"] == 0
        answer = client.call(
            "metadata",
            8,
            topics=[{"name": name} for name in names],
            allow_auto_topic_creation=False,
        )
    codes = {topic["name"]: topic["error_code"] for topic in answer["topics"]}
    return [codes[name] for name in names]


def seen_by(broker: Broker, user: str, *names: str) -> list[int]:
    return topics_seen(broker.client_config("confluent-kafka", user=user), *names)


# Words.


def test_a_rule_is_an_acl_of_kafka_and_reads_as_it_is_written() -> None:
    rule = Deny("alice", "WRITE", topic="orders-", prefixed=True, host="127.0.0.1")
    acl = Acl(
        Pattern(ResourceType.TOPIC, "orders-", PatternType.PREFIXED),
        Entry("User:alice", "127.0.0.1", Operation.WRITE, Permission.DENY),
    )
    assert rule.to_acl() == acl
    assert rule_of(acl) == rule
    assert repr(rule) == "Deny('alice', 'WRITE', topic='orders-', prefixed=True, host='127.0.0.1')"


@pytest.mark.parametrize(
    "rule",
    [
        Allow("*", "READ", group="*"),
        Allow("alice", "WRITE", transactional_id="x"),
        Allow("alice", "DESCRIBE", delegation_token="t"),
        Deny("alice", "CREATE_TOKENS", other_user="User:bob"),
        Allow("alice", "IDEMPOTENT_WRITE", cluster=True),
    ],
    ids=repr,
)
def test_every_kind_of_resource_has_a_word(rule: Allow) -> None:
    assert rule_of(rule.to_acl()) == rule


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"operation": "READ"}, "expected one resource: topic, group,"),
        ({"operation": "READ", "topic": "t", "group": "g"}, "expected one resource"),
        ({"operation": "SEE", "topic": "t"}, "operation 'SEE': expected one of ALL, READ"),
        ({"operation": "ANY", "topic": "t"}, "operation 'ANY': expected one of"),
        ({"operation": "READ", "topic": "t", "user": ""}, "the user has no name"),
    ],
)
def test_wrong_words_are_refused(words: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Allow(**{"user": "alice", **words})


def test_the_broker_stays_a_super_user_beside_those_of_the_test() -> None:
    settings = authorizer_settings({"super.users": "User:root"})
    assert settings["super.users"] == "User:root;User:broker"
    authorizer = {"authorizer.class.name": STANDARD_AUTHORIZER}
    assert authorizer_settings(authorizer) == {**authorizer, "super.users": "User:broker"}


# A broker.


def test_only_what_is_allowed_is_allowed(broker: Broker) -> None:
    assert seen_by(broker, "alice", "orders", "other") == [0, REFUSED]
    assert seen_by(broker, "bob", "orders") == [REFUSED]
    assert seen_by(broker, "broker", "orders", "other") == [0, 0]
    default = broker.client_config("confluent-kafka")
    assert default["sasl.username"] == "alice"


def test_the_next_request_is_decided_by_a_change(broker: Broker) -> None:
    broker.acls.add(Allow("bob", "DESCRIBE", topic="o", prefixed=True))
    assert seen_by(broker, "bob", "orders", "other") == [0, 0]
    broker.acls.add(Deny("bob", "DESCRIBE", topic="other"))
    assert seen_by(broker, "bob", "orders", "other") == [0, REFUSED]
    broker.acls.remove(READ_ORDERS)
    assert seen_by(broker, "alice", "orders") == [REFUSED]
    broker.acls.clear()
    assert seen_by(broker, "bob", "orders") == [REFUSED]


def test_the_list_is_of_the_moment(broker: Broker) -> None:
    acls = broker.acls
    assert acls == [READ_ORDERS]
    broker.acls.add(Deny("bob", "ALL", cluster=True))
    assert (len(acls), Deny("bob", "ALL", cluster=True) in acls) == (2, True)
    with pytest.raises(ValueError, match=r"there is no Allow\('carol', 'READ', topic='t'\)"):
        acls.remove(Allow("carol", "READ", topic="t"))
    broker.reset()
    assert repr(acls) == "[Allow('alice', 'READ', topic='orders')]"


def test_without_acls_everyone_may_do_everything() -> None:
    with Broker(topics=["t"]) as broker, pytest.raises(RuntimeError, match=r"give acls=\[…\]"):
        broker.acls.add(READ_ORDERS)


def test_an_empty_list_allows_nothing() -> None:
    with Broker(topics=["t"], acls=[]) as broker:
        assert broker.acls == []
        host, _, port = broker.bootstrap.rpartition(":")
        with WireClient(host, int(port)) as client:
            answer = client.call(
                "metadata", 8, topics=[{"name": "t"}], allow_auto_topic_creation=False
            )
        assert answer["topics"][0]["error_code"] == REFUSED


# A cluster.


def has_records(broker: ClusterBroker, topic: str) -> bool:
    try:
        return bool(broker.records(topic))
    except KafkaError:  # it does not follow yet
        return False


def test_a_cluster_needs_a_user_of_its_own() -> None:
    with pytest.raises(ValueError, match="acls=… needs security=…"):
        Cluster(2, acls=[])


def test_brokers_of_a_cluster_replicate_and_hear_of_changes() -> None:
    with Cluster(
        2,
        topics=["orders:1:2"],
        security="SASL_PLAINTEXT",
        users=USERS,
        acls=[Allow("alice", "READ", topic="orders")],
    ) as cluster:
        cluster.broker(cluster.leader("orders")).produce("orders", "v")
        for each in cluster.brokers:
            wait_until(lambda broker=each: has_records(broker, "orders"), f"records at {each}")
        cluster.acls.add(Allow("bob", "READ", topic="orders"))
        for number in (0, 1):
            settings = cluster.client_config("confluent-kafka", user="bob")
            settings["bootstrap.servers"] = cluster.broker(number).bootstrap
            assert topics_seen(settings, "orders") == [0]
        cluster.acls.remove(READ_ORDERS)
        cluster.reset()
        assert cluster.acls == [READ_ORDERS]


def test_the_acls_of_a_cluster_are_those_that_every_broker_knows() -> None:
    rule = Allow("bob", "READ", topic="orders")
    with Cluster(2, security="SASL_PLAINTEXT", users=USERS, acls=[]) as cluster:

        def acls() -> list[AclRule]:
            """Return the ACLs after a client changed them at broker 1."""
            cluster._await(cluster.node(1).inspector.change_acls([rule.to_acl()], []))
            return list(cluster.acls)

        assert result_after_news(cluster, 0, acls) == [rule]
