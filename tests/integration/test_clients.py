"""Real clients against a broker in a process of its own: each reads all records of the others,
once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.clients import CLIENTS, CODECS, Client, expected

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.broker import Minibroker

COUNT = 200

EACH_CLIENT = [
    pytest.param(
        client,
        id=client.name.replace(" ", "-"),
        marks=[pytest.mark.java] if client.needs_java else [],
    )
    for client in CLIENTS
]


@pytest.fixture(autouse=True)
def _client_is_here(request: pytest.FixtureRequest) -> None:
    """Skip tests of kcat, a Debian package, where it is not installed."""
    client = (
        request.node.callspec.params.get("client") if hasattr(request.node, "callspec") else None
    )
    if client is not None and client.name == "kcat" and client.missing:
        pytest.skip(f"not run: {client.missing}")


@pytest.mark.parametrize("client", EACH_CLIENT)
def test_every_codec_is_read_back_by_its_writer(client: Client, minibroker: Minibroker) -> None:
    topic = f"codecs-{client.name.replace(' ', '-')}"
    for codec in CODECS:
        client.produce(minibroker.address, topic, codec, f"{codec}-", COUNT)
    values = client.consume(minibroker.address, topic, COUNT * len(CODECS))
    originals = [value for codec in CODECS for value in expected(f"{codec}-", COUNT)]
    assert values == originals


@pytest.fixture(scope="session")
def mixed_topic(minibroker: Minibroker) -> tuple[str, list[str]]:
    """Return a topic of one partition, written by every Python client with a codec of its own."""
    topic, originals = "mixed-writers", []
    writers = [client for client in CLIENTS if not client.needs_java and client.name != "kcat"]
    for client, codec in zip(writers, ("snappy", "zstd", "lz4"), strict=True):
        prefix = f"{client.name}-{codec}-"
        client.produce(minibroker.address, topic, codec, prefix, COUNT)
        originals += expected(prefix, COUNT)
    return topic, originals


@pytest.mark.parametrize("client", EACH_CLIENT)
def test_every_client_reads_what_the_others_wrote(
    client: Client, minibroker: Minibroker, mixed_topic: tuple[str, list[str]]
) -> None:
    topic, originals = mixed_topic
    assert client.consume(minibroker.address, topic, len(originals)) == originals


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_records_survive_a_restart(stop: str, new_broker: Callable[..., Minibroker]) -> None:
    """Records from before SIGTERM or SIGKILL are read afterwards, in order and once."""
    client = CLIENTS[0]
    broker = new_broker()
    client.produce(broker.address, "kept", "lz4", "before-", COUNT)
    getattr(broker, stop)()
    broker.start()
    assert client.consume(broker.address, "kept", COUNT) == expected("before-", COUNT)
    client.produce(broker.address, "kept", "none", "after-", COUNT)
    getattr(broker, stop)()
    broker.start()
    originals = expected("before-", COUNT) + expected("after-", COUNT)
    assert client.consume(broker.address, "kept", 2 * COUNT) == originals


def test_an_idempotent_producer_outlives_a_kill(new_broker: Callable[..., Minibroker]) -> None:
    """One producer object keeps producing over two kill -9; every record is there once."""
    from confluent_kafka import Producer  # noqa: PLC0415

    broker = new_broker()
    failures: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "enable.idempotence": True,
            "linger.ms": 1,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            failures.append(error)

    for step in range(3):
        for number in range(COUNT):
            producer.produce("once", value=f"{step}-{number}", on_delivery=delivered)
        producer.poll(0.01)
        if step < 2:
            broker.kill()
            broker.start()
    assert producer.flush(180) == 0
    assert not failures
    originals = [f"{step}-{n}" for step in range(3) for n in range(COUNT)]
    assert CLIENTS[0].consume(broker.address, "once", len(originals)) == originals


@pytest.mark.java
def test_the_java_client_writes_over_a_kill(new_broker: Callable[..., Minibroker]) -> None:
    """Idempotent Java producers before and after a kill -9, another client reads."""
    java = next(client for client in CLIENTS if client.needs_java)
    broker = new_broker()
    java.produce(broker.address, "once", "zstd", "a-", COUNT)
    broker.kill()
    broker.start()
    java.produce(broker.address, "once", "snappy", "b-", COUNT)
    values = CLIENTS[1].consume(broker.address, "once", 2 * COUNT)
    assert values == expected("a-", COUNT) + expected("b-", COUNT)
