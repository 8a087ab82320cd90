"""The network of a compose file without Docker: one container, and the host that publishes ports.

Two network namespaces stand for the two places of a client. `inside` is the network of the
containers: every service has the same address there, loopback. `outside` is the host: it has
loopback too, and the published ports, which lead to ports of the container. A third place, this
process's own network, has services that tests share, such as a ZooKeeper.

    client in `outside` ─► localhost:9092 ─► Link ─► port 9094 in `inside` ─► the container

`within` runs a function in one of the places: what it connects to is there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import socket
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Result = TypeVar("Result")

NEW_NETWORK: Final = 0x40000000
"""CLONE_NEWNET of Linux."""
JOIN_SECONDS: Final = 120
CHUNK_BYTES: Final = 1 << 16


class Place:
    """A network namespace with loopback and more addresses; it lives until `close`."""

    def __init__(self, addresses: Iterable[str] = ()) -> None:
        more = "".join(f"ip addr add {address}/32 dev lo; " for address in addresses)
        script = f"ip link set lo up; {more}echo; exec cat"
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline(), "no network namespace"
        self.path = Path("/proc", str(self._holder.pid), "ns", "net")

    def close(self) -> None:
        """End the namespace with everything that listens in it."""
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.close()
        self._holder.wait(JOIN_SECONDS)
        self._holder.stdout.close()


def within(place: Place | None, work: Callable[[], Result]) -> Result:
    """Return what `work` returns; the sockets it opens are in the place. None: this network.

    It runs in a thread of its own, because a namespace belongs to a thread. Threads that it starts
    are in the place, too.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            if place is not None:
                _enter(place.path)
            results.append(work())
        except BaseException as error:  # raised again by the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(JOIN_SECONDS)
    if errors:
        raise errors[0]
    assert results, "the work did not end"
    return results[0]


def _enter(path: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("rb") as namespace:
        if libc.setns(namespace.fileno(), NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "setns")


class Link:
    """Connections to a port of one place go to a port of another one, as Docker publishes ports."""

    def __init__(self, source: Place, port: int, target: Place | None, target_port: int) -> None:
        self._target, self._target_port = target, target_port
        self._listening = within(source, lambda: socket.create_server(("", port)))
        self._wake, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()
        self._thread.join(JOIN_SECONDS)
        self._listening.close()
        self._wake.close()

    def _run(self) -> None:
        peers: dict[socket.socket, socket.socket] = {}
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    ready = key.fileobj
                    assert isinstance(ready, socket.socket)
                    if ready is self._wake:
                        for connection in peers:
                            connection.close()
                        return
                    if ready is self._listening:
                        self._accept(selector, peers)
                    elif ready in peers:
                        self._pass_on(ready, selector, peers)

    def _accept(
        self, selector: selectors.BaseSelector, peers: dict[socket.socket, socket.socket]
    ) -> None:
        client, _ = self._listening.accept()
        try:
            server = within(
                self._target, lambda: socket.create_connection(("127.0.0.1", self._target_port))
            )
        except OSError:  # nobody listens there: the client sees that its connection ends
            client.close()
            return
        for connection, peer in ((client, server), (server, client)):
            peers[connection] = peer
            selector.register(connection, selectors.EVENT_READ)

    @staticmethod
    def _pass_on(
        ready: socket.socket,
        selector: selectors.BaseSelector,
        peers: dict[socket.socket, socket.socket],
    ) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = ready.recv(CHUNK_BYTES)
            peers[ready].sendall(data)
        if data:
            return
        for connection in (ready, peers[ready]):
            selector.unregister(connection)
            del peers[connection]
            connection.close()


def missing() -> str | None:
    """Return why no such network can be made here, None if one can."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    trial = subprocess.run(
        ["unshare", "--net", "ip", "link", "set", "lo", "up"],
        capture_output=True,
        text=True,
        check=False,
    )
    return trial.stderr.strip() if trial.returncode else None
