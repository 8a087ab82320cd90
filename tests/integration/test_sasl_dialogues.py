"""Logins that succeed and fail, as Apache Kafka 3.9.1 and 4.4.0 answer them (golden/sasl.json)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.testing import Broker
from tests.golden.record_sasl import PLAINTEXT, RECORDED
from tests.support.sasl_dialogues import (
    AGAIN,
    DIALOGUES,
    JWKS_URL,
    SASL,
    SETTINGS,
    SIGNED,
    TOKENS,
    add_scram_users,
    play,
)
from tests.support.signed_tokens import write_jwks

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
OURS = json.loads(RECORDED.read_text())
DIFFERENCES: dict[str, str] = {
    # So that Debian's kcat comes in.
    "scram_with_the_nonce_of_librdkafka_before_2_6_1": "3.9.1",
}
"""Dialogue in which the two Kafkas differ → the one that minibroker follows."""


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """The listeners of a broker for all dialogues: none of them changes it."""
    secured = (SASL, AGAIN, TOKENS, SIGNED)
    settings = {
        **SETTINGS,
        JWKS_URL: write_jwks(tmp_path_factory.mktemp("jwks")),
        "listeners": ",".join(f"{name}://{HOST}:0" for name in (PLAINTEXT, *secured)),
        "listener.security.protocol.map": ",".join(
            ["PLAINTEXT:PLAINTEXT", *(f"{name}:SASL_PLAINTEXT" for name in secured)]
        ),
    }
    with Broker(config=settings) as broker:
        ports = broker._node.app.ports
        add_scram_users(HOST, ports[PLAINTEXT])
        yield ports


@pytest.mark.parametrize("name", DIALOGUES)
def test_a_client_sees_what_kafka_lets_it_see(name: str, ports: dict[str, int]) -> None:
    expected = OURS[name]
    if isinstance(expected, dict):
        expected = expected[DIFFERENCES[name]]
    assert play(HOST, ports, name) == expected


def test_every_recorded_dialogue_is_played() -> None:
    assert OURS.keys() == DIALOGUES.keys()
    assert DIFFERENCES.keys() == {name for name, seen in OURS.items() if isinstance(seen, dict)}
