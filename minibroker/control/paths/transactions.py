"""Paths of transactions and producers."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control.bodies import answer, pieces_of
from minibroker.control.messages import Response
from minibroker.control.operations import NOT_RUNNING, ControlOperation, list_of
from minibroker.control.records import led_partition
from minibroker.control.transaction_shapes import (
    AbortChoice,
    AbortView,
    PartitionQuery,
    ProducerView,
    TransactionsQuery,
    TransactionsView,
)

if TYPE_CHECKING:
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope


async def transactions(scope: ControlScope, call: ControlCall) -> Response:
    """Return the transactions."""
    from minibroker.control.transactions import TransactionsLook  # noqa: PLC0415  few starts need it

    view = await TransactionsLook(scope, call.query).run()
    return Response(HTTPStatus.OK, await scope.slices.join(pieces_of(view)))


async def abort_transaction(scope: ControlScope, call: ControlCall) -> Response:
    """Abort a transaction."""
    from minibroker.control.transactions import abort  # noqa: PLC0415  as above

    await abort(scope, call.body)
    return answer(AbortView(aborted=True))


async def producers(scope: ControlScope, call: ControlCall) -> Response:
    """Return the producers of a partition."""
    from minibroker.control.transactions import producers_of  # noqa: PLC0415  as above

    scope.check_running()
    index = call.query.partition
    node, _ = led_partition(scope.nodes, call.part, index)
    return answer(await producers_of(scope, node.app, call.part, index))


OPERATIONS: Final = (
    ControlOperation(
        "transactions",
        "GET",
        "/transactions",
        "Transactions, open ones first, and those that hang",
        transactions,
        TransactionsView,
        query=TransactionsQuery,
        failures=(HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
    ControlOperation(
        "abort_transaction",
        "POST",
        "/transactions/abort",
        "Abort an open transaction; its producer is fenced",
        abort_transaction,
        AbortView,
        body=AbortChoice,
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            *NOT_RUNNING,
            HTTPStatus.GATEWAY_TIMEOUT,
        ),
    ),
    ControlOperation(
        "producers",
        "GET",
        "/topics/{topic}/producers",
        "The idempotent producers that a partition knows",
        producers,
        list_of(ProducerView),
        query=PartitionQuery,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
)
