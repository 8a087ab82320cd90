"""The clients of `benchmarks.secured`, each a process of its own: logins by SCRAM, TLS handshakes.

    python -m benchmarks.secured_clients login PORT SECONDS
    python -m benchmarks.secured_clients shake PORT CA RATE SECONDS

The process prints a line when it is ready, begins when it reads one, and prints how many it did.
Each client derives its keys once: that takes a client longer than the rest of a login, and is no
work of the broker.
"""

import base64
import hashlib
import hmac
import os
import socket
import ssl
import struct
import sys
import time
from functools import cache
from typing import Final, NamedTuple

from benchmarks import open_loop, wire

USER: Final = "alice"
PASSWORD: Final = "alice-secret"
SALT: Final = b"salt of alice"
ITERATIONS: Final = 4096
MECHANISM: Final = "SCRAM-SHA-256"
HASH: Final = "sha256"
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
_pause = time.sleep


class LoginError(Exception):
    """The broker refused a login."""


def salted_password(salt: bytes = SALT, iterations: int = ITERATIONS) -> bytes:
    """Return what the keys of the user are derived from."""
    return hashlib.pbkdf2_hmac(HASH, PASSWORD.encode(), salt, iterations)


class Keys(NamedTuple):
    """The keys that a client derives from its password."""

    client: bytes
    stored: bytes
    server: bytes


@cache
def keys_of(salt: bytes, iterations: int) -> Keys:
    """Return the keys of the user with this salt."""
    salted = salted_password(salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", HASH)
    server_key = hmac.digest(salted, b"Server Key", HASH)
    return Keys(client_key, hashlib.sha256(client_key).digest(), server_key)


class ScramLogin:
    """Logs in again and again, each time on a connection of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._handshake = wire.frame(SASL_HANDSHAKE, 1, wire.string(MECHANISM))

    def run(self) -> None:
        """Log in once. Raises LoginError."""
        connection = wire.Connection(self._port)
        try:
            (error,) = struct.unpack_from(">h", connection.ask(self._handshake))
            if error:
                raise LoginError(f"SaslHandshake answered error {error}")
            bare = f"n={USER},r={base64.b64encode(os.urandom(18)).decode()}"
            first = self._ask(connection, f"n,,{bare}")
            nonce, salt, iterations = first.split(",")[:3]
            keys = keys_of(base64.b64decode(salt[2:]), int(iterations[2:]))
            unsigned = f"c=biws,{nonce}"
            signed = f"{bare},{first},{unsigned}".encode()
            signature = hmac.digest(keys.stored, signed, HASH)
            pairs = zip(keys.client, signature, strict=True)
            proof = base64.b64encode(bytes(a ^ b for a, b in pairs)).decode()
            last = self._ask(connection, f"{unsigned},p={proof}")
            expected = base64.b64encode(hmac.digest(keys.server, signed, HASH)).decode()
            if last != f"v={expected}":
                raise LoginError(f"the broker proved nothing: {last}")
        finally:
            connection.close()

    @staticmethod
    def _ask(connection: wire.Connection, message: str) -> str:
        token = struct.pack(">i", len(message)) + message.encode()
        body = connection.ask(wire.frame(SASL_AUTHENTICATE, 1, token))
        error, message_bytes = struct.unpack_from(">hh", body)
        if error:
            raise LoginError(f"SaslAuthenticate answered error {error}")
        position = 4 + max(0, message_bytes)
        (size,) = struct.unpack_from(">i", body, position)
        return body[position + 4 : position + 4 + size].decode()


def log_in_for(port: int, seconds: float) -> int:
    """Log in for so long; return how often."""
    login = ScramLogin(port)
    login.run()
    _wait_for_start()
    count, deadline = 0, time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        login.run()
        count += 1
    return count


def shake_hands_for(port: int, trusted: str, rate_per_s: int, seconds: float) -> int:
    """Do whole TLS handshakes at this rate, or as many as go; return how many."""
    context = ssl.create_default_context(cafile=trusted)
    _wait_for_start()
    start_s = time.perf_counter()
    due_s = open_loop.spread(int(rate_per_s * seconds), rate_per_s, seed=17)
    count = 0
    for due in due_s:
        _pause(max(0.0, start_s + due - time.perf_counter()))
        if time.perf_counter() > start_s + seconds:
            break  # the broker, or this client, cannot do so many
        with (
            socket.create_connection(("127.0.0.1", port), 30) as plain,
            context.wrap_socket(plain, server_hostname="localhost"),
        ):
            count += 1
    return count


def _wait_for_start() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def main() -> None:
    """Do what the arguments say, and print how often."""
    kind, port, *rest = sys.argv[1:]
    if kind == "login":
        count = log_in_for(int(port), float(rest[0]))
    else:
        count = shake_hands_for(int(port), rest[0], int(rest[1]), float(rest[2]))
    print(count, flush=True)


if __name__ == "__main__":
    main()
