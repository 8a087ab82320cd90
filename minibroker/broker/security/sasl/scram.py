"""SCRAM-SHA-256 and SCRAM-SHA-512: the client proves that it knows its password (RFC 5802).

    client ─ n,,n=alice,r=nonce ──────────────────────► lookup: salt, iterations, keys
    client ◄─ r=nonce + ours, s=salt, i=iterations ──── server
    client ─ c=biws,r=both nonces,p=proof ────────────► the proof gives the stored key?
    client ◄─ v=signature ───────────────────────────── server

`tokenauth=true` in the first message says that the name is the id of a delegation token.

Source: Kafka ScramSaslServer, ScramMessages, ScramServerCallbackHandler.
Differs from Kafka: a channel binding that does not repeat the first message fails, as the RFC says.
A nonce that ends in the right one is right, as in 3.9: Kafka 4 keeps librdkafka before 2.6.1 out.
As in Kafka, a user without a credential is refused at the first message already.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from binascii import a2b_base64
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.scram import CODES, HASHES, ITERATIONS_MIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.kafka.scram import ScramCredential

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
# A comma follows both, or the end: a shorter match is never right, and is not tried (`++`).
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]++"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]++"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_LAST: Final = re.compile(
    rf"(?P<unsigned>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_TOKEN_AUTH: Final = "tokenauth"
MESSAGE_BYTES_MAX: Final = 16 * 1024
"""A longer message is malformed; matching one of Kafka's 512 KiB would hold the loop."""


class Login(NamedTuple):
    """The identity behind a user name or a token id."""

    name: str
    """The name of the principal: the user's, or that of the token's owner."""
    credential: ScramCredential
    expires_ms: int | None = None
    """Wall clock at which the token ends."""


class ScramExchange:
    """One attempt: two tokens."""

    may_block = False

    __slots__ = (
        "_find",
        "_first",
        "_hash",
        "_login",
        "_new_nonce",
        "_server_first",
        "expires_ms",
        "is_complete",
        "is_token",
        "name",
    )

    def __init__(
        self,
        mechanism: str,
        find: Callable[[str, bool], Login | None],
        new_nonce: Callable[[], str],
    ) -> None:
        """`find`: user name, or token id with True, → its login; None: there is none."""
        self._hash = HASHES[CODES[mechanism]]
        self._find = find
        self._new_nonce = new_nonce
        self._first: re.Match[str] | None = None
        """The client's first message, once it came."""
        self._server_first = ""
        self._login: Login
        self.is_complete = False
        self.name = ""
        self.expires_ms: int | None = None
        self.is_token = False

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """Do `SaslExchange.respond`."""
        message = token.decode("utf-8", "replace") if len(token) <= MESSAGE_BYTES_MAX else ""
        if self._first is None:
            return self._begin(message)
        return self._end(self._first, message)

    def _begin(self, message: str) -> bytes:
        first = _FIRST.fullmatch(message)
        if first is None:
            raise CredentialsError("the first SCRAM message is malformed")
        name = _decode_name(first["name"])
        extensions = dict(
            part.partition("=")[::2] for part in first["extensions"].split(",") if part
        )
        self.is_token = extensions.get(_TOKEN_AUTH, "").lower() == "true"
        login = self._find(name, self.is_token)
        if login is None:
            raise CredentialsError(
                "no such delegation token" if self.is_token else "the user has no credential"
            )
        if first["authorization"] and _decode_name(first["authorization"]) != name:
            raise RefusedError(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        credential = login.credential
        if credential.iterations < ITERATIONS_MIN:
            raise CredentialsError(
                f"the credential has {credential.iterations} iterations, expected at least"
                f" {ITERATIONS_MIN}"
            )
        self._first, self._login = first, login
        salt = base64.b64encode(credential.salt).decode("ascii")
        nonce = first["nonce"] + self._new_nonce()
        self._server_first = f"r={nonce},s={salt},i={credential.iterations}"
        return self._server_first.encode()

    def _end(self, first: re.Match[str], message: str) -> bytes:
        last = _LAST.fullmatch(message)
        if last is None:
            raise CredentialsError("the last SCRAM message is malformed")
        nonce = self._server_first[2 : self._server_first.index(",")]
        # librdkafka before 2.6.1 writes its own nonce twice; Kafka 4 no longer takes that.
        if not last["nonce"].endswith(nonce):
            raise CredentialsError("the nonce of the last SCRAM message is another one")
        if a2b_base64(last["channel"]) != first["header"].encode():
            raise CredentialsError("the channel binding is not that of the first SCRAM message")
        auth_message = f"{first['bare']},{self._server_first},{last['unsigned']}".encode()
        credential = self._login.credential
        signature = hmac.digest(credential.stored_key, auth_message, self._hash)
        proof = a2b_base64(last["proof"])
        if len(proof) != len(signature):
            # Kafka answers nothing, too: its hash of it fails.
            raise ProtocolError(f"a SCRAM proof of {len(proof)} bytes, expected {len(signature)}")
        recovered_key = int.from_bytes(signature, "big") ^ int.from_bytes(proof, "big")
        client_key = recovered_key.to_bytes(len(proof), "big")
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise CredentialsError("the proof is wrong")
        self.name, self.expires_ms = self._login.name, self._login.expires_ms
        self.is_complete = True
        server = hmac.digest(credential.server_key, auth_message, self._hash)
        return b"v=" + base64.b64encode(server)


def _decode_name(name: str) -> str:
    """Return a name without the escapes of commas and equals signs."""
    return name.replace("=2C", ",").replace("=3D", "=")
