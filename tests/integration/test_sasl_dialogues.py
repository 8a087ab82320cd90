"""Logins that succeed and fail, as Apache Kafka 3.9.1 and 4.4.0 answer them (golden/sasl.json)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.testing import Broker
from tests.golden.record_sasl import PLAINTEXT, RECORDED
from tests.support.mixed_logins import (
    DIALOGUES,
    ENCRYPTED,
    LISTENERS,
    PROTOCOLS,
    SCRAMS,
    SETTINGS,
    play,
)
from tests.support.sasl_dialogues import AGAIN, JWKS_URL, SASL, add_scram_users
from tests.support.signed_tokens import write_jwks

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
OURS = json.loads(RECORDED.read_text())
DIFFERENCES: dict[str, str] = {
    # So that Debian's kcat comes in.
    "scram_with_the_nonce_of_librdkafka_before_2_6_1": "3.9.1"
}
"""Dialogue in which the two Kafkas differ → the one that minibroker follows."""
NOT_BOUND: Any = {
    "iterations": "4096",
    "error_code": 58,
    "error_message": (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism"
        " SCRAM-SHA-256"
    ),
    "session_lifetime_ms": 0,
    "has_bytes": False,
}
STRICTER: dict[str, Any] = {
    # Kafka does not read the binding of the last message (RFC 5802, 5.1: it must be compared).
    **{
        f"{name}, {listener}": [NOT_BOUND, "closed"]
        for name in (
            "scram binds at the end",
            "scram has an empty binding",
            "scram says at the end that it could bind",
        )
        for listener in (SASL, AGAIN, SCRAMS, ENCRYPTED)
    },
    # OpenSSL knows no newer alert for a client of SSL 3: handshake_failure, not protocol_version.
    "a hello of SSL 3": [{"record": 21, "alert": [2, 40]}],
}
"""Dialogue in which both Kafkas are alike and minibroker differs → the answers here."""


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """The listeners of a broker for all dialogues: none of them changes it."""
    settings = {
        **SETTINGS,
        JWKS_URL: write_jwks(tmp_path_factory.mktemp("jwks")),
        "listeners": ",".join(f"{name}://{HOST}:0" for name in (PLAINTEXT, *LISTENERS)),
        "listener.security.protocol.map": ",".join(
            ["PLAINTEXT:PLAINTEXT", *(f"{name}:{kind}" for name, kind in PROTOCOLS.items())]
        ),
    }
    with Broker(config=settings) as broker:
        ports = broker._node.app.ports
        add_scram_users(HOST, ports[PLAINTEXT])
        yield ports


@pytest.mark.parametrize("name", DIALOGUES)
def test_a_client_sees_what_kafka_lets_it_see(name: str, ports: dict[str, int]) -> None:
    expected = STRICTER.get(name, OURS[name])
    if isinstance(expected, dict):
        expected = expected[DIFFERENCES[name]]
    assert play(HOST, ports, name) == expected


def test_every_recorded_dialogue_is_played() -> None:
    assert OURS.keys() == DIALOGUES.keys()
    assert all(OURS[name] != notes for name, notes in STRICTER.items())
    assert DIFFERENCES.keys() == {name for name, notes in OURS.items() if isinstance(notes, dict)}
