"""ListConfigResources: key 74, versions 0-1.

Behaviour: returns the names of all resources that can have settings. Version 0 asks for client
metrics only. Version 1 asks for the given kinds, or for all kinds if it gives none; an unknown kind
is UNSUPPORTED_VERSION.

Versions:
- 1: kinds in request and answer (KIP-1142)
- 0: is KIP-1000's ListClientMetricsResources

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.paths import desanitize
from minibroker.broker.handlers.configs.resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.handlers.common.context import RequestContext, Services

_ALL: Final = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


def handle(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Return the resources of the wanted kinds, kind by kind."""
    if context.version == 0:
        kinds: Iterable[int] = (CLIENT_METRICS,)
    else:
        kinds = request.resource_types or _ALL
        if not set(kinds) <= set(_ALL):
            return ListConfigResourcesResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in _ALL
            if kind in kinds
            for name in _names(context.services, kind)
        ]
    )


def _names(services: Services, kind: int) -> list[str]:
    """Return the names of one kind, in alphabetical order (in Kafka they have no order)."""
    image = services.cluster.image
    if kind == TOPIC:
        return sorted(image.topics)
    if kind in (BROKER, BROKER_LOGGER):
        return [str(broker_id) for broker_id in sorted(image.brokers)]
    entity_type = "groups" if kind == GROUP else "client-metrics"
    configs = image.configs.get(entity_type, {})
    return sorted(desanitize(name) for name, values in configs.items() if values)
