"""The part that the APIs of delegation tokens share: who may ask at all, and new ends.

Source: Kafka KafkaApis (allowTokenRequests).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.config.listeners import SecurityProtocol
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.security.token_store import TokenStore

NO_TIME: Final = -1
FIRST_WITH_REQUESTER: Final = 3
"""Version of the requests that create and describe tokens for others."""


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


async def change_end(
    context: RequestContext, change: Callable[[TokenStore], Awaitable[int]]
) -> tuple[ErrorCode, int]:
    """Return NONE and the end that `change` gives a token (ms since 1970), or the error and -1."""
    try:
        check_client(context)
        return ErrorCode.NONE, await change(tokens_of(context))
    except KafkaError as error:
        return error.code, NO_TIME
