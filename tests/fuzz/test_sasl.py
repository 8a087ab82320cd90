"""Hostile frames before a login: no principal, no exception, no answer of another API."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.secured import secured_settings
from minibroker.broker.security.sasl.authenticator import GSSAPI, Authenticator, StepOutcome
from minibroker.broker.security.sasl.mechanisms import SERVED, Mechanisms
from minibroker.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.fuzz.damage import damaged
from tests.support.in_process import request_frame

if TYPE_CHECKING:
    from minibroker.broker.security.sasl.authenticator import Header
    from minibroker.broker.security.sasl.exchange import SaslExchange

LOGINS = 3000
TOKENS = (
    b"\0alice\0wrong",
    b"n,,n=alice,r=abcdef",
    b"c=biws,r=abcdef,p=YWJj",
    b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.\x01\x01",
    b"\x01",
)


class Listener:
    """A listener with every mechanism, whose other answers are words."""

    def __init__(self) -> None:
        config = BrokerConfig(
            {
                **secured_settings("SASL_PLAINTEXT", {"alice": "secret"}),
                # A ticket needs a KDC: tests/integration/test_kerberos.py has damaged ones.
                "sasl.enabled.mechanisms": ",".join(set(SERVED) - {GSSAPI}),
            }
        )
        self._mechanisms = Mechanisms(config, config.listeners[0], config_of_user=lambda _: {})
        self.mechanisms = self._mechanisms.names

    def begin(self, mechanism: str) -> SaslExchange:
        return self._mechanisms.begin(mechanism)

    def max_session_ms(self, mechanism: str) -> int:
        return 0

    def answer_versions(self, header: Header, frame: memoryview) -> tuple[bytes, bool]:
        return b"versions", True

    def refuse(self, header: Header, frame: memoryview) -> bytes:
        return b"refused"


def test_nobody_gets_in_with_damaged_frames() -> None:
    chance = random.Random(17)
    listener = Listener()
    failed = 0
    for _ in range(LOGINS):
        authenticator = Authenticator(listener)
        version = chance.randrange(2)
        handshake = SaslHandshakeRequest(mechanism=chance.choice(SERVED))
        frames = [request_frame(handshake, version)[4:]]
        for _ in range(3):
            token = damaged(chance, chance.choice(TOKENS))
            request = SaslAuthenticateRequest(auth_bytes=token)
            whole = token if version == 0 else request_frame(request, chance.randrange(3))[4:]
            frames.append(damaged(chance, whole))
        for frame in frames:
            step = authenticator.receive(memoryview(frame), 1000)
            assert step.outcome is not StepOutcome.DONE
            if step.outcome is StepOutcome.FAILED:
                failed += 1
                break
    assert failed > LOGINS * 0.9
