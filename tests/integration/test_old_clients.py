"""Clients of Kafka 0.8 to 0.10 and today's: each reads the records of the others, in any format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.broker import Minibroker
from tests.support.clients import CLIENTS, Client, expected
from tests.support.old_clients import CODECS, OLD_CLIENTS, OldClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COUNT = 100
FORMATS = {"format-0": "0.9.0", "format-1": "0.10.2", "format-2": "3.0"}
NEWEST = [client for client in CLIENTS if client.name in ("confluent-kafka", "Java 4.4.0")]

EACH = [pytest.param(client, id=f"{client.library}-{client.version}") for client in OLD_CLIENTS]
EACH_NEW = [
    pytest.param(
        client,
        id=client.name.replace(" ", "-"),
        marks=[pytest.mark.java] if client.needs_java else [],
    )
    for client in NEWEST
]


@pytest.fixture(autouse=True)
def _client_is_here(request: pytest.FixtureRequest) -> None:
    """Skip the tests of a client that is not installed."""
    has_parameters = hasattr(request.node, "callspec")
    client = request.node.callspec.params.get("client") if has_parameters else None
    if client is not None and client.missing:
        pytest.skip(f"not run: {client.missing}")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minibroker]:
    """Yield a broker with one topic per format, written by every installed old client in every
    codec.
    """
    directory: Path = tmp_path_factory.mktemp("old-clients")
    topics = [f"{topic}:1:message.format.version={version}" for topic, version in FORMATS.items()]
    broker = Minibroker(directory / "data", directory / "log", topics=topics).start()
    for client in OLD_CLIENTS:
        if not client.missing:
            prefixes = {codec: _prefix(client, codec) for codec in CODECS}
            client.produce(broker.address, list(FORMATS), prefixes, COUNT)
    yield broker
    broker.stop()


def _prefix(client: OldClient, codec: str) -> str:
    return f"{client.library}-{client.version}-{codec}-"


def _written() -> list[str]:
    return [
        value
        for client in OLD_CLIENTS
        if not client.missing
        for codec in CODECS
        for value in expected(_prefix(client, codec), COUNT)
    ]


@pytest.mark.parametrize("topic", FORMATS)
@pytest.mark.parametrize("client", EACH)
def test_old_clients_read_each_other(client: OldClient, topic: str, broker: Minibroker) -> None:
    originals = _written()
    assert client.consume(broker.address, topic, len(originals)) == originals


@pytest.mark.parametrize("client", EACH_NEW)
@pytest.mark.parametrize("topic", FORMATS)
def test_new_clients_read_old_ones(client: Client, topic: str, broker: Minibroker) -> None:
    originals = _written()
    assert client.consume(broker.address, topic, len(originals)) == originals


@pytest.mark.parametrize("writer", EACH_NEW)
def test_old_clients_read_new_ones(writer: Client, broker: Minibroker) -> None:
    topic = f"from-{writer.name.replace(' ', '-')}"
    originals = []
    for codec in CODECS:
        writer.produce(broker.address, topic, codec, f"{codec}-", COUNT)
        originals += expected(f"{codec}-", COUNT)
    for client in OLD_CLIENTS:
        if not client.missing:
            assert client.consume(broker.address, topic, len(originals)) == originals, client


def test_records_of_old_clients_survive_a_kill(broker: Minibroker) -> None:
    broker.kill()
    broker.start()
    originals = _written()
    for topic in FORMATS:
        [reader] = [client for client in NEWEST if not client.needs_java]
        assert reader.consume(broker.address, topic, len(originals)) == originals
