"""AlterConfigs: key 33, versions 0-2.

Behaviour: the listed values replace all values that the resource has of its own. Each resource gets
its own result. `validate_only` does everything but the change.

Versions:
- 1: a client over its quota is answered first and paused after
- 2: flexible

Differs from Kafka: client metrics and groups can be altered as in Kafka 4, although the metadata is
kept as in ZooKeeper. Security settings that are not served are read-only (`config/unserved.py`). A
new listener whose settings of TLS or SASL let no client in is refused; Kafka takes it, and its log
has the error.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from minibroker.broker.config.alterations import as_changes
from minibroker.broker.handlers.configs.edits import edit_config
from minibroker.broker.handlers.configs.resources import (
    BROKER,
    BROKER_LOGGER,
    answer_each,
    check_min_insync_replicas,
    check_names,
    check_permission,
    check_resource,
    check_values,
    invalid_request,
)
from minibroker.broker.security.acls import Operation
from minibroker.kafka.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext


async def handle(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Return one result per resource, in the order of the request."""
    alter = partial(_alter, context, validate_only=request.validate_only)
    return AlterConfigsResponse(
        responses=await answer_each(request.resources, AlterConfigsResourceResponse, alter)
    )


async def _alter(
    context: RequestContext, resource: AlterConfigsResource, *, validate_only: bool
) -> None:
    services = context.services
    kind, name = resource.resource_type, resource.resource_name
    check_names(
        (config.name for config in resource.configs),
        (config.name for config in resource.configs if config.value is None),
    )
    if kind == BROKER_LOGGER:
        raise invalid_request(f"Unknown resource type {kind}")
    if kind == BROKER:  # its name is checked before the permission, as in Kafka
        check_resource(services, kind, name)
    check_permission(context, Operation.ALTER_CONFIGS, kind, name)
    check_resource(services, kind, name)
    values = {config.name: config.value for config in resource.configs if config.value is not None}

    def edit(current: dict[str, str]) -> dict[str, str]:
        check_values(services, kind, name, values)
        check_min_insync_replicas(services, kind, name, as_changes(current, values))
        return values

    await edit_config(services, kind, name, edit, values, validate_only=validate_only)
