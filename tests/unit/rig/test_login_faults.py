"""`LoginFaults`: what becomes of a login that a rule meets."""

from __future__ import annotations

from functools import partial

import pytest

from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.broker.security.sasl.oauth import OAuthExchange, TokenRules, check_unsecured
from minibroker.broker.security.sasl.plain import PlainExchange
from minibroker.broker.server.interceptor import LoginStage
from minibroker.broker.timers import Timers
from minibroker.rig.clock import MovableClock
from minibroker.rig.faults import Fault, FaultSet
from minibroker.rig.login_faults import LoginFaults

PLAIN = partial(PlainExchange, {"alice": "secret"})
OAUTH = partial(OAuthExchange, lambda token, now_ms: check_unsecured(token, TokenRules(), now_ms))
ALICE = b"\0alice\0secret"
TOKEN = b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MTAwMDB9.\x01\x01"
"""The first message of alice, whose token ends at 10,000,000 ms."""


class ByToken(PlainExchange):
    """A login by a delegation token, as SCRAM has it."""

    def respond(self, token: bytes, now_ms: int) -> bytes:
        self.is_token = True
        return super().respond(token, now_ms)


@pytest.fixture
async def logins() -> LoginFaults:
    return LoginFaults(FaultSet(), Timers(MovableClock()))


def add(logins: LoginFaults, **rule: object) -> Fault:
    fault = Fault(**rule)  # type: ignore[arg-type]
    logins._faults.add(fault)
    return fault


async def test_without_a_rule_a_login_succeeds(logins: LoginFaults) -> None:
    exchange = logins.exchange("PLAIN", PLAIN)
    assert exchange.respond(ALICE, 0) == b""
    assert (exchange.is_complete, exchange.name, exchange.is_token) == (True, "alice", False)
    assert not logins.takes(LoginStage.TLS, pytest.fail, pytest.fail)


async def test_a_login_that_fails_anyway_is_no_hit(logins: LoginFaults) -> None:
    fault = add(logins, login="wrong_password")
    with pytest.raises(RefusedError):
        logins.exchange("PLAIN", PLAIN).respond(b"\0alice\0wrong", 0)
    assert fault.hits == 0
    with pytest.raises(RefusedError, match="Invalid username or password") as raised:
        logins.exchange("PLAIN", PLAIN).respond(ALICE, 0)
    assert (fault.hits, "Fault" in str(raised.value)) == (1, False)
    assert raised.value.reason.startswith("refused by Fault(login='wrong_password'")


async def test_a_rule_for_one_user(logins: LoginFaults) -> None:
    fault = add(logins, login="wrong_password", user="bob")
    assert logins.exchange("PLAIN", PLAIN).respond(ALICE, 0) == b""
    assert fault.hits == 0


async def test_a_token_that_has_ended(logins: LoginFaults) -> None:
    add(logins, login="wrong_password")
    fault = add(logins, login="expired_token", times=1)
    exchange = logins.exchange("OAUTHBEARER", OAUTH)
    assert exchange.respond(TOKEN, 5) == b'{"status":"invalid_token"}'
    assert exchange.respond(TOKEN, 5) == b'{"status":"invalid_token"}'
    assert not exchange.is_complete
    with pytest.raises(RefusedError, match="invalid_token"):
        exchange.respond(b"\x01", 5)
    again = logins.exchange("OAUTHBEARER", OAUTH)
    assert again.respond(TOKEN, 5) == b""
    assert (fault.hits, again.name, again.expires_ms) == (1, "alice", 10_000_000)


async def test_a_delegation_token_that_has_ended(logins: LoginFaults) -> None:
    add(logins, login="expired_token")
    assert logins.exchange("SCRAM-SHA-256", PLAIN).respond(ALICE, 0) == b""
    with pytest.raises(CredentialsError, match=r"refused by Fault\(login='expired_token'"):
        logins.exchange("SCRAM-SHA-256", partial(ByToken, {"alice": "secret"})).respond(ALICE, 0)


@pytest.mark.parametrize("stage", list(LoginStage))
async def test_a_connection_that_is_cut(logins: LoginFaults, stage: LoginStage) -> None:
    add(logins, login=f"{stage}_cut", skip=1, times=1)
    cuts: list[str] = []
    verdicts = [logins.takes(stage, pytest.fail, cuts.append) for _ in range(3)]
    assert verdicts == [False, True, False]
    assert cuts == [f"Fault(login='{stage}_cut', 1 hits)"]
    other = LoginStage.SASL if stage is LoginStage.TLS else LoginStage.TLS
    add(logins, login=f"{stage}_cut")
    assert not logins.takes(other, pytest.fail, pytest.fail)


async def test_a_login_that_is_slow(logins: LoginFaults) -> None:
    fault = add(logins, login="sasl_slow", delay_ms=500)
    went_on: list[str] = []
    for name in ("first", "second"):
        assert logins.takes(LoginStage.SASL, partial(went_on.append, name), pytest.fail)
    assert went_on == []
    logins.release(fault)
    assert went_on == ["first", "second"]
    logins.release(fault)
    assert went_on == ["first", "second"]
