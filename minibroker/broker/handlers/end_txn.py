"""EndTxn: key 26, versions 0-5.

Behaviour: the transaction is committed or aborted. The answer leaves when the
decision is in `__transaction_state`; the markers follow, and until every partition has one the
producer gets CONCURRENT_TRANSACTIONS for its next request.

Versions:
- 2: PRODUCER_FENCED
- 3: flexible
- 5: every end raises the epoch, which the answer tells (KIP-890)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.fenced_producers import known_code
from minibroker.broker.handlers.common.visible_answers import when_visible
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.error_codes import ErrorCode

_FIRST_WITH_FENCED = 2
_FIRST_WITH_EPOCH_BUMP = 5


def handle(
    context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    """Decide at once, or when a new producer id was fetched (the epochs are used up)."""
    version = context.version
    coordinator = context.services.transactions

    def refuse(code: ErrorCode) -> EndTxnResponse:
        client_code = known_code(code, knows_fenced=version >= _FIRST_WITH_FENCED)
        return EndTxnResponse(error_code=int(client_code))

    async def end_later(ended: Awaitable[tuple[int, int]]) -> EndTxnResponse:
        try:
            producer_id, producer_epoch = await ended
            waiting = coordinator.visible(request.transactional_id)
            if waiting is not None:
                await waiting
        except KafkaError as error:
            return refuse(error.code)
        return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)

    try:
        ended = coordinator.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            is_commit=request.committed,
            client_version=2 if version >= _FIRST_WITH_EPOCH_BUMP else 0,
        )
    except KafkaError as error:
        return refuse(error.code)
    if not isinstance(ended, tuple):
        return end_later(ended)
    producer_id, producer_epoch = ended
    response = EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)
    return when_visible(coordinator.visible(request.transactional_id), response, refuse)
