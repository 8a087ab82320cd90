"""DescribeDelegationToken: key 41, versions 0-3.

Behaviour: lists tokens, with their HMACs: those that the client owns, asked for or may renew, and
those that it may describe. An empty list of owners asks for none, none for all.

Versions:
- 2: flexible
- 3: the requester (KIP-373)

Differs from Kafka: tokens are in the order in which this broker came to know them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.tokens import FIRST_WITH_REQUESTER, check_client, tokens_of
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.security.tokens import is_shown
from minibroker.broker.slices import gather
from minibroker.kafka.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.security.token_store import KnownToken
    from minibroker.broker.security.tokens import Token
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.describe_delegation_token import (
        DescribeDelegationTokenRequest,
    )


def handle(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> Steps[DescribeDelegationTokenResponse]:
    """Return the tokens that the client sees. Raises KafkaError."""
    check_client(context)
    tokens = tokens_of(context)
    owners = None
    if request.owners is not None:
        owners = frozenset(
            (
                yield from gather(
                    f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners
                )
            )
        )

    def may_describe(token: Token) -> bool:
        return context.authorize(
            Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id
        ) or context.authorize(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)

    response = DescribeDelegationTokenResponse()
    for stored in tokens.all():
        if is_shown(stored.token, context.principal, owners, may_describe):
            response.tokens.append((yield from _described(stored, context.version)))
        yield
    return response


def _described(stored: KnownToken, version: int) -> Steps[DescribedDelegationToken]:
    token = stored.token
    described = DescribedDelegationToken(
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=stored.hmac,
    )
    described.principal_type, _, described.principal_name = token.owner.partition(":")
    if version >= FIRST_WITH_REQUESTER:
        kind, _, name = token.requester.partition(":")
        described.token_requester_principal_type = kind
        described.token_requester_principal_name = name
    for renewer in token.renewers:
        kind, _, name = renewer.partition(":")
        described.renewers.append(
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
        )
        yield
    return described
