"""PLAIN: names and passwords; the dialogues with Kafka's answers are integration tests."""

from __future__ import annotations

import pytest

from minibroker.broker.security.sasl.exchange import RefusedError
from minibroker.broker.security.sasl.plain import PlainExchange, users_of

USERS = {"alice": "secret", "jürgen": "\ud83d\ude00"}


def test_users_stand_in_the_options() -> None:
    options = {"username": "admin", "password": "p", "user_alice": "secret", "user_": "x"}
    assert users_of(options) == {"alice": "secret", "": "x"}


@pytest.mark.parametrize("token", ["\0alice\0secret", "alice\0alice\0secret", "\0jürgen\0😀"])
def test_the_right_password_completes_the_exchange(token: str) -> None:
    exchange = PlainExchange(USERS)
    assert exchange.respond(token.encode(), 0) == b""
    assert exchange.is_complete
    assert exchange.name in token
    assert exchange.expires_ms is None


@pytest.mark.parametrize(
    "token", ["", "\0alice\0", "\0\0secret", "\0alice\0Secret", "\0x\0secret", "x\0alice\0secret"]
)
def test_anything_else_is_refused(token: str) -> None:
    exchange = PlainExchange({**USERS, "": "secret"})
    with pytest.raises(RefusedError) as refused:
        exchange.respond(token.encode(), 0)
    assert not exchange.is_complete
    assert "secret" not in str(refused.value)
