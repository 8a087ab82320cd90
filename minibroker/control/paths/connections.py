"""Paths of connections."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control.bodies import answer, pieces_of
from minibroker.control.connection_shapes import (
    AddressQuery,
    ConnectionsQuery,
    ConnectionsView,
    EndedConnection,
)
from minibroker.control.connections import connections_of, end_connection
from minibroker.control.messages import Response
from minibroker.control.operations import NOT_RUNNING, ControlOperation

if TYPE_CHECKING:
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope


async def connections(scope: ControlScope, call: ControlCall) -> Response:
    """Return the connections."""
    scope.check_running()
    query: ConnectionsQuery = call.query
    view = await connections_of(scope.running, query.limit)
    return Response(HTTPStatus.OK, await scope.slices.join(pieces_of(view)))


async def drop_connection(scope: ControlScope, call: ControlCall) -> Response:
    """End a connection."""
    scope.check_running()
    query: AddressQuery = call.query
    end_connection(scope.running, query.client_address)
    return answer(EndedConnection(client_address=query.client_address))


OPERATIONS: Final = (
    ControlOperation(
        "connections",
        "GET",
        "/connections",
        "The connections of clients, and what they are used for",
        connections,
        ConnectionsView,
        query=ConnectionsQuery,
        failures=NOT_RUNNING,
    ),
    ControlOperation(
        "drop_connection",
        "DELETE",
        "/connections",
        "End a connection at once, as a network that fails does",
        drop_connection,
        EndedConnection,
        query=AddressQuery,
        failures=(HTTPStatus.NOT_FOUND, *NOT_RUNNING),
    ),
)
