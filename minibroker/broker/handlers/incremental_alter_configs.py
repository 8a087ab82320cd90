"""IncrementalAlterConfigs: key 44, versions 0-1.

Behaviour: sets and deletes single keys, and appends to or subtracts from lists; other keys keep
their values. Each resource gets its own result. `validate_only` does everything but the change.
Broker loggers are the Python loggers of this process: a level acts at once and is not stored.

Versions:
- 1: flexible

Source: KIP-339.

Differs from Kafka: like AlterConfigs. Logger names are this broker's
(`minibroker.broker.server`). TRACE is a level below Python's DEBUG.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from minibroker.broker.config.alterations import DELETE, SET, SUBTRACT, Change, apply_changes
from minibroker.broker.config.keys import BROKER_KEYS, CLIENT_METRICS_KEYS, GROUP_KEYS, TOPIC_KEYS
from minibroker.broker.handlers.configs.edits import edit_config
from minibroker.broker.handlers.configs.resources import (
    BROKER,
    BROKER_LOGGER,
    TOPIC,
    answer_each,
    check_min_insync_replicas,
    check_names,
    check_permission,
    check_resource,
    check_values,
    is_known_kind,
)
from minibroker.broker.security.acls import Operation
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.config_keys import ConfigKey


async def handle(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Return one result per resource, in the order of the request."""
    alter = partial(_alter, context, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
        responses=await answer_each(request.resources, AlterConfigsResourceResponse, alter)
    )


async def _alter(
    context: RequestContext, resource: AlterConfigsResource, *, validate_only: bool
) -> None:
    services = context.services
    kind, name = resource.resource_type, resource.resource_name
    changes = [
        Change(config.name, config.config_operation, config.value) for config in resource.configs
    ]
    check_names(
        (change.name for change in changes),
        (change.name for change in changes if change.operation != DELETE and change.value is None),
    )
    if kind == BROKER_LOGGER and is_known_kind(services, BROKER_LOGGER):
        from minibroker.broker.handlers.configs.loggers import alter_levels  # noqa: PLC0415  rare

        check_permission(context, Operation.ALTER_CONFIGS, kind, name)
        alter_levels(services.config.broker_id, name, changes, validate_only=validate_only)
        return
    if kind == BROKER:  # its name is checked before the permission, as in Kafka
        check_resource(services, kind, name)
    check_permission(context, Operation.ALTER_CONFIGS, kind, name)
    check_resource(services, kind, name)
    for change in changes:
        if not SET <= change.operation <= SUBTRACT:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # both Kafkas answer so
    changed_values = {
        change.name: None if change.operation == DELETE else change.value for change in changes
    }

    def edit(current: dict[str, str]) -> dict[str, str]:
        try:
            values = apply_changes(current, changes, _keys_of(kind))
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
        check_values(services, kind, name, values)
        check_min_insync_replicas(services, kind, name, changed_values)
        return values

    texts = {change.name: change.value or "" for change in changes if change.operation != DELETE}
    await edit_config(services, kind, name, edit, texts, validate_only=validate_only)


def _keys_of(kind: int) -> Mapping[str, ConfigKey]:
    if kind == TOPIC:
        return TOPIC_KEYS
    if kind == BROKER:
        return BROKER_KEYS
    return {**GROUP_KEYS, **CLIENT_METRICS_KEYS}
