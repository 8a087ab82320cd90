"""The cluster that a script asks: its options, and the client for it.

`--zookeeper HOST:PORT` of old scripts stands for the brokers that are registered there. Where this
container has a broker that keeps its own metadata, that broker is asked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.tree import TreeError
from minibroker.client.client import Client
from minibroker.client.given_settings import for_reader, for_writer
from minibroker.client.settings import client_settings
from minibroker.container.health import LISTENER_FILE, NotReady, read_address
from minibroker.container.scripts.options import ScriptError, ScriptOption, WordsError
from minibroker.kafka.errors import ConfigError, CoordinationError
from minibroker.kafka.java_formats.properties import read_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.container.scripts.options import Words

SERVERS: Final = ("bootstrap-server", "broker-list")
CONFIG_FILES: Final = ("command-config", "producer.config", "consumer.config")
PROPERTIES: Final = ("command-property", "producer-property", "consumer-property")
ZOOKEEPER: Final = "zookeeper"
ZOOKEEPER_MS: Final = 10_000
TIMEOUT_S: Final = 30.0
"""For a controller that changes, as in Kafka's admin client."""

OPTIONS: Final = {
    "bootstrap-server": ScriptOption("HOST:PORT[,…]", "the brokers to connect to"),
    "command-config": ScriptOption("FILE", "settings of the client, in a properties file"),
    "zookeeper": ScriptOption(
        "HOST:PORT", "old scripts: the ZooKeeper where the brokers are registered"
    ),
}
_OF_PRODUCERS: Final = frozenset(
    {
        *("acks", "batch.size", "buffer.memory", "compression.type", "delivery.timeout.ms"),
        *("enable.idempotence", "key.serializer", "linger.ms", "max.block.ms"),
        *("max.in.flight.requests.per.connection", "max.request.size", "value.serializer"),
    }
)
"""Settings of a producer that are not about its connections."""


def settings_of(words: Words) -> dict[str, str]:
    """Return the settings of the client, the address among them. Raises ScriptError."""
    settings: dict[str, str] = {}
    try:
        for path in words.all(*CONFIG_FILES):
            settings |= read_properties(path)
    except ConfigError as error:
        raise ScriptError(str(error)) from None
    for pair in words.all(*PROPERTIES):
        key, equals, value = pair.partition("=")
        if not equals:
            raise WordsError(f"Invalid property {pair!r}: expected KEY=VALUE")
        settings[key] = value
    servers = words.value(*SERVERS)
    if not servers and words.has(ZOOKEEPER):
        servers = _servers_at(words.value(ZOOKEEPER))
    if servers:
        settings["bootstrap.servers"] = servers
    if not settings.get("bootstrap.servers"):
        raise WordsError("--bootstrap-server must be specified")
    return settings


def reader_of(words: Words) -> Client:
    """Return a client that reads and administers. Raises ScriptError."""
    return _client(for_reader, settings_of(words))


def writer_of(settings: Mapping[str, str]) -> Client:
    """Return a client that writes; a topic that is missing may be made. Raises ScriptError."""
    own = {name: value for name, value in settings.items() if name not in _OF_PRODUCERS}
    return _client(for_writer, own, creates_topics=True)


def _client(translate, settings: Mapping[str, str], *, creates_topics: bool = False) -> Client:  # type: ignore[no-untyped-def]
    try:
        return Client(client_settings(translate(settings)), creates_topics=creates_topics)
    except ConfigError as error:
        raise ScriptError(str(error)) from None


def _servers_at(connect: str) -> str:
    """Return the addresses of brokers that are registered in a ZooKeeper. Raises ScriptError."""
    try:
        listener = read_address(LISTENER_FILE)
    except NotReady:
        return _registered_at(connect)
    if listener.protocol != "PLAINTEXT":
        raise ScriptError(
            f"--zookeeper {connect}: the broker of this container has no listener without a login; "
            "use --bootstrap-server and --command-config"
        )
    return f"{listener.host}:{listener.port}"


def _registered_at(connect: str) -> str:
    import asyncio  # noqa: PLC0415  half of the time of a start, that only old scripts pay

    try:
        servers = asyncio.run(_addresses(connect))
    except (CoordinationError, TreeError, OSError, ValueError, KeyError) as error:
        raise ScriptError(f"--zookeeper {connect}: {error or 'no answer'}") from None
    if not servers:
        raise ScriptError(
            f"--zookeeper {connect}: no broker with a PLAINTEXT listener is registered there; use "
            "--bootstrap-server"
        )
    return ",".join(servers)


async def _addresses(connect: str) -> list[str]:
    from minibroker.broker.cluster.zookeeper import ZooKeeperTree  # noqa: PLC0415  as above

    tree = ZooKeeperTree(connect, connection_timeout_ms=ZOOKEEPER_MS)
    await tree.open()
    servers: list[str] = []
    try:
        for name in await tree.children("/brokers/ids"):
            data, _ = await tree.get(f"/brokers/ids/{name}")
            broker = json.loads(data)
            protocols = broker.get("listener_security_protocol_map", {})
            for endpoint in broker["endpoints"]:
                listener, _, address = endpoint.partition("://")
                if protocols.get(listener, listener) == "PLAINTEXT":
                    servers.append(address)
    finally:
        await tree.close()
    return servers
