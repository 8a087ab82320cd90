"""UpdateFeatures: key 57, versions 0-2.

Behaviour: sets the levels of features, all of them or none; level 0 disables a feature.
`transaction.version` selects the transaction protocol of clients (KIP-890). `group.version` enables
the new group protocol (KIP-848). `eligible.leader.replicas.version` (KIP-966), if enabled, fixes
`min.insync.replicas` for the whole cluster.

Versions:
- 1: kind of change and validate only (KIP-778), version 0 only raises levels
- 2: no result per feature

Source: KIP-584, KIP-1022; Kafka QuorumController.updateFeatures.

Differs from Kafka: answers like 4.x in all versions. Kafka 3.9 with ZooKeeper has no features and
answers INVALID_REQUEST for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.cluster.feature_update import FeatureUpdate
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext

_ALL_FAILED = "The update failed for all features since the following feature had an error: "


async def handle(context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Return one outcome for all features."""
    services = context.services
    if not services.cluster.is_controller:
        return UpdateFeaturesResponse(error_code=int(ErrorCode.NOT_CONTROLLER), error_message=None)
    updates = [
        FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    ]
    try:
        await services.cluster.update_features(updates, validate_only=request.validate_only)
    except KafkaError as error:
        return UpdateFeaturesResponse(
            error_code=int(error.code), error_message=f"{_ALL_FAILED}{error.detail}"
        )
    except CoordinationError as error:
        return UpdateFeaturesResponse(
            error_code=int(ErrorCode.FEATURE_UPDATE_FAILED), error_message=str(error)
        )
    response = UpdateFeaturesResponse(error_message=None)
    if context.version <= 1:
        # Kafka writes the name of the error code NONE into the message.
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message=ErrorCode.NONE.name)
            for update in request.feature_updates
        ]
    return response
