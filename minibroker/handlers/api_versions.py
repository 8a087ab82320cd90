"""ApiVersions: key 18, versions 0-5.

Behaviour: lists every served API with its version range; may come first on any connection and any
number of times. The answer to an unsupported version is `unsupported_version` in the body of
version 0 (KIP-511); `server/dispatch` asks for it.
Versions: 1 throttle time; 3 flexible, client name and version, features; 4 features with minimum 0
(KAFKA-17011); 5 cluster id and node id of whom the client means to reach (KIP-1242).
Differs from Kafka: features are those of 4.x that this broker runs (`cluster/features.py`); Kafka
3.9 with ZooKeeper has none, and so has a broker that passes for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.protocol.api_keys import API_VERSIONS
from minibroker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from minibroker.cluster.features import Features
    from minibroker.handlers.context import RequestContext

_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""KIP-511: what a client's name and version may look like; metrics are named after them."""


def handle(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """The table of served versions, or one error."""
    version = context.version
    if version >= 3:
        if not (
            _SOFTWARE_NAME.fullmatch(request.client_software_name)
            and _SOFTWARE_NAME.fullmatch(request.client_software_version)
        ):
            return ApiVersionsResponse(error_code=int(ErrorCode.INVALID_REQUEST))
        context.client_software_name = request.client_software_name
        context.client_software_version = request.client_software_version
    services = context.services
    if (
        version >= 5
        and request.cluster_id is not None
        and (request.cluster_id, request.node_id)
        != (services.cluster.image.cluster_id, services.config.broker_id)
    ):
        return ApiVersionsResponse(error_code=int(ErrorCode.REBOOTSTRAP_REQUIRED))
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in services.advertised_apis.items()
        ]
    )
    if version >= 3:
        _add_features(response, services.features, version)
    return response


def _add_features(response: ApiVersionsResponse, features: Features, version: int) -> None:
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in features.supported.items()
        if low or version >= 4  # older clients stumble over a lowest level of 0
    ]
    response.finalized_features_epoch = features.epoch
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in features.finalized().items()
    ]


def unsupported_version(low: int, high: int) -> ApiVersionsResponse:
    """Error 35 and the one range that the client needs to ask again."""
    return ApiVersionsResponse(
        error_code=int(ErrorCode.UNSUPPORTED_VERSION),
        api_keys=[ApiVersion(api_key=API_VERSIONS, min_version=low, max_version=high)],
    )
