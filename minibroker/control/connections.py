"""The connections of clients, with what they are used for."""

from __future__ import annotations

from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING

from minibroker.broker.server.transport import ClientTransport
from minibroker.broker.slices import TimeSlice
from minibroker.control.connection_shapes import ApiUse, ConnectionsView, ConnectionView
from minibroker.control.messages import HttpError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.server.connections import ClientConnection
    from minibroker.rig.node import Node

_UNKNOWN = "unknown"
"""Kafka's word for a client that did not say its software."""


async def connections_of(nodes: Sequence[Node], limit: int) -> ConnectionsView:
    """Return the connections of some brokers, at most so many."""
    views: list[ConnectionView] = []
    turn = TimeSlice()
    total = sum(len(node.app.connections) for node in nodes)
    for node in nodes:
        for connection in islice(node.app.connections, limit - len(views)):
            views.append(_view(node, connection))
            if turn.is_over:
                await turn.pause()
    return ConnectionsView(connections=views, cut=total > len(views))


def _view(node: Node, connection: ClientConnection) -> ConnectionView:
    now_s = node.app.connections.loop.time()
    listener = connection.listener
    idle_ms = int((now_s - connection.last_active_s) * 1000)
    if not isinstance(connection, ClientTransport):
        return ConnectionView(
            broker_id=node.broker_id,
            client_address=connection.address,
            listener=listener.name,
            security=listener.security_protocol,
            principal=None,
            client_id=None,
            software_name=None,
            software_version=None,
            state="handshake",
            age_ms=idle_ms,
            idle_ms=idle_ms,
            requests=0,
            request_bytes=0,
            answer_bytes=0,
            apis={},
        )
    context = connection.context
    use = node.interceptor.connection_uses.of(context)
    state = connection.connection.state.name.lower()
    return ConnectionView(
        broker_id=node.broker_id,
        client_address=connection.address,
        listener=listener.name,
        security=listener.security_protocol,
        principal=None if state in ("authenticating", "verifying") else context.principal,
        client_id=use.client_id,
        software_name=_software(context.client_software_name),
        software_version=_software(context.client_software_version),
        state=state,
        age_ms=int((now_s - connection.connected_s) * 1000),
        idle_ms=idle_ms,
        requests=use.requests,
        request_bytes=use.request_bytes,
        answer_bytes=use.answer_bytes,
        apis={name: ApiUse(version=api[0], count=api[1]) for name, api in use.apis.items()},
    )


def _software(software: str) -> str | None:
    return None if software == _UNKNOWN else software


def end_connection(nodes: Sequence[Node], client_address: str) -> None:
    """End a connection at once. Raises HttpError(404)."""
    for node in nodes:
        for connection in node.app.connections:
            if connection.address == client_address:
                connection.drop()
                return
    raise HttpError(HTTPStatus.NOT_FOUND, f"there is no connection from {client_address:.100}")
