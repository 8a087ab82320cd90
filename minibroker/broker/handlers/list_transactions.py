"""ListTransactions: key 66, versions 0-2.

Behaviour: the transactional ids that this broker coordinates, by state, producer id, age and name
(KIP-664).

Versions:
- 1: those open for longer than a duration (KIP-994)
- 2: pattern for the transactional id (KIP-1152)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.patterns import PatternError, PatternsMissingError, compile_pattern
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps


def handle(
    context: RequestContext, request: ListTransactionsRequest
) -> Steps[ListTransactionsResponse]:
    """Return everything that passes all filters."""
    from minibroker.broker.transactions.state import TransactionState as State  # noqa: PLC0415  lazy

    titles = {state.title for state in State}
    response = ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in titles]
    )
    try:
        transactions = list(context.services.transactions.all())
    except KafkaError as error:
        return ListTransactionsResponse(error_code=int(error.code))
    pattern = _compiled(request.transactional_id_pattern)
    # Sets: a frame may name millions of them, and each transaction is compared.
    producer_ids, state_titles = set(request.producer_id_filters), set(request.state_filters)
    visible = Allowed(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, is_filter=True)
    began_before_ms = context.services.clock.now_ms() - request.duration_filter
    for transaction in transactions:
        yield
        if (
            (producer_ids and transaction.producer_id not in producer_ids)
            or (state_titles and transaction.state.title not in state_titles)
            or (request.duration_filter >= 0 and transaction.start_ms >= began_before_ms)
            or (pattern is not None and not pattern.fullmatch(transaction.transactional_id))
            or transaction.transactional_id not in visible
        ):
            continue
        response.transaction_states.append(
            TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.title,
            )
        )
    return response


def _compiled(pattern: str | None) -> Any:
    """Return a pattern of RE2, as Kafka's: linear in time, whatever a client sends.

    Raises KafkaError(INVALID_REGULAR_EXPRESSION).
    """
    if not pattern:
        return None
    try:
        return compile_pattern(pattern)
    except PatternsMissingError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"transactional id pattern {pattern!r}: {error}"
        ) from None
    except PatternError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"transactional id pattern {pattern!r} is no regular expression: {error}",
        ) from error
