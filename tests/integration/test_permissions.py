"""Every API with and without each permission: a client is told what Apache Kafka tells it.

`golden/permissions.json` has the answers of Kafka 3.9.1 with AclAuthorizer and of 4.4.0 with
StandardAuthorizer. minibroker plays the cases with each of the two authorizers, and those between
brokers with AclAuthorizer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers.common.permissions import REQUEST_NEEDS
from minibroker.broker.handlers.registry import HANDLERS
from minibroker.kafka.protocol.api_keys import (
    API_VERSIONS,
    APIS,
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_QUORUM,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from minibroker.testing import Broker, Cluster
from tests.golden.record_permissions import AUTHORIZERS, RECORDED
from tests.support.broker_permission_cases import BROKER_CASES, EVERY_CASE
from tests.support.part_needs import PART_NEEDS
from tests.support.permission_cases import CASES, PLAINTEXT, SASL, SETTINGS, World, in_order, play

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.security.authorizer import Authorizer

HOST = "127.0.0.1"
KAFKA: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())

WORDED_AS_KAFKA_4 = {
    "alter_configs v2",
    "alter_user_scram_credentials v0",
    "create_partitions v3",
    "delete_topics by-id v6",
    "delete_topics v5",
    "elect_leaders v2",
    "incremental_alter_configs v1",
}
"""Cases in which 3.9.1 has a message in other places than 4.4.0."""
NOT_COMPARED = {
    ("create_partitions v3", "4.4.0"): ("error_message",),  # of the unknown topic
    ("create_topics forbidden-name v7", "3.9.1"): ("topic_config_error_code",),
    ("create_topics v7", "3.9.1"): ("topic_config_error_code",),
    ("create_topics v7", "4.4.0"): ("topic_id",),
}
"""Case and release → fields that are not compared.

3.9.1 says of a topic that it does not create, too, that its configuration is not shown. 4.4.0 makes
an id for a topic that is only checked.
"""
WITHOUT_PERMISSIONS = {API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE}
WITH_OTHER_TESTS = {
    CREATE_DELEGATION_TOKEN: "needs a client that has logged in; the tests of tokens",
    RENEW_DELEGATION_TOKEN: "as above",
    EXPIRE_DELEGATION_TOKEN: "as above",
    DESCRIBE_DELEGATION_TOKEN: "as above",
    DESCRIBE_QUORUM: "test_permissions of the handlers: the answer is a controller's own",
}


@pytest.fixture(scope="module", params=AUTHORIZERS)
def world(request: pytest.FixtureRequest) -> Iterator[tuple[str, World]]:
    """A broker with the authorizer of a release, for all cases."""
    release: str = request.param
    settings = {
        **SETTINGS,
        "authorizer.class.name": AUTHORIZERS[release],
        "listeners": f"{PLAINTEXT}://{HOST}:0,{SASL}://{HOST}:0",
    }
    with Broker(config=settings) as broker:
        authorizer = broker._node.app.services.authorizer
        assert authorizer is not None
        note_questions(authorizer)
        new_world = World(HOST, broker._node.app.ports)
        new_world.prepare()
        yield release, new_world
        new_world.close()


QUESTIONS: set[tuple[str, str]] = set()
"""API, and the operation and the type of resource that it asked about."""


def note_questions(authorizer: Authorizer) -> None:
    """Have the authorizer note every question of a request in `ASKED`."""
    allows, allows_any = authorizer.allows, authorizer.allows_any

    def note_and_ask(*args: Any) -> bool:
        _, _, operation, resource_type, _, api_key, *_ = args
        QUESTIONS.add((APIS[api_key].name, f"{operation.name} {resource_type.name}"))
        return allows(*args)

    def noted_any(*args: Any) -> bool:
        _, _, operation, resource_type, api_key = args
        QUESTIONS.add((APIS[api_key].name, f"{operation.name} {resource_type.name}"))
        return allows_any(*args)

    authorizer.allows = note_and_ask  # type: ignore[method-assign]
    authorizer.allows_any = noted_any  # type: ignore[method-assign]


def without(fields: tuple[str, ...], value: Any) -> Any:
    """Return an answer without these fields."""
    if isinstance(value, dict):
        return {name: without(fields, v) for name, v in value.items() if name not in fields}
    if isinstance(value, list):
        return sorted((without(fields, inner) for inner in value), key=in_order)
    return value


@pytest.mark.parametrize("name", CASES)
def test_a_client_is_told_what_kafka_tells_it(name: str, world: tuple[str, World]) -> None:
    release, played = world
    expected = KAFKA[name][release]
    if expected is None:
        return  # the release does not serve the API, or not with ZooKeeper
    fields = NOT_COMPARED.get((name, release), ())
    if release == "3.9.1" and name in WORDED_AS_KAFKA_4:
        fields = ("error_message",)
    answers = play(played, name, CASES[name])
    assert without(fields, answers) == without(fields, expected)


@pytest.fixture(scope="module")
def world_of_brokers() -> Iterator[World]:
    """A broker that may have peers, with AclAuthorizer."""
    settings = {
        **SETTINGS,
        "authorizer.class.name": AUTHORIZERS["3.9.1"],
        "listeners": f"{PLAINTEXT}://{HOST}:0,{SASL}://{HOST}:0",
    }
    with Cluster(1, config=settings) as cluster:
        new_world = World(HOST, cluster.node(0).app.ports)
        new_world.prepare()
        yield new_world
        new_world.close()


@pytest.mark.parametrize("name", BROKER_CASES)
def test_a_client_that_speaks_as_a_broker_is_told_what_kafka_tells_it(
    name: str, world_of_brokers: World
) -> None:
    expected = KAFKA[name]["3.9.1"]
    assert play(world_of_brokers, name, BROKER_CASES[name]) == expected


def test_every_case_is_recorded_and_every_api_has_one() -> None:
    assert KAFKA.keys() == EVERY_CASE.keys()
    assert {name for name, _ in NOT_COMPARED} | WORDED_AS_KAFKA_4 <= CASES.keys()
    apis = {case.api for case in EVERY_CASE.values()}
    left_out = WITHOUT_PERMISSIONS | WITH_OTHER_TESTS.keys()
    expected = {APIS[key].module for key in HANDLERS if key not in left_out}
    assert sorted(expected - apis) == []


def test_the_tables_name_every_question_that_a_handler_asks(world: tuple[str, World]) -> None:
    """It runs after the cases, which ask."""
    table = {
        (APIS[key].name, f"{need.operation.name} {need.resource_type.name}")
        for table in (REQUEST_NEEDS, PART_NEEDS)
        for key, needs in table.items()
        for need in needs
    }
    assert sorted(QUESTIONS - table) == []
