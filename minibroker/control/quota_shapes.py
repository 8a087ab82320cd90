"""The shapes of quotas."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from minibroker.control.shapes import AnswerShape, QueryShape

Name = Annotated[
    str, Meta(max_length=1000, description="`<default>`: all that have no quota of their own.")
]


class QuotaView(AnswerShape):
    """The quotas of one entity; a part that is null does not belong to it."""

    user: Name | None
    client_id: Name | None
    ip: Name | None
    values: dict[str, float]


class QuotaChange(QueryShape):
    """Quotas of one entity to change."""

    user: Name | None = None
    client_id: Name | None = None
    ip: Name | None = None
    set: Annotated[
        dict[str, float],
        Meta(
            max_length=10,
            description="producer_byte_rate, consumer_byte_rate, request_percentage,"
            " controller_mutation_rate; of an IP connection_creation_rate.",
        ),
    ] = field(default_factory=dict)
    remove: Annotated[list[str], Meta(max_length=10)] = field(default_factory=list)
