"""The life of a delegation token: its ends, who may move them, who sees it."""

from __future__ import annotations

import pytest

from minibroker.broker.security.tokens import (
    Lifetimes,
    Token,
    expired,
    hmac_of,
    is_shown,
    new_token,
    renewed,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

LIFETIMES = Lifetimes(max_ms=1000, expiry_ms=100)
TOKEN = Token("id", "User:o", "User:q", ("User:r",), 0, 1000, 100)


def test_the_hmac_is_that_of_sha512() -> None:
    assert len(hmac_of(b"secret", "id")) == 64
    assert hmac_of(b"secret", "id") != hmac_of(b"other", "id")


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "expires_ms"),
    [(-1, 1005, 105), (0, 1005, 105), (50, 55, 55), (5000, 1005, 105)],
)
def test_a_new_token_ends_at_the_nearest_limit(asked_ms: int, max_ms: int, expires_ms: int) -> None:
    token = new_token(
        "id",
        "User:o",
        "User:q",
        ["User:r"],
        max_lifetime_ms=asked_ms,
        lifetimes=LIFETIMES,
        now_ms=5,
    )
    assert token == Token("id", "User:o", "User:q", ("User:r",), 5, max_ms, expires_ms)


@pytest.mark.parametrize(("period_ms", "ends_ms"), [(-1, 150), (0, 50), (30, 80), (5000, 1000)])
def test_a_renewal_ends_no_later_than_the_longest_life(period_ms: int, ends_ms: int) -> None:
    for principal in ("User:o", "User:r"):
        token = renewed(TOKEN, principal, period_ms, lifetimes=LIFETIMES, now_ms=50)
        assert token == TOKEN._replace(expires_ms=ends_ms)


def test_only_owner_and_renewers_move_the_end() -> None:
    for principal in ("User:q", "User:x"):
        with pytest.raises(KafkaError) as renewal:
            renewed(TOKEN, principal, 1, lifetimes=LIFETIMES, now_ms=2000)
        with pytest.raises(KafkaError) as expiry:
            expired(TOKEN, principal, -1, now_ms=2000)
        codes = {renewal.value.code, expiry.value.code}
        assert codes == {ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH}


def test_an_expired_token_may_only_be_ended_at_once() -> None:
    assert not TOKEN.is_expired(100)
    assert TOKEN.is_expired(101)
    for change in (
        lambda: renewed(TOKEN, "User:o", -1, lifetimes=LIFETIMES, now_ms=101),
        lambda: expired(TOKEN, "User:o", 5, now_ms=101),
    ):
        with pytest.raises(KafkaError) as refused:
            change()
        assert refused.value.code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expired(TOKEN, "User:o", -1, now_ms=101) is None
    ended = expired(TOKEN, "User:r", 5, now_ms=10)
    assert ended is not None
    assert ended.expires_ms == 15


def test_a_token_is_shown_to_its_people_and_to_those_who_may_describe_it() -> None:
    for principal in ("User:o", "User:q", "User:r"):
        assert is_shown(TOKEN, principal, None, lambda _: False)
        assert is_shown(TOKEN, principal, ["User:r"], lambda _: False)
        assert not is_shown(TOKEN, principal, ["User:x"], lambda _: True)
    assert not is_shown(TOKEN, "User:x", None, lambda _: False)
    assert is_shown(TOKEN, "User:x", ["User:x", "User:o"], lambda _: True)
