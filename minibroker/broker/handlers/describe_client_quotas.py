"""DescribeClientQuotas: key 48, versions 0-1.

Behaviour: returns the quotas of every entity that matches the filter: an exact name, the default
entity, or any. The answer comes from the metadata image, at once.

Versions:
- 1: flexible

Source: KIP-546.

Differs from Kafka: nothing known. The error messages are those of 3.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.quotas.entities import Component, matching_entities, parts
from minibroker.kafka.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext


def handle(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Return one entry per matching entity that has quotas."""
    components = [
        Component(part.entity_type, part.match_type, part.match) for part in request.components
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
            for entity, quotas in matching_entities(configs, components, strict=request.strict)
        ]
    )
