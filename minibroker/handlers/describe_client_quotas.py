"""DescribeClientQuotas: key 48, versions 0-1.

Behaviour: answers the quotas of the entities that the filter lets through, by exact name, default
entity or any; from the metadata image, so at once.
Versions: 1 flexible. Source: KIP-546.
Differs from Kafka: nothing known; errors are worded as 3.9's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from minibroker.quotas.entities import Component, matching, parts

if TYPE_CHECKING:
    from minibroker.error_codes import ErrorCode
    from minibroker.handlers.context import RequestContext


def handle(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """One entry per entity that has quotas and matches."""
    components = [
        Component(one.entity_type, one.match_type, one.match) for one in request.components
    ]
    configs = context.services.cluster.image.configs
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name) for kind, name in parts(entity)
                ],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in matching(configs, components, strict=request.strict)
        ]
    )


def error_response(
    request: DescribeClientQuotasRequest, version: int, code: ErrorCode, detail: str | None
) -> DescribeClientQuotasResponse:
    """The code, and no list of entries at all."""
    return DescribeClientQuotasResponse(error_code=int(code), error_message=detail, entries=None)
