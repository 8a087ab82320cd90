"""AlterConfigs: key 33, versions 0-2.

Behaviour: the listed values replace all values the resource has of its own. Every resource is
answered by itself; `validate_only` does all but the change.
Versions: 1 the answer precedes the pause of a quota; 2 flexible.
Differs from Kafka: client metrics and groups can be altered as in Kafka 4, though the metadata is
ZooKeeper's; the keys of listeners are refused for brokers (they take effect at start).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.config.alterations import as_changes
from minibroker.errors import CoordinationError, KafkaError
from minibroker.handlers.config_resources import (
    BROKER_LOGGER,
    REPEATED_DETAIL,
    check_names,
    check_resource,
    check_values,
    current_values,
    entity_of,
    failure,
    invalid_request,
    repeated,
)
from minibroker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from minibroker.error_codes import ErrorCode
    from minibroker.handlers.context import RequestContext, Services


async def handle(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """One answer per resource, in the order of the request."""
    twice = repeated((r.resource_type, r.resource_name) for r in request.resources)
    responses = []
    for resource in request.resources:
        code, message = 0, None
        try:
            if (resource.resource_type, resource.resource_name) in twice:
                raise invalid_request(REPEATED_DETAIL)
            await _alter(context.services, resource, validate_only=request.validate_only)
        except (KafkaError, CoordinationError) as error:
            code, message = failure(error)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return AlterConfigsResponse(responses=responses)


async def _alter(
    services: Services, resource: AlterConfigsResource, *, validate_only: bool
) -> None:
    kind, name = resource.resource_type, resource.resource_name
    check_names(
        (config.name for config in resource.configs),
        (config.name for config in resource.configs if config.value is None),
    )
    if kind == BROKER_LOGGER:
        raise invalid_request(f"Unknown resource type {kind}")
    check_resource(services, kind, name)
    wanted = {config.name: config.value for config in resource.configs if config.value is not None}
    check_values(services, kind, name, wanted)
    changes = as_changes(current_values(services, kind, name), wanted)
    if changes and not validate_only:
        await services.cluster.alter_config(*entity_of(kind, name), changes)


def error_response(
    request: AlterConfigsRequest, version: int, code: ErrorCode, detail: str | None
) -> AlterConfigsResponse:
    """The code for every resource of the request."""
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=int(code),
                error_message=detail,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )
