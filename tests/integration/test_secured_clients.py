"""Clients of every language prove who they are in every way, and hear what Kafka tells them.

`golden/secured_clients.json` has what they read, and their errors, with Kafka 3.9.1 and 4.4.0.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.authorizers import ACL_AUTHORIZER
from minibroker.testing import Broker
from tests.golden.record_secured_clients import RECORDED
from tests.support.secured_clients import (
    CLIENTS,
    PROTOCOLS,
    WAYS,
    Stores,
    broker_settings,
    missing_client,
    outcomes,
    prepare,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
KAFKA: dict[str, dict[str, dict[str, str]]] = json.loads(RECORDED.read_text())
"""Client → way → what it read, or its error; the two releases say the same."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """The files of the certificates."""
    return Stores(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def addresses(stores: Stores) -> Iterator[dict[str, str]]:
    """The addresses of a broker with every kind of listener."""
    settings = {
        **broker_settings(stores),
        "authorizer.class.name": ACL_AUTHORIZER,
        "listeners": ",".join(f"{name}://{HOST}:0" for name in PROTOCOLS),
    }
    with Broker(config=settings) as broker:
        prepare(broker.bootstrap, list(CLIENTS))
        yield {name: f"{HOST}:{port}" for name, port in broker._node.app.ports.items()}


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(client, marks=pytest.mark.java if client.startswith("java") else ())
        for client in CLIENTS
    ],
)
def test_a_client_hears_what_kafka_tells_it(
    client: str, addresses: dict[str, str], stores: Stores
) -> None:
    reason = missing_client(client)
    if reason is not None:
        pytest.skip(reason)
    assert outcomes(client, addresses, stores) == KAFKA[client]


def test_every_right_way_is_a_way_in() -> None:
    for client, outcome_of in KAFKA.items():
        for name, way in WAYS.items():
            assert outcome_of[name].get("read") == (name if way.fault is None else None), (
                client,
                name,
            )
