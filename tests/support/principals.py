"""Connections with a principal of the test's choice, on a PLAINTEXT listener.

The listener gives `User:ANONYMOUS`. These tests are about permissions, not about the way in which a
client proves its identity, so they set the principal of a connection in the broker.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient
    from tests.support.wire import WireClient


async def connect_as(running: InProcessBroker, principal: str) -> RawClient:
    """Return a new connection of this principal."""
    client = await running.connect()
    await client.call(ApiVersionsRequest(), 0)  # the broker has accepted it
    host, port = client.writer.get_extra_info("sockname")[:2]
    (context,) = [
        connection._context  # type: ignore[attr-defined]
        for connection in running.server.connections
        if connection._context.client_address == f"{host}:{port}"  # type: ignore[attr-defined]
    ]
    context.identify(principal)
    return client


# Logins of a raw client on a listener with SASL and without TLS.


def log_in(client: WireClient, user: str, password: str) -> int:
    """Log in by PLAIN; return the error code."""
    answer = client.call("sasl_handshake", 1, mechanism="PLAIN")
    assert answer["error_code"] == 0, answer
    token = f"\0{user}\0{password}".encode()
    return int(client.call("sasl_authenticate", 1, auth_bytes=token)["error_code"])


def log_in_by_token(client: WireClient, token_id: str, secret: bytes) -> int:
    """Log in by a delegation token, with SCRAM-SHA-512; return the error code."""
    return log_in_by_scram(
        client, token_id, base64.b64encode(secret).decode(), extension=",tokenauth=true"
    )


def log_in_by_scram(client: WireClient, user: str, password: str, *, extension: str = "") -> int:
    """Log in by SCRAM-SHA-512; return the first error code that is not 0."""
    name = "sha512"
    answer = client.call("sasl_handshake", 1, mechanism="SCRAM-SHA-512")
    assert answer["error_code"] == 0, answer
    bare = f"n={user},r=nonceoftheclient{extension}"
    answer = client.call("sasl_authenticate", 1, auth_bytes=f"n,,{bare}".encode())
    if answer["error_code"]:
        return int(answer["error_code"])
    first = answer["auth_bytes"].decode()
    parts = dict(part.partition("=")[::2] for part in first.split(","))
    salt, iterations = base64.b64decode(parts["s"]), int(parts["i"])
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    unsigned = f"c=biws,r={parts['r']}"
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    signature = hmac.digest(stored_key, f"{bare},{first},{unsigned}".encode(), name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    last = f"{unsigned},p={base64.b64encode(proof).decode()}"
    return int(client.call("sasl_authenticate", 1, auth_bytes=last.encode())["error_code"])
