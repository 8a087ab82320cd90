"""Checks that the APIs of delegation tokens share: who may ask for tokens at all.

Source: Kafka KafkaApis (allowTokenRequests).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.config.listeners import SecurityProtocol
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError
from minibroker.handlers.context import ANONYMOUS

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.security.token_store import TokenStore


def check_client(context: RequestContext) -> None:
    """Raise KafkaError for a client that did not prove who it is, or did so by a token."""
    protocol = context.listener.security_protocol
    if (
        context.is_token
        or protocol is SecurityProtocol.PLAINTEXT
        or (protocol is SecurityProtocol.SSL and context.principal == ANONYMOUS)
    ):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def tokens_of(context: RequestContext) -> TokenStore:
    """Return the tokens. Raises KafkaError where no secret is set."""
    tokens = context.services.tokens
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens
