"""The table of served APIs, and a broker that passes for an older Kafka."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from minibroker.broker.handlers.refusals import REFUSALS
from minibroker.broker.handlers.registry import (
    BETWEEN_BROKERS,
    HANDLERS,
    ONLY_WITH_ZOOKEEPER,
    UNSTABLE_FROM,
    advertised_versions,
    load_handler,
    supported_versions,
)
from minibroker.broker.metrics import Metrics
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.protocol.api_keys import APIS
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.in_process import TIMEOUT_S, InProcessBroker

if TYPE_CHECKING:
    from tests.support.in_process import RawClient


SPECS = Path(__file__).parents[4] / "protocol_specs" / "apis"
RELEASE = "minibroker.advertised.kafka.version"


def test_the_table_is_sorted_and_names_modules_as_the_specs_do() -> None:
    assert list(HANDLERS) == sorted(HANDLERS)
    assert {key for key, module in HANDLERS.items() if module == "refusals"} == set(REFUSALS)
    for key in HANDLERS.keys() - REFUSALS.keys():
        assert APIS[key].module == HANDLERS[key]


@pytest.mark.parametrize("key", HANDLERS)
def test_every_handler_loads(key: int) -> None:
    metrics = Metrics()
    served = {**supported_versions(), **supported_versions(with_zookeeper=True)}
    handler = load_handler(key, served[key], metrics)
    assert callable(handler.handle)
    assert handler.name == APIS[key].name
    assert key == handler.request.API_KEY
    assert handler.times is metrics.of_api(handler.name)


def test_apis_of_a_zookeeper_cluster_are_served_on_a_zookeeper_only() -> None:
    """Kafka lists them where its listener type is zkBroker, since 0.10, and no more in 4.0."""
    controllers = {4, 5, 6}
    assert controllers == ONLY_WITH_ZOOKEEPER
    assert not supported_versions().keys() & controllers
    assert not advertised_versions("3.9").keys() & controllers
    on_zookeeper = advertised_versions("3.9", with_zookeeper=True)
    assert [on_zookeeper[key] for key in sorted(controllers)] == [(0, 7), (0, 4), (0, 8)]
    assert controllers <= supported_versions(with_zookeeper=True).keys()
    assert not advertised_versions("4.0", with_zookeeper=True).keys() & controllers


def test_requests_between_brokers_are_served_where_there_may_be_other_brokers() -> None:
    keys = BETWEEN_BROKERS & HANDLERS.keys()
    assert keys
    for versions in (supported_versions, advertised_versions):
        assert not keys & versions().keys()
        assert keys <= versions(has_peers=True).keys()
        assert keys <= versions("3.9", has_peers=True).keys()
        assert not keys & versions("4.0", has_peers=True).keys()


def test_without_a_release_everything_is_served() -> None:
    assert supported_versions()[0] == (0, APIS[0].max_version)
    assert supported_versions() == advertised_versions()


@pytest.mark.parametrize(
    ("release", "key", "versions"),
    [
        ("0.8.2", 0, (0, 0)),
        ("0.8.2", 18, None),
        ("0.9.0", 18, None),
        ("0.10.0", 18, (0, 0)),
        ("0.11", 0, (0, 3)),
        ("0.11", 60, None),
        ("2.4", 0, (0, 8)),
        ("2.4", 1, (0, 11)),
        ("2.4", 44, (0, 1)),
        ("3.9", 0, (0, 11)),
        ("3.9", 75, None),  # only KRaft brokers had it then
        ("4.0", 75, (0, 0)),
        ("4.0", 0, (3, 12)),
        ("4.4", 1, (4, 18)),
    ],
)
def test_a_release_narrows_what_is_served(
    release: str, key: int, versions: tuple[int, int] | None
) -> None:
    assert supported_versions(release).get(key) == versions


def test_a_release_never_adds_what_has_no_handler() -> None:
    for release in ("0.8.2", "2.4", "3.9", "4.4"):
        assert set(supported_versions(release)) <= set(HANDLERS)


def test_kafka_4_names_produce_versions_that_it_does_not_serve() -> None:
    assert advertised_versions("4.0")[0] == (0, 12)
    assert supported_versions("4.0")[0] == (3, 12)
    assert advertised_versions("3.9") == supported_versions("3.9")


@pytest.mark.parametrize("release", ["5.0", "", "0.7", "2.4.1", "latest"])
def test_a_release_that_never_was_is_one_sentence(release: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"minibroker\.advertised\.kafka\.version=.*0\.8\.2, "):
        supported_versions(release)


async def test_a_pinned_broker_offers_what_that_release_did(tmp_path: Path) -> None:
    async with (
        InProcessBroker(tmp_path, {RELEASE: "2.4"}) as running,
        await running.connect() as client,
    ):
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        answer = await client.call(request, 3)
        offered = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        assert offered == supported_versions("2.4")
        await client.call(MetadataRequest(topics=[]), 9)
        client.send(MetadataRequest(topics=[]), 10)
        assert await client.is_closed_by_broker()


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0"])
async def test_before_api_versions_it_is_an_unknown_key(tmp_path: Path, release: str) -> None:
    async with InProcessBroker(tmp_path, {RELEASE: release}) as running:
        async with await running.connect() as client:
            client.send(ApiVersionsRequest(), 0)
            assert await client.is_closed_by_broker()
        async with await running.connect() as client:
            await client.call(MetadataRequest(topics=[]), 0)


@pytest.mark.parametrize("release", ["0.11", "2.4", "4.0"])
async def test_a_real_client_works_with_a_pinned_broker(tmp_path: Path, release: str) -> None:
    async with InProcessBroker(tmp_path, {RELEASE: release}) as running:
        await running.create_topic("t")
        host, port = running.address
        values = await asyncio.to_thread(_round_trip, f"{host}:{port}")
        times = running.broker.services.metrics.requests
    assert values == [b"one", b"two"]
    assert times["Produce"].by_name()["TotalTimeMs"].count >= 1
    assert times["Fetch"].by_name()["TotalTimeMs"].count >= 1


def _round_trip(address: str) -> list[bytes | None]:
    producer = Producer({"bootstrap.servers": address, "compression.type": "gzip"})
    for value in (b"one", b"two"):
        producer.produce("t", value)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    values = []
    while len(values) < 2:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.error() is None, message.error()
        values.append(message.value())
    consumer.close()
    return values


def test_unstable_versions_are_not_offered() -> None:
    """The table of unstable versions is that of the specs, for the APIs that are served."""
    marked = {}
    for path in SPECS.glob("*.json"):
        spec = json.loads(path.read_text(encoding="utf-8"))
        if "unstable" in spec and spec["key"] in HANDLERS:
            marked[spec["key"]] = int(spec["unstable"].rstrip("+"))
    assert marked == UNSTABLE_FROM
    for key, first_unstable in marked.items():
        assert supported_versions()[key][1] == first_unstable - 1


async def test_a_token_is_refused_with_the_principals_that_it_would_have_had(
    client: RawClient,
) -> None:
    request = CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="carol", renewers=[], max_lifetime_ms=-1
    )
    answer = await client.call(request, 3)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (answer.principal_type, answer.principal_name) == ("User", "carol")
    assert answer.token_requester_principal_name == "ANONYMOUS"
    assert answer.expiry_timestamp_ms == -1
