"""Logins of a client, as exchanges of tokens: PLAIN and SCRAM.

    SaslLogin.begin(host) ─► ClientExchange: begin ─► token, respond(token) ─► token, …

Pure. `respond` of SCRAM takes milliseconds (the salted password), and a ticket of Kerberos comes
from elsewhere, so a loop runs `begin` and `respond` beside itself. `oauth` and `kerberos` have the
logins by token and by ticket.

Source: Kafka SaslClientAuthenticator, ScramSaslClient, PlainLoginModule.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import Final, NamedTuple, Protocol

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.scram import (
    CODES,
    HASHES,
    ITERATIONS_MIN,
    salted_password,
)

PLAIN: Final = "PLAIN"
_SERVER_FIRST: Final = re.compile(r"r=([^,]+),s=([A-Za-z0-9/+=]*),i=(\d{1,9})(?:,.*)?")
_NONCE_BYTES: Final = 16
_ITERATIONS_MAX: Final = 1_000_000
"""More would keep a thread busy for a second, for a broker that is not what it claims to be."""


def nonce() -> str:
    """Return random characters, other ones with every call."""
    return secrets.token_urlsafe(_NONCE_BYTES)


class ClientExchange(Protocol):
    """One login at another broker."""

    is_complete: bool
    """True once the broker has said everything that it has to say."""

    def begin(self) -> bytes:
        """Return the first token. Raises OSError where it cannot be had."""

    def respond(self, token: bytes) -> bytes:
        """Return the answer to a token of the broker, which is not sent once it is complete.
        Raises ProtocolError where the broker does not prove that it knows the credential.
        """


class SaslLogin(Protocol):
    """The way in which a client logs in at brokers."""

    @property
    def mechanism(self) -> str:
        """Return the mechanism of SASL. Constant."""

    def begin(self, host: str) -> ClientExchange:
        """Return a new exchange with a broker. `host`: where it is."""


class PlainClient:
    """PLAIN: one token, and an empty answer."""

    __slots__ = ("_name", "_password", "is_complete")

    def __init__(self, name: str, password: str) -> None:
        self._name = name
        self._password = password
        self.is_complete = False

    def begin(self) -> bytes:
        """Do `ClientExchange.begin`."""
        return f"\0{self._name}\0{self._password}".encode()

    def respond(self, token: bytes) -> bytes:
        """Do `ClientExchange.respond`."""
        if token:
            raise ProtocolError("PLAIN: the broker answered with a token, expected none")
        self.is_complete = True
        return b""


class ScramClient:
    """SCRAM: the broker has to prove, too, that it knows the credential."""

    __slots__ = (
        "_bare",
        "_code",
        "_nonce",
        "_password",
        "_server_signature",
        "is_complete",
    )

    def __init__(
        self, mechanism: str, name: str, password: str, own_nonce: str, *, is_token: bool = False
    ) -> None:
        """`is_token`: name and password are the id and the HMAC of a delegation token (KIP-48)."""
        self._code = CODES[mechanism]
        escaped = name.replace("=", "=3D").replace(",", "=2C")
        self._nonce = own_nonce
        self._bare = f"n={escaped},r={own_nonce}{',tokenauth=true' if is_token else ''}"
        self._password = password
        self._server_signature: bytes | None = None
        """The broker's proof, once it can be known."""
        self.is_complete = False

    def begin(self) -> bytes:
        """Do `ClientExchange.begin`."""
        return f"n,,{self._bare}".encode()

    def respond(self, token: bytes) -> bytes:
        """Do `ClientExchange.respond`."""
        message = token.decode("utf-8", "replace")
        if self._server_signature is None:
            return self._prove(message)
        expected = "v=" + base64.b64encode(self._server_signature).decode("ascii")
        if not hmac.compare_digest(message.encode(), expected.encode()):
            raise ProtocolError("SCRAM: the broker does not know the credential")
        self.is_complete = True
        return b""

    def _prove(self, server_first: str) -> bytes:
        match = _SERVER_FIRST.fullmatch(server_first)
        if match is None or not match[1].startswith(self._nonce):
            raise ProtocolError("SCRAM: the first message of the broker is malformed")
        iterations = int(match[3])
        if not ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX:
            raise ProtocolError(
                f"SCRAM: the broker asks for {iterations} iterations, expected {ITERATIONS_MIN} to"
                f" {_ITERATIONS_MAX}"
            )
        try:
            salt = base64.b64decode(match[2], validate=True)
        except binascii.Error:
            raise ProtocolError("SCRAM: the salt of the broker is malformed") from None
        name = HASHES[self._code]
        salted = salted_password(self._code, self._password, salt, iterations)
        unsigned = f"c=biws,r={match[1]}"
        signed = f"{self._bare},{server_first},{unsigned}".encode()
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", name)
        self._server_signature = hmac.digest(server_key, signed, name)
        return f"{unsigned},p={base64.b64encode(proof).decode('ascii')}".encode()


class PasswordLogin(NamedTuple):
    """A name and a password."""

    mechanism: str
    name: str
    password: str

    def __repr__(self) -> str:
        """Return a text without the password: it may come into a log."""
        return f"PasswordLogin({self.mechanism}, {self.name})"

    def begin(self, host: str) -> ClientExchange:
        """Do `SaslLogin.begin`."""
        if self.mechanism == PLAIN:
            return PlainClient(self.name, self.password)
        return ScramClient(self.mechanism, self.name, self.password, nonce())
