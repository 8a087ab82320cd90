"""Kafka services of fifty public compose and CI files start unchanged, on the image's files.

Each row of `compose_services` is started as Docker would start it: its variables and its command,
its host name, its mounted files, a network in which its ZooKeeper answers. Then a client of
aiokafka stands where the file's clients stand, on the host behind the published ports or in
another container. It makes a topic, writes a record and reads it. The file's health check and the
commands that prepare the broker are run, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import TYPE_CHECKING, Any, Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from kazoo.client import KazooClient

from tests.integration.compose_services import REFUSED, SERVICES, Refused, Service, variables_of
from tests.support import compose_network, container
from tests.support.certificates import (
    STORES,
    authority_pem,
    broker_certificate,
    client_certificate,
    pkcs12_of,
    trusted_pkcs12,
)
from tests.support.compose_network import Link, Place, within
from tests.support.container import Container, build_layer
from tests.support.memory import directory_in_memory
from tests.support.peers import ZooKeeper

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


pytestmark = pytest.mark.timeout(300)  # the first one makes the image's files

MISSING: Final = container.missing() or compose_network.missing()
needs_places = pytest.mark.skipif(MISSING is not None, reason=f"no container: {MISSING}")
RUNNING: Final = "Transitioning from RECOVERY to RUNNING"
TOPIC: Final = "of-the-client"
WAIT_S: Final = 60


@pytest.fixture(scope="module")
def layer() -> Iterator[Path]:
    with directory_in_memory() as directory:
        yield build_layer(directory)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the stores of a broker and the PEM files of its clients."""
    directory = tmp_path_factory.mktemp("tls")
    (directory / "keystore.p12").write_bytes(pkcs12_of(broker_certificate(), "secret"))
    (directory / "truststore.p12").write_bytes(trusted_pkcs12("secret"))
    (directory / "both.p12").write_bytes((STORES / "both.p12").read_bytes())
    (directory / "ca.pem").write_text(authority_pem())
    own = client_certificate()
    pems = (own.private_key_pem, *own.cert_chain_pems)
    (directory / "client.pem").write_bytes(b"".join(pem.bytes() for pem in pems))
    return directory


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every name of a host be loopback, as each place has all services there."""
    find = socket.getaddrinfo

    def look_up(host: Any, *more: Any, **options: Any) -> Any:
        is_address = host is None or host.replace(".", "").isdecimal()
        return find(host if is_address else "127.0.0.1", *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.fixture(scope="module")
def own_zookeeper(peers_directory: Path) -> Iterator[ZooKeeper]:
    """Yield a ZooKeeper for these files alone: each of them finds it empty, without a chroot."""
    server = ZooKeeper(peers_directory / "zookeeper-of-compose-files")
    server.start()
    yield server
    server.stop()


@needs_places
@pytest.mark.parametrize(
    "service",
    [
        pytest.param(
            service,
            id=service.source,
            marks=[pytest.mark.java] if service.zookeeper else [],
        )
        for service in SERVICES
    ],
)
def test_a_public_file_starts_unchanged(
    service: Service, layer: Path, tls: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with contextlib.ExitStack() as stack:
        inside, outside = Place(), Place(service.addresses)
        stack.callback(inside.close)
        stack.callback(outside.close)
        if service.zookeeper:
            zookeeper: ZooKeeper = request.getfixturevalue("own_zookeeper")
            empty(zookeeper)
            port = int(service.zookeeper.rpartition(":")[2])
            stack.enter_context(Link(inside, port, None, zookeeper.port))
        if service.outside:
            port = int(service.outside.rpartition(":")[2])
            stack.enter_context(Link(outside, port, inside, service.ports.get(port, port)))
        started = Container(
            layer,
            tmp_path / "container",
            service.command,
            variables=variables_of(service.variables),
            place=inside,
            hostname=service.hostname,
            files=mounted(service, tls),
        )
        stack.callback(started.stop)
        started.wait_for_line(RUNNING)
        health = started.execute("/opt/minibroker/bin/health")
        assert (health.returncode, health.stderr) == (0, "")
        for command in (service.health, *(("sh", "-c", line) for line in service.prepare)):
            if command:
                done = started.execute(*command)
                assert done.returncode == 0, (command, done.stdout, done.stderr)
        if service.outside:
            check(outside, service.outside, service.outside_client, tls)
        if service.inside:
            check(inside, service.inside, service.inside_client, tls)
        has_topics(service, inside, outside, tls)
        log = started.log.read_text()
        assert "unknown configuration keys" not in log or "ignored: " in log
        assert "ERROR" not in log


def mounted(service: Service, tls: Path) -> dict[str, str | bytes]:
    """Return path → content of what the file mounts, and the hosts that its network knows."""
    names = {service.hostname, *(entry.partition(":")[0] for entry in zookeepers(service))}
    hosts = "127.0.0.1 localhost " + " ".join(sorted(names - {"localhost", ""}))
    files: dict[str, str | bytes] = {"/etc/hosts": f"{hosts}\n"}
    for path, content in service.files.items():
        is_made = content.startswith("@")
        files[path] = (tls / content[1:]).read_bytes() if is_made else content
    return files


def zookeepers(service: Service) -> list[str]:
    """Return HOST:PORT of each ZooKeeper in the variables."""
    variables = variables_of(service.variables)
    both = ("KAFKA_ZOOKEEPER_CONNECT", "KAFKA_CFG_ZOOKEEPER_CONNECT")
    return next((variables[name].split(",") for name in both if name in variables), [])


def empty(zookeeper: ZooKeeper) -> None:
    """Remove what the service before has left: each file has a ZooKeeper of its own."""
    client = KazooClient(zookeeper.connect)
    client.start(WAIT_S)
    for name in client.get_children("/"):
        if name != "zookeeper":
            client.delete(f"/{name}", recursive=True)
    client.stop()
    client.close()


def settings_of(address: str, settings: Mapping[str, str], tls: Path) -> dict[str, Any]:
    """Return what a client of aiokafka takes."""
    files = {name: str(tls / file) for name, file in settings.items() if name.startswith("ssl_")}
    client_settings: dict[str, Any] = {"bootstrap_servers": address}
    client_settings |= {name: text for name, text in settings.items() if name not in files}
    if files:
        context = ssl.create_default_context(cafile=files["ssl_cafile"])
        if "ssl_certfile" in files:
            context.load_cert_chain(files["ssl_certfile"])
        client_settings["ssl_context"] = context
    return client_settings


def check(place: Place, address: str, settings: Mapping[str, str], tls: Path) -> None:
    """Write a record as a client in this place, and read it."""
    client = settings_of(address, settings, tls)

    async def write_and_read() -> list[bytes]:
        admin = AIOKafkaAdminClient(**client)
        await admin.start()
        if TOPIC not in await admin.list_topics():
            await admin.create_topics([NewTopic(TOPIC, 1, 1)])
        await admin.close()
        async with AIOKafkaProducer(**client) as producer:
            metadata = await producer.send_and_wait(TOPIC, address.encode())
        async with AIOKafkaConsumer(TOPIC, auto_offset_reset="earliest", **client) as consumer:
            values: list[bytes] = []
            while len(values) <= metadata.offset:
                values.append((await consumer.getone()).value)
            return values

    async def in_time() -> list[bytes]:
        return await asyncio.wait_for(write_and_read(), WAIT_S)

    assert within(place, lambda: asyncio.run(in_time()))[-1] == address.encode()


def has_topics(service: Service, inside: Place, outside: Place, tls: Path) -> None:
    """Check that the topics that the variables name are there, with their partitions."""
    if not service.topics:
        return
    if service.inside:
        place, client = inside, settings_of(service.inside, service.inside_client, tls)
    else:
        place, client = outside, settings_of(service.outside, service.outside_client, tls)

    async def describe() -> dict[str, int]:
        admin = AIOKafkaAdminClient(**client)
        await admin.start()
        described = await admin.describe_topics(list(service.topics))
        await admin.close()
        return {topic["topic"]: len(topic["partitions"]) for topic in described}

    assert within(place, lambda: asyncio.run(describe())) == service.topics


@needs_places
@pytest.mark.parametrize("service", REFUSED, ids=[service.source for service in REFUSED])
def test_a_file_that_cannot_be_served_ends_with_one_sentence(
    service: Refused, layer: Path, tmp_path: Path
) -> None:
    place = Place()
    ended = Container(
        layer, tmp_path / "container", variables=variables_of(service.variables), place=place
    )
    assert ended.process.popen.wait(180) == 1
    ended.stop()
    place.close()
    lines = ended.log.read_text().splitlines()
    assert lines[-1].startswith("minibroker: ")
    assert service.sentence in lines[-1]
