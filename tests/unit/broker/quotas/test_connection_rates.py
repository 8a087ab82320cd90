"""Limits of new connections per second."""

from __future__ import annotations

import pytest

from minibroker.broker.quotas.connection_rates import UNLIMITED, ConnectionRates

NOW_MS = 1_700_000_000_000


@pytest.fixture
def rates() -> ConnectionRates:
    return ConnectionRates(11, 1000)


def test_no_limit_no_delay(rates: ConnectionRates) -> None:
    assert rates.address_delay_ms("10.0.0.1", NOW_MS) == 0
    assert rates.delay_ms(rates.of_broker, UNLIMITED, NOW_MS) == 0


@pytest.mark.parametrize(
    ("entity", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("<default>", "10.9.9.9"),
        ("%3A%3A1", "0:0:0:0:0:0:0:1"),
        ("%3A%3Affff%3A10.0.0.1", "10.0.0.1"),
        ("0%3A0%3A0%3A0%3A0%3A0%3A0%3A1", "0:0:0:0:0:0:0:1"),
    ],
)
def test_an_entity_meets_its_address(rates: ConnectionRates, entity: str, address: str) -> None:
    rates.set(entity, 1)
    delays = [rates.address_delay_ms(address, NOW_MS) for _ in range(12)]
    # The eleventh is over, the delay (10 s and more by the rate) is one window at most.
    assert delays == [0] * 10 + [1000, 1000]
    rates.set(entity, None)
    assert rates.address_delay_ms(address, NOW_MS) == 0


def test_refused_connections_do_not_count(rates: ConnectionRates) -> None:
    rates.set("10.0.0.1", 1)
    for _ in range(1000):
        rates.address_delay_ms("10.0.0.1", NOW_MS)
    assert rates.address_delay_ms("10.0.0.1", NOW_MS + 11_000) == 0


def test_its_own_limit_stands_over_the_default(rates: ConnectionRates) -> None:
    rates.set("<default>", 1)
    rates.set("10.0.0.1", 100)
    assert [rates.address_delay_ms("10.0.0.1", NOW_MS) for _ in range(50)] == [0] * 50


def test_the_broker_waits_and_counts_the_wait(rates: ConnectionRates) -> None:
    delays = [rates.delay_ms(rates.of_broker, 1, NOW_MS) for _ in range(11)]
    assert delays == [0] * 10 + [1000]
    rates.take_back(rates.of_broker, NOW_MS)
    rates.take_back(rates.of_broker, NOW_MS)
    assert rates.delay_ms(rates.of_broker, 1, NOW_MS) == 0


def test_a_limit_that_is_set_later_knows_the_connections_before_it(rates: ConnectionRates) -> None:
    for _ in range(20):
        assert rates.delay_ms(rates.of_broker, UNLIMITED, NOW_MS) == 0
    assert rates.delay_ms(rates.of_broker, 1, NOW_MS) == 1000
