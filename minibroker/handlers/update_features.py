"""UpdateFeatures: key 57, versions 0-2.

Behaviour: puts features in force at the levels asked for, all of them or none; level 0 takes one
out of force. `transaction.version` says which transaction protocol clients may use (KIP-890),
`group.version` whether the new group protocol is there (KIP-848). In force,
`eligible.leader.replicas.version` (KIP-966) fixes `min.insync.replicas` for the whole cluster.
Versions: 1 kind of change and validate only (KIP-778), before it levels only go up; 2 no result per
feature. Source: KIP-584, KIP-1022; Kafka QuorumController.updateFeatures.
Differs from Kafka: answers as 4.x in all versions; 3.9 with ZooKeeper has no feature to update and
says so once per feature (INVALID_REQUEST).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.cluster.features import FeatureUpdate
from minibroker.error_codes import ErrorCode
from minibroker.errors import CoordinationError, KafkaError
from minibroker.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext

_ALL_FAILED = "The update failed for all features since the following feature had an error: "


async def handle(context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """One outcome for all."""
    services = context.services
    if not services.cluster.is_controller:
        return UpdateFeaturesResponse(error_code=int(ErrorCode.NOT_CONTROLLER), error_message=None)
    updates = [
        FeatureUpdate(one.feature, one.max_version_level, one.upgrade_type)
        for one in request.feature_updates
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
        # Kafka puts the name of "no error" into the message.
        response.results = [
            UpdatableFeatureResult(feature=one.feature, error_message=ErrorCode.NONE.name)
            for one in request.feature_updates
        ]
    return response
