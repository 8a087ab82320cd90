"""A TCP proxy that keeps answers to itself: the work is done, and the client never hears of it.

Clients stay with it, because answers that name the broker name the proxy instead. Each direction of
a connection has a thread; requests pass on as they come, so pipelining is kept. Errors, delays and
dropped connections are rules of `minibroker.testing.Proxy`.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from types import SimpleNamespace
from typing import Any

from minibroker.broker.server.answers import Answer
from minibroker.kafka.protocol.api_keys import APIS, FIND_COORDINATOR, METADATA, load_messages
from minibroker.kafka.protocol.header import parse_request_header, response_header_version
from minibroker.kafka.protocol.primitives import Reader
from tests.support.connection import receive_exactly

_VERSIONS = (0, 99)


class SwallowingProxy:
    """A proxy before the broker at `address` (HOST:PORT)."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._broker = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.swallowed: str | None = None
        """Answers to requests of this kind do not reach the client; None: all do.

        A connection whose answer was kept back gives its client no later one either: a client takes
        the answers in the order of its requests.
        """
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def address(self) -> str:
        """Return HOST:PORT for clients."""
        return "{}:{}".format(*self._listener.getsockname())

    def close(self) -> None:
        """Take no new connections; open ones end with their clients.

        The thread has ended when this returns. A thread that still waits in accept() would take
        the connections of a later listener that gets the same file descriptor.
        """
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        open_requests: dict[int, tuple[int, int]] = {}
        with client:
            try:
                broker = socket.create_connection(self._broker)
            except OSError:
                return  # it is down; the client finds its connection closed
            self._carry(client, broker, open_requests)

    def _carry(
        self,
        client: socket.socket,
        broker: socket.socket,
        open_requests: dict[int, tuple[int, int]],
    ) -> None:
        with broker:
            back = threading.Thread(target=self._bring_back, args=(broker, client, open_requests))
            back.start()
            with contextlib.suppress(OSError):
                while True:
                    request = _receive(client)
                    api_key, version, correlation_id, *_ = parse_request_header(request)
                    open_requests[correlation_id] = (api_key, version)
                    broker.sendall(len(request).to_bytes(4, "big") + request)
            _end(broker)
            back.join()

    def _bring_back(
        self,
        broker: socket.socket,
        client: socket.socket,
        open_requests: dict[int, tuple[int, int]],
    ) -> None:
        is_silent = False
        with contextlib.suppress(OSError):
            while True:
                answer = _receive(broker)
                api_key, version = open_requests.pop(int.from_bytes(answer[:4], "big"))
                is_silent = is_silent or APIS[api_key].name == self.swallowed
                if is_silent:
                    continue
                if api_key in (METADATA, FIND_COORDINATOR):
                    client.sendall(self._with_own_address(answer, api_key, version))
                else:
                    client.sendall(len(answer).to_bytes(4, "big") + answer)
        _end(client)

    def _with_own_address(self, answer: bytes, api_key: int, version: int) -> bytes:
        position = 4 + response_header_version(api_key, version)  # no tagged fields: one byte
        _, response_type = load_messages(api_key)
        response = response_type.read(Reader(answer, position), version)
        brokers = [
            response,
            *getattr(response, "brokers", ()),
            *getattr(response, "coordinators", ()),
        ]
        for broker in brokers:
            if getattr(broker, "port", None) == self._broker[1]:
                broker.host, broker.port = self._listener.getsockname()
        return _frame(api_key, version, answer, response)


def _frame(api_key: int, version: int, correlation_id: bytes, response: Any) -> bytes:
    handler: Any = SimpleNamespace(api_key=api_key)
    number = int.from_bytes(correlation_id[:4], "big")
    parts = Answer(handler, response, version, number).encode(0)
    return b"".join(bytes(part) for part in parts)


def _receive(connection: socket.socket) -> bytes:
    return receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
