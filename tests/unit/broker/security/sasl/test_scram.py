"""SCRAM: the example of RFC 7677, and messages that nobody may send."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.broker.security.sasl.scram import MESSAGE_BYTES_MAX, Login, ScramExchange
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.scram import credential, credential_of, iterations_of, salted_password

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT, SERVER = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT}".encode()
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
LAST = f"c=biws,r={CLIENT}{SERVER},p={PROOF}".encode()


def login(name: str, *, iterations: int = 4096) -> Login:
    stored = credential(1, SALT, salted_password(1, "pencil", SALT, iterations), iterations)
    parsed_credential = credential_of(stored)
    assert parsed_credential is not None
    return Login(name, parsed_credential)


def exchange(*, iterations: int = 4096) -> ScramExchange:
    def find(name: str, is_token: bool) -> Login | None:
        if is_token:
            return login("owner")._replace(expires_ms=5) if name == "token" else None
        return login(name, iterations=iterations) if name in {"user", "a,b=c"} else None

    return ScramExchange("SCRAM-SHA-256", find, lambda: SERVER)


def test_the_example_of_rfc_7677() -> None:
    attempt = exchange()
    assert attempt.respond(FIRST, 0) == (
        f"r={CLIENT}{SERVER},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    )
    assert not attempt.is_complete
    assert attempt.respond(LAST, 0) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert (attempt.is_complete, attempt.name, attempt.is_token) == (True, "user", False)


def test_a_name_is_unescaped() -> None:
    assert exchange().respond(b"n,,n=a=2Cb=3Dc,r=x", 0).startswith(b"r=x")


def test_a_delegation_token_stands_for_its_owner() -> None:
    attempt = exchange()
    assert attempt.respond(b"n,,n=token,r=x,tokenauth=TRUE", 0)
    assert attempt.is_token
    with pytest.raises(CredentialsError, match="delegation token"):
        exchange().respond(b"n,,n=user,r=x,tokenauth=true", 0)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"y,,n=user,r=x",
        b"p=tls-unique,,n=user,r=x",
        b"n,,m=x,n=user,r=x",
        b"n,,n=user",
        b"n,,n=us=er,r=x",
        b"n,,n=user,r=x\xff",
        b"n,,n=user,r=" + b"x" * MESSAGE_BYTES_MAX,
        b"n,,n=nobody,r=x",
    ],
)
def test_a_first_message_that_is_no_login_fails(first: bytes) -> None:
    with pytest.raises(CredentialsError):
        exchange().respond(first, 0)


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(RefusedError):
        exchange().respond(b"n,a=other,n=user,r=x", 0)


def test_too_few_iterations_fail() -> None:
    with pytest.raises(CredentialsError, match="4095 iterations"):
        exchange(iterations=4095).respond(FIRST, 0)


@pytest.mark.parametrize(
    "last",
    [
        LAST.replace(b"c=biws", b"c=eSws"),
        LAST.replace(b"r=r", b"r=s"),
        LAST.replace(b"$k0", b"$k01"),
        LAST.replace(b"p=d", b"p=e"),
        LAST.replace(b",p=", b",x=y,p="),
        b"c=biws",
        b"",
    ],
)
def test_a_changed_last_message_fails(last: bytes) -> None:
    attempt = exchange()
    attempt.respond(FIRST, 0)
    with pytest.raises(CredentialsError):
        attempt.respond(last, 0)
    assert not attempt.is_complete


def test_a_replayed_last_message_fails() -> None:
    """The nonce of the broker is another one in every exchange."""
    attempt = ScramExchange("SCRAM-SHA-256", lambda name, _: login(name), lambda: "other")
    attempt.respond(FIRST, 0)
    with pytest.raises(CredentialsError, match="nonce"):
        attempt.respond(LAST, 0)


def test_a_proof_of_another_size_is_no_proof() -> None:
    attempt = exchange()
    attempt.respond(FIRST, 0)
    with pytest.raises(ProtocolError, match="0 bytes, expected 32"):
        attempt.respond(LAST.replace(PROOF.encode(), b""), 0)


# SCRAM credentials as text: the numbers of RFC 7677, and what is read back.


PASSWORD = b"pencil"


def test_the_example_of_rfc_7677_as_text() -> None:
    """Its client proof and server signature follow from the stored keys."""
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD, SALT, 4096)
    stored = credential(1, SALT, salted, 4096)
    parts = dict(part.split("=", 1) for part in stored.split(","))
    assert list(parts) == ["salt", "stored_key", "server_key", "iterations"]
    assert base64.b64decode(parts["salt"]) == SALT
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    message = (
        f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        f"c=biws,r={nonce}"
    ).encode()
    server_key = base64.b64decode(parts["server_key"])
    signature = hmac.digest(server_key, message, "sha256")
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    stored_key = base64.b64decode(parts["stored_key"])
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signed = hmac.digest(stored_key, message, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, signed, strict=True))
    assert hashlib.sha256(client_key).digest() == stored_key


@pytest.mark.parametrize(("mechanism", "size"), [(1, 32), (2, 64)])
def test_keys_have_the_size_of_their_hash(mechanism: int, size: int) -> None:
    stored = credential(mechanism, b"", b"x", 8192)
    parts = dict(part.split("=", 1) for part in stored.split(","))
    assert parts["salt"] == ""
    assert {len(base64.b64decode(parts[key])) for key in ("stored_key", "server_key")} == {size}
    assert iterations_of(stored) == 8192


@pytest.mark.parametrize("text", ["", "salt=a,stored_key=b", "iterations=", "iterations=-1"])
def test_a_text_without_iterations_is_not_read(text: str) -> None:
    assert iterations_of(text) is None


def test_a_stored_text_is_read_back_and_printed_without_keys() -> None:
    stored = credential(2, SALT, salted_password(2, "pencil", SALT, 4096), 4096)
    copy = credential_of(stored)
    assert copy is not None
    assert (copy.salt, copy.iterations, len(copy.stored_key)) == (SALT, 4096, 64)
    assert repr(copy) == "ScramCredential(iterations=4096)"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "iterations=4096",
        "salt=%,stored_key=,server_key=,iterations=1",
        "salt=é,stored_key=,server_key=,iterations=1",
        "salt=YQ==",
    ],
)
def test_a_broken_text_has_no_credential(text: str) -> None:
    assert credential_of(text) is None
