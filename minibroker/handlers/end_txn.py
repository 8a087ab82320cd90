"""EndTxn: key 26, versions 0-5.

Behaviour: the transaction is committed or aborted (behaviour P6). The answer leaves when the
decision is in `__transaction_state`; the markers follow, and until every partition has one the
producer gets CONCURRENT_TRANSACTIONS for its next request.
Versions: 2 PRODUCER_FENCED; 3 flexible; 5 every end raises the epoch, which the answer tells
(KIP-890).
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.errors import KafkaError
from minibroker.handlers.fenced_producers import known_code
from minibroker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.handlers.context import RequestContext

_FIRST_WITH_FENCED = 2
_FIRST_WITH_EPOCH_BUMP = 5


def handle(
    context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    """Decide at once, or when a new producer id was fetched (the epochs are used up)."""
    version = context.version
    try:
        ended = context.services.transactions.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            is_commit=request.committed,
            client_version=2 if version >= _FIRST_WITH_EPOCH_BUMP else 0,
        )
    except KafkaError as error:
        return _refused(error, version)
    if isinstance(ended, tuple):
        return _answer(ended)
    return _when_ended(ended, version)


async def _when_ended(ended: Awaitable[tuple[int, int]], version: int) -> EndTxnResponse:
    try:
        return _answer(await ended)
    except KafkaError as error:
        return _refused(error, version)


def _answer(next_producer: tuple[int, int]) -> EndTxnResponse:
    producer_id, producer_epoch = next_producer
    return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def _refused(error: KafkaError, version: int) -> EndTxnResponse:
    code = known_code(error.code, knows_fenced=version >= _FIRST_WITH_FENCED)
    return EndTxnResponse(error_code=int(code))
