"""Delegation tokens: what they hold, and the rules of their life (KIP-48). Pure.

    create ─► valid until `expires_ms` ─ renew, expire ─► another end, never beyond `max_ms`
                       └─► expired: no login, no renewal; the sweep removes it

The password of a token is its HMAC in base 64: HMAC-SHA512 of the id under the broker's secret. The
tree does not hold it, so whoever reads the tree cannot log in.

Source: Kafka DelegationTokenManagerZk, DelegationTokenManager, TokenInformation.
Differs from Kafka: a period too long for a long ends at `max_ms`; Kafka's sum is negative.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

USER_PREFIX: Final = "User:"


class Token(NamedTuple):
    """A delegation token. Principals are texts as `User:alice`; times are the wall clock's."""

    id: str
    owner: str
    """The principal of a client that logs in by this token."""
    requester: str
    """The principal that asked for it."""
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    """The end that no renewal moves."""
    expires_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Return whether its time is over."""
        return min(self.max_ms, self.expires_ms) < now_ms

    @property
    def people(self) -> tuple[str, ...]:
        """Return the principals that own it, asked for it or may renew it."""
        return (self.owner, self.requester, *self.renewers)


class Lifetimes(NamedTuple):
    """The settings of the broker for the life of tokens."""

    max_ms: int
    """`delegation.token.max.lifetime.ms`."""
    expiry_ms: int
    """`delegation.token.expiry.time.ms`."""


def hmac_of(secret: bytes, token_id: str) -> bytes:
    """Return the HMAC of a token."""
    return hmac.digest(secret, token_id.encode(), "sha512")


def new_token(
    token_id: str,
    owner: str,
    requester: str,
    renewers: Sequence[str],
    *,
    max_lifetime_ms: int,
    lifetimes: Lifetimes,
    now_ms: int,
) -> Token:
    """Return a token that begins now. `max_lifetime_ms`: 0 or less stands for the setting."""
    longest_ms = lifetimes.max_ms
    if max_lifetime_ms > 0:
        longest_ms = min(longest_ms, max_lifetime_ms)
    max_ms = now_ms + longest_ms
    expires_ms = min(max_ms, now_ms + lifetimes.expiry_ms)
    return Token(token_id, owner, requester, tuple(renewers), now_ms, max_ms, expires_ms)


def renew(
    token: Token, principal: str, period_ms: int, *, lifetimes: Lifetimes, now_ms: int
) -> Token:
    """Return the token with its new end. `period_ms`: less than 0 stands for the setting. Raises
    KafkaError.
    """
    _check_renewer(token, principal)
    _check_time(token, now_ms)
    wanted_ms = lifetimes.expiry_ms if period_ms < 0 else period_ms
    return token._replace(expires_ms=min(token.max_ms, now_ms + wanted_ms))


def expire(token: Token, principal: str, period_ms: int, *, now_ms: int) -> Token | None:
    """Return the token with its new end, None where it ends at once (`period_ms` less than 0).
    Raises KafkaError. A token whose time is over may still be ended at once.
    """
    _check_renewer(token, principal)
    if period_ms < 0:
        return None
    _check_time(token, now_ms)
    return token._replace(expires_ms=min(token.max_ms, now_ms + period_ms))


def is_shown(
    token: Token,
    principal: str,
    owners: AbstractSet[str] | None,
    may_describe: Callable[[Token], bool],
) -> bool:
    """Return whether a principal that asks for the tokens of `owners` (None: all) sees this one.

    `may_describe`: asked about a token that is not the principal's.
    """
    if owners is not None and owners.isdisjoint(token.people):
        return False
    return principal in token.people or may_describe(token)


def _check_renewer(token: Token, principal: str) -> None:
    if principal != token.owner and principal not in token.renewers:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _check_time(token: Token, now_ms: int) -> None:
    if token.is_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
