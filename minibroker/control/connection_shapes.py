"""The shapes of connections."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from minibroker.control.shapes import AnswerShape, BrokerId, QueryShape


class ApiUse(AnswerShape):
    """The requests of one API that a connection sent."""

    version: Annotated[int, Meta(description="Of the last one.")]
    count: int


class ConnectionView(AnswerShape):
    """A connection of a client."""

    broker_id: BrokerId
    client_address: Annotated[str, Meta(description="HOST:PORT; requests have it, too.")]
    listener: str
    security: Annotated[str, Meta(description="`PLAINTEXT`, `SASL_SSL`, …")]
    principal: Annotated[str, Meta(description="Null: it has not proved one yet.")] | None
    client_id: Annotated[str, Meta(description="Of the last request.")] | None
    software_name: str | None
    software_version: str | None
    state: Annotated[str, Meta(description="`open`, `waiting`, `throttled`, `authenticating`, …")]
    age_ms: int
    idle_ms: Annotated[int, Meta(description="Since bytes came or went.")]
    requests: int
    request_bytes: int
    answer_bytes: int
    apis: dict[str, ApiUse]


class ConnectionsView(AnswerShape):
    """The connections of the brokers of this process, newest last."""

    connections: list[ConnectionView]
    cut: Annotated[bool, Meta(description="True: there are more.")]


class ConnectionsQuery(QueryShape):
    """A choice of connections."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="The most that are shown.")] = 500


class AddressQuery(QueryShape):
    """A choice of one connection."""

    client_address: Annotated[str, Meta(description="HOST:PORT.")]


class EndedConnection(AnswerShape):
    """A connection that was ended."""

    client_address: str
