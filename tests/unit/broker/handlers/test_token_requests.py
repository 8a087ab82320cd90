"""Clients that may ask for delegation tokens: those that proved who they are, without a token."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from minibroker.broker.config.listeners import SecurityProtocol
from minibroker.broker.handlers.common.tokens import check_client
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import ANONYMOUS

ALICE = "User:alice"


def client(protocol: SecurityProtocol, principal: str, *, is_token: bool = False) -> Any:
    listener = SimpleNamespace(security_protocol=protocol)
    return SimpleNamespace(listener=listener, principal=principal, is_token=is_token)


@pytest.mark.parametrize(
    ("protocol", "principal", "is_token"),
    [
        (SecurityProtocol.PLAINTEXT, ANONYMOUS, False),
        (SecurityProtocol.PLAINTEXT, ALICE, False),
        (SecurityProtocol.SSL, ANONYMOUS, False),
        (SecurityProtocol.SASL_SSL, ALICE, True),
    ],
)
def test_a_client_that_proved_nothing_itself_is_refused(
    protocol: SecurityProtocol, principal: str, is_token: bool
) -> None:
    with pytest.raises(KafkaError) as refused:
        check_client(client(protocol, principal, is_token=is_token))
    assert refused.value.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_login_or_a_certificate_is_enough() -> None:
    for protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL):
        check_client(client(protocol, ALICE))
    check_client(client(SecurityProtocol.SASL_PLAINTEXT, ANONYMOUS))
