"""SCRAM credentials as text: the numbers of RFC 7677, and what is read back."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from minibroker.broker.security.sasl.scram_credentials import (
    credential,
    credential_of,
    iterations_of,
    salted_password,
)

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PASSWORD = b"pencil"


def test_the_example_of_rfc_7677() -> None:
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
    read = credential_of(stored)
    assert read is not None
    assert (read.salt, read.iterations, len(read.stored_key)) == (SALT, 4096, 64)
    assert repr(read) == "ScramCredential(iterations=4096)"


@pytest.mark.parametrize(
    "text", ["", "iterations=4096", "salt=%,stored_key=,server_key=,iterations=1", "salt=YQ=="]
)
def test_a_broken_text_has_no_credential(text: str) -> None:
    assert credential_of(text) is None
