"""ApiVersions: key 18, versions 0-5.

Behaviour: lists every served API with its range of versions. A client may send it at any time and
any number of times. An unsupported version is answered with `unsupported_version`, in the body of
version 0 (KIP-511); `server/dispatch` calls it.

Versions:
- 1: throttle time
- 3: flexible, client name and version, features
- 4: features with minimum 0 (KAFKA-17011)
- 5: id of the cluster and of the broker that the client expects (KIP-1242)

Differs from Kafka: the features are those of 4.x that this broker has (`cluster/features.py`).
Kafka 3.9 with ZooKeeper has none, and a broker that advertises that release lists none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import API_VERSIONS
from minibroker.kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from minibroker.broker.cluster.features import Features
    from minibroker.broker.handlers.common.context import RequestContext

_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Allowed form of a client's software name and version (KIP-511); Kafka names metrics by them."""


def handle(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Return the table of served versions, or an error."""
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
        if low or version >= 4  # older clients fail on a lowest level of 0
    ]
    response.finalized_features_epoch = features.epoch
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in features.finalized().items()
    ]


def unsupported_version(low: int, high: int) -> ApiVersionsResponse:
    """Return error 35 with the versions of ApiVersions, which the client needs to ask again."""
    return ApiVersionsResponse(
        error_code=int(ErrorCode.UNSUPPORTED_VERSION),
        api_keys=[ApiVersion(api_key=API_VERSIONS, min_version=low, max_version=high)],
    )
