"""A TCP proxy that keeps every request and its answer, for recording golden bytes.

Each connection has a thread, which does one exchange at a time: it reads a frame from the client,
passes it on, reads the answer and passes that back. So order is kept, pipelining is not.
`needs_answer` is false for a request without an answer (acks = 0).
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, NamedTuple

from tests.support.connection import receive_exactly

if TYPE_CHECKING:
    from collections.abc import Callable


class Recorded(NamedTuple):
    """One exchange, both frames without their length; the answer is None if there is none."""

    request: bytes
    answer: bytes | None


class RecordingProxy:
    """Listens on a free port of 127.0.0.1 and talks to `target_port` there."""

    def __init__(self, needs_answer: Callable[[bytes], bool]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.target_port = 0
        self.exchanges: list[Recorded] = []
        self.needs_answer = needs_answer
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def address(self) -> str:
        """Return HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    def take(self) -> list[Recorded]:
        """Return the records since the last call."""
        recorded, self.exchanges = self.exchanges, []
        return recorded

    def close(self) -> None:
        """Take no new connections, and end their thread; open ones end with their clients."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            client,
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.target_port)) as broker,
        ):
            while True:
                request = _receive(client)
                broker.sendall(len(request).to_bytes(4, "big") + request)
                answer = None
                if self.needs_answer(request):
                    answer = _receive(broker)
                    client.sendall(len(answer).to_bytes(4, "big") + answer)
                self.exchanges.append(Recorded(request, answer))


def _receive(connection: socket.socket) -> bytes:
    return receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))
