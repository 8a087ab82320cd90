"""Raw connections to the nodes of a cluster, for questions that no client library asks."""

from __future__ import annotations

import socket
import ssl
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator

METADATA_VERSION = 12


class Login(NamedTuple):
    """A user of a listener with SASL_SSL, mechanism PLAIN."""

    user: str
    password: str
    ca_file: str

    def librdkafka(self) -> dict[str, str]:
        """Return the settings for librdkafka."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": self.user,
            "sasl.password": self.password,
            "ssl.ca.location": self.ca_file,
        }


class NodeClient(WireClient):
    """A connection to a node, logged in where it asks for that."""

    def __init__(self, host: str, port: int, login: Login | None = None) -> None:
        super().__init__(host, port)
        if login is None:
            return
        context = ssl.create_default_context(cafile=login.ca_file)
        self.socket: socket.socket = context.wrap_socket(self.socket, server_hostname=host)
        handshake = self.call("sasl_handshake", 1, mechanism="PLAIN")
        assert not handshake["error_code"], handshake
        words = f"\0{login.user}\0{login.password}".encode()
        answer = self.call("sasl_authenticate", 2, auth_bytes=words)
        assert not answer["error_code"], answer


class Nodes:
    """A connection to each node of a cluster."""

    def __init__(self, address: str, login: Login | None = None) -> None:
        host, port = address.rsplit(":", 1)
        with NodeClient(host, int(port), login) as client:
            brokers = client.call("metadata", METADATA_VERSION, topics=[])["brokers"]
        with ExitStack() as connections:
            self.clients = {
                broker["node_id"]: connections.enter_context(
                    NodeClient(broker["host"], broker["port"], login)
                )
                for broker in brokers
            }
            self._connections = connections.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connections.close()

    def any(self, api: str, version: int, /, **fields: Any) -> dict[str, Any]:
        """Return the answer of the node with the lowest id."""
        return self.clients[min(self.clients)].call(api, version, **fields)

    def each(self, api: str, version: int, /, **fields: Any) -> Iterator[dict[str, Any]]:
        """Yield the answer of each node."""
        for client in self.clients.values():
            yield client.call(api, version, **fields)
