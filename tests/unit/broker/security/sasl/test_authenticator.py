"""The states before a client is known; the whole dialogues are integration tests."""

from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from minibroker.broker.security.sasl.authenticator import (
    Authenticator,
    Identity,
    Phase,
    Step,
    StepOutcome,
)
from minibroker.broker.security.sasl.plain import PlainExchange
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minibroker.kafka.protocol.primitives import Reader
from tests.support.in_process import request_frame

HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")
LOGIN = SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")
ALICE = Identity("User:alice", "PLAIN", is_token=False)


class SaslSurroundings:
    """A listener with PLAIN, whose clients may be told of versions."""

    mechanisms = ("PLAIN", "OTHER")

    def __init__(self, session_ms: int = 0, expires_ms: int | None = None) -> None:
        self.session_ms = session_ms
        self.expires_ms = expires_ms
        self.is_good = True

    def begin(self, mechanism: str) -> PlainExchange:
        exchange = PlainExchange({"alice": "secret", "bob": "secret"})
        exchange.expires_ms = self.expires_ms
        return exchange

    def max_session_ms(self, mechanism: str) -> int:
        return self.session_ms

    def answer_versions(self, header: Any, frame: memoryview) -> tuple[bytes, bool]:
        return b"versions", self.is_good

    def refuse(self, header: Any, frame: memoryview) -> bytes:
        raise ProtocolError("no such request")


def give(authenticator: Authenticator, request: Any, version: int = 1) -> Step:
    return authenticator.receive(memoryview(request_frame(request, version))[4:], 1000)


def test_a_handshake_and_a_token_prove_the_identity() -> None:
    authenticator = Authenticator(SaslSurroundings())
    assert give(authenticator, HANDSHAKE).outcome is StepOutcome.GO_ON
    assert authenticator.phase is Phase.TOKENS
    assert give(authenticator, LOGIN).outcome is StepOutcome.DONE
    assert authenticator.identity == ALICE
    assert authenticator.session_ms is None


@pytest.mark.parametrize(
    ("session_ms", "expires_ms", "expected"),
    [(0, None, None), (50, None, 50), (0, 1500, 500), (50, 1500, 50), (800, 1500, 500), (0, 9, 0)],
)
def test_a_session_ends_with_the_setting_or_the_credential(
    session_ms: int, expires_ms: int | None, expected: int | None
) -> None:
    authenticator = Authenticator(SaslSurroundings(session_ms, expires_ms))
    give(authenticator, HANDSHAKE)
    step = give(authenticator, LOGIN)
    assert authenticator.session_ms == expected
    assert step.answer is not None
    answer = SaslAuthenticateResponse.read(Reader(memoryview(step.answer), 8), 1)
    assert answer.session_lifetime_ms == (expected or 0)


def test_versions_with_an_error_may_be_asked_again() -> None:
    surroundings = SaslSurroundings()
    authenticator = Authenticator(surroundings)
    frame = memoryview(pack(">hhih", 18, 0, 1, -1))
    surroundings.is_good = False
    assert authenticator.receive(frame, 0) == Step(StepOutcome.GO_ON, b"versions")
    surroundings.is_good = True
    assert authenticator.receive(frame, 0).outcome is StepOutcome.GO_ON
    assert authenticator.receive(frame, 0).outcome is StepOutcome.FAILED


@pytest.mark.parametrize("frame", [b"", b"\x60\x82", pack(">hhih", 3, 1, 1, -1)])
def test_anything_else_fails_without_an_answer(frame: bytes) -> None:
    authenticator = Authenticator(SaslSurroundings())
    step = authenticator.receive(memoryview(frame), 0)
    assert (step.outcome, step.answer) == (StepOutcome.FAILED, None)
    assert authenticator.phase is Phase.FAILED


def test_a_refusal_that_cannot_be_written_is_no_answer() -> None:
    authenticator = Authenticator(SaslSurroundings())
    give(authenticator, HANDSHAKE)
    step = authenticator.receive(memoryview(pack(">hhih", 3, 1, 1, -1)), 0)
    assert (step.outcome, step.answer, step.reason) == (StepOutcome.FAILED, None, "no such request")


def test_another_principal_cannot_renew_a_session() -> None:
    authenticator = Authenticator(SaslSurroundings(), ALICE)
    give(authenticator, HANDSHAKE)
    step = give(authenticator, SaslAuthenticateRequest(auth_bytes=b"\0bob\0secret"))
    assert step.answer is not None
    answer = SaslAuthenticateResponse.read(Reader(memoryview(step.answer), 8), 1)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )


def test_another_mechanism_cannot_renew_a_session() -> None:
    authenticator = Authenticator(SaslSurroundings(), ALICE)
    assert give(authenticator, SaslHandshakeRequest(mechanism="OTHER")).outcome is StepOutcome.GO_ON
    step = give(authenticator, LOGIN)
    assert (step.outcome, step.answer) == (StepOutcome.FAILED, None)
    assert "'OTHER' requested by client is not supported" in step.reason
