"""The lines of `benchmarks.secured`, and its client that logs in."""

from __future__ import annotations

import re

import pytest

from benchmarks.secured import KAFKA, MINIBROKER, Line
from benchmarks.secured_clients import PASSWORD, USER, LoginError, ScramLogin
from minibroker.testing import Broker


def test_a_line_says_whether_its_bar_is_met() -> None:
    values = {MINIBROKER: 120.0, KAFKA: 100.0}
    assert Line("logins", values, 1.2, 1.0, True).render() == (
        "| logins | 120 | 100 | 1.20 | ≥ 1 | yes |"
    )
    assert Line("p99, ms", {MINIBROKER: 3.0}, 3.0, 2.0, False, " of alone").render() == (
        "| p99, ms | 3.00 | - | 3.00 of alone | ≤ 2 | NO |"
    )
    assert Line("alone", values, None, 0.0, True).render() == "| alone | 120 | 100 | - |  |  |"


def test_the_client_logs_in() -> None:
    with Broker(security="SASL_PLAINTEXT", users={USER: PASSWORD}) as broker:
        ScramLogin(int(broker.bootstrap.rpartition(":")[2])).run()


def test_the_client_says_that_it_was_refused() -> None:
    with (
        Broker(security="SASL_PLAINTEXT", users={USER: "another"}) as broker,
        pytest.raises(LoginError, match=re.escape("error 58")),
    ):
        ScramLogin(int(broker.bootstrap.rpartition(":")[2])).run()
