"""Every mechanism's exchange has the parts that the authenticator uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.broker.security.sasl.plain import PlainExchange
from minibroker.broker.security.sasl.scram import ScramExchange

if TYPE_CHECKING:
    from minibroker.broker.security.sasl.exchange import Exchange


def test_a_new_exchange_is_not_complete() -> None:
    exchanges: list[Exchange] = [
        PlainExchange({}),
        ScramExchange("SCRAM-SHA-256", lambda *_: None, lambda: ""),
    ]
    for exchange in exchanges:
        assert (exchange.is_complete, exchange.name, exchange.is_token) == (False, "", False)


def test_the_two_failures_are_no_kind_of_each_other() -> None:
    assert not issubclass(RefusedError, CredentialsError)
    assert not issubclass(CredentialsError, RefusedError)
