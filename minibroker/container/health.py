"""The image's health check: healthy when a client would succeed, not when a process is there.

It asks like a client: it connects to a listener, sends ApiVersions and Metadata, and expects
answers without an error and with a broker. It uses plain sockets and two fixed requests, because it
runs every few seconds and must be cheap. `launch` has written down where the broker listens; the
advertised address may exist only outside the container.

Where every listener is secured, it goes as far as a client without credentials: through the TLS
handshake, to the answer to ApiVersions. A broker that wants a certificate of it is ready, too.

The exit code is 0 if the broker is ready; else it is 1, with a sentence on stderr.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Final, NamedTuple

TEMPORARY: Final = os.environ.get("TMPDIR") or "/tmp"
LISTENER_FILE: Final = f"{TEMPORARY}/minibroker.listener"
"""One line, HOST:PORT PROTOCOL: where `launch` has told the broker to listen."""

_TIMEOUT_S: Final = 2.0
_CLIENT_ID: Final = b"health"
_API_VERSIONS: Final = 18
_METADATA: Final = 3
_ANSWER_BYTES_MAX: Final = 1 << 20
_LOOPBACK: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class AskedListener(NamedTuple):
    """A listener of the broker in this container."""

    host: str
    port: int
    protocol: str


class NotReady(Exception):  # noqa: N818  it is an answer, not a mistake
    """The reason why a client would not succeed, in one sentence."""


def main(listener_file: str = LISTENER_FILE) -> int:
    """Ask once; return the exit code of the check."""
    try:
        check(read_address(listener_file))
    except NotReady as reason:
        sys.stderr.write(f"not ready: {reason}\n")
        return 1
    return 0


def read_address(listener_file: str) -> AskedListener:
    """Return the listener to ask; loopback for a broker that listens everywhere. Raises
    NotReady.
    """
    try:
        with open(listener_file, encoding="utf-8") as file:  # noqa: PTH123  pathlib costs 3 ms
            line = file.read().strip()
    except OSError as error:
        raise NotReady(f"no broker was started yet ({listener_file}: {error.strerror})") from None
    address, _, protocol = line.partition(" ")
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) <= 65535:
        raise NotReady(f"{listener_file} says {line!r}, expected HOST:PORT PROTOCOL")
    host = host.strip("[]")
    return AskedListener(_LOOPBACK.get(host, host), int(port), protocol or "PLAINTEXT")


def connected(listener: AskedListener) -> socket.socket:
    """Return a connection, behind the TLS handshake if there is one. Raises OSError."""
    connection = socket.create_connection(listener[:2], _TIMEOUT_S)
    if not listener.protocol.endswith("SSL"):
        return connection
    import ssl  # noqa: PLC0415  10 ms, which most do without

    # Whether the certificate is good is the clients' question: they know the CA.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        return context.wrap_socket(connection)
    except BaseException:
        connection.close()
        raise


def check(listener: AskedListener) -> None:
    """Ask ApiVersions v0, and Metadata v1 without topics. Raises NotReady."""
    metadata = None
    try:
        with connected(listener) as connection:
            versions = ask(connection, _API_VERSIONS, 0, b"")
            if not listener.protocol.startswith("SASL"):
                metadata = ask(connection, _METADATA, 1, (0).to_bytes(4, "big"))
    except OSError as error:
        if _wants_certificate(error):
            return
        raise NotReady(f"{listener.host}:{listener.port}: {error}") from None
    if versions[:2] != b"\0\0":
        raise NotReady(f"ApiVersions was answered with error {int.from_bytes(versions[:2], 'big')}")
    if metadata is not None and int.from_bytes(metadata[:4], "big") < 1:
        raise NotReady("the broker is not registered yet: Metadata names no broker")


def _wants_certificate(error: OSError) -> bool:
    """Return whether the broker has ended a TLS handshake because no certificate was shown."""
    return "CERTIFICATE_REQUIRED" in (getattr(error, "reason", None) or "")


def ask(connection: socket.socket, api_key: int, version: int, body: bytes) -> bytes:
    """Send a request; return its answer (big-endian) without the correlation id. Raises OSError."""
    correlation_id = api_key.to_bytes(4, "big")
    header = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + correlation_id
    request = header + len(_CLIENT_ID).to_bytes(2, "big") + _CLIENT_ID + body
    connection.sendall(len(request).to_bytes(4, "big") + request)
    size = int.from_bytes(_receive(connection, 4), "big")
    if not 8 <= size <= _ANSWER_BYTES_MAX:
        raise ConnectionError(f"an answer of {size} bytes, which is none of Kafka's")
    answer = _receive(connection, size)
    if answer[:4] != correlation_id:
        raise ConnectionError("an answer to another request, which is none of Kafka's")
    return answer[4:]


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(min(size - len(received), 65536))
        if not part:
            raise ConnectionError("the broker closed the connection")
        received += part
    return bytes(received)


if __name__ == "__main__":
    sys.exit(main())
