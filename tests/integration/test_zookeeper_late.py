"""A broker whose ZooKeeper server is late serves every topic that the controller tells it of.

Two servers of one ZooKeeper: the leader, and an observer that hears of each change 40 ms later.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import java
from tests.support.broker import wait_until_acquainted
from tests.support.peers import write_properties
from tests.support.processes import ManagedProcess, free_port
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.broker import Minibroker

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
WAIT_S: Final = 180
LATE_S: Final = 0.04
NAMES: Final = [f"t{number}" for number in range(9)]


class LateLink:
    """Carries bytes from a port of its own to another one; those that come back are late."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(WAIT_S)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()  # the leader does not listen yet
            return
        returning = asyncio.create_task(self._bring_late(back, writer))
        with suppress(ConnectionError):  # a server that ends may reset it
            while data := await reader.read(65536):
                forth.write(data)
        await _close(forth)
        await returning

    async def _bring_late(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                self._loop.call_later(LATE_S, writer.write, data)
        end: asyncio.Future[None] = self._loop.create_future()
        self._loop.call_later(LATE_S, end.set_result, None)
        await end
        await _close(writer)

    def close(self) -> None:
        """End the link and its thread. The processes at its ends have ended."""

        async def end() -> None:
            self._server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(WAIT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close; the socket is closed when this returns."""
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


class Servers:
    """A leader and its observer."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._election = free_port(), free_port()
        self._quorum = free_port(), free_port()
        self.clients = free_port(), free_port()
        self._link = LateLink(self._quorum[0])
        self._processes: list[ManagedProcess] = []

    def start(self) -> None:
        """Start both; they answer when this returns."""
        for number in range(2):
            self._start(number)
        for number, process in enumerate(self._processes):
            mode = (b"Mode: leader", b"Mode: observer")[number]
            process.wait_until(lambda: mode in self._say(number), WAIT_S, f"server {number}")  # noqa: B023

    def _start(self, number: int) -> None:
        directory = self._directory / f"zookeeper-{number}"
        (directory / "data").mkdir(parents=True)
        (directory / "data" / "myid").write_text(str(number + 1))
        leader_port = self._link.port if number else self._quorum[0]
        settings = {
            "dataDir": str(directory / "data"),
            "clientPort": str(self.clients[number]),
            "clientPortAddress": "127.0.0.1",
            "tickTime": "1000",
            "initLimit": "30",
            "syncLimit": "30",
            "maxSessionTimeout": "120000",
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "standaloneEnabled": "false",
            "4lw.commands.whitelist": "srvr",
            "server.1": f"127.0.0.1:{leader_port}:{self._election[0]}:participant",
            "server.2": f"127.0.0.1:{self._quorum[1]}:{self._election[1]}:observer",
        }
        if number:
            settings["peerType"] = "observer"
        write_properties(directory / "zoo.cfg", settings)
        command = java.java_command(
            java.KAFKA_39,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(directory / "zoo.cfg"),
            options=[java.log_option("broker")],
        )
        self._processes.append(ManagedProcess(command, directory / "zookeeper.log"))

    def _say(self, number: int) -> bytes:
        try:
            with socket.create_connection(("127.0.0.1", self.clients[number]), 5) as connection:
                connection.sendall(b"srvr")
                return b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return b""

    def stop(self) -> None:
        """End both, and the link between them."""
        for process in self._processes:
            process.kill()
        self._link.close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """Yield both servers, started."""
    late_servers = Servers(tmp_path)
    try:
        late_servers.start()
        yield late_servers
    finally:
        late_servers.stop()


def led_by(broker: Minibroker) -> set[str]:
    """Return the topics whose partition the broker itself serves, as it says."""
    with WireClient(broker.host, broker.port) as client:
        topics = [
            {"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}
            for name in NAMES
        ]
        answer = client.call("list_offsets", 2, replica_id=-1, isolation_level=0, topics=topics)
    return {
        topic["name"] for topic in answer["topics"] if topic["partitions"][0]["error_code"] == 0
    }


def create(admin: AdminClient) -> None:
    for name in NAMES:
        admin.create_topics([NewTopic(name, 1, replica_assignment=[[1]])])[name].result(WAIT_S)


def test_every_topic_is_served_and_deleted_by_a_broker_on_a_late_server(
    servers: Servers, new_broker: Callable[..., Minibroker]
) -> None:
    brokers = []
    for broker_id in range(2):  # broker 0 is the controller
        settings = {"broker.id": str(broker_id), "auto.create.topics.enable": "false"}
        connect = f"127.0.0.1:{servers.clients[broker_id]}/late"
        brokers.append(new_broker(f"data-{broker_id}", zookeeper=connect, settings=settings))
    wait_until_acquainted(brokers)
    admin = AdminClient({"bootstrap.servers": brokers[0].address})
    create(admin)
    wait_until(lambda: led_by(brokers[1]) == set(NAMES), "broker 1 serves every topic", 30)
    for done in admin.delete_topics(NAMES).values():
        done.result(WAIT_S)
    assert list(brokers[1].data_dir.glob("t?-0")) == []
    create(admin)
    wait_until(lambda: led_by(brokers[1]) == set(NAMES), "broker 1 serves them again", 30)
