"""DescribeUserScramCredentials: key 50, version 0.

Behaviour: returns the SCRAM mechanisms for which a user has a credential, with the number of
iterations. A request without users asks for every user that has a credential. The answer never
holds the keys.
Source: KIP-554; Kafka ZkAdminManager.describeUserScramCredentials.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from minibroker.broker.cluster.paths import DEFAULT_ENTITY, desanitize, sanitize
from minibroker.broker.slices import gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import cut_detail
from minibroker.kafka.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from minibroker.kafka.scram import MECHANISMS, iterations_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps


def handle(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> Steps[DescribeUserScramCredentialsResponse]:
    """Return one result per user, in the order of the request, or sorted by name if it
    names none.
    """
    configs = context.services.cluster.image.configs.get("users", {})
    results = []
    if not request.users:
        for stored, config in list(configs.items()):
            yield
            if stored == DEFAULT_ENTITY or "/" in stored:
                continue  # the default user, or a client of a user: these have quotas only
            result = _described(desanitize(stored), config)
            if result is not None:
                results.append(result)
        results.sort(key=lambda result: result.user)
    else:
        name_counts = Counter(user.name for user in request.users)
        results = yield from gather(
            _asked_for(name, count, configs.get(sanitize(name), {}))
            for name, count in name_counts.items()
        )
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def _asked_for(
    name: str, count: int, config: Mapping[str, str]
) -> DescribeUserScramCredentialsResult:
    if not name:
        return _failed(name, ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty")
    if count > 1:
        return _failed(
            name,
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request:"
            f" {name}",
        )
    return _described(name, config) or _failed(
        name,
        ErrorCode.RESOURCE_NOT_FOUND,
        f"Attempt to describe a user credential that does not exist: {name}",
    )


def _described(name: str, config: Mapping[str, str]) -> DescribeUserScramCredentialsResult | None:
    """Return the credentials of one user, None if it has none."""
    credentials = {code: config[key] for code, key in MECHANISMS.items() if key in config}
    if not credentials:
        return None
    infos = []
    for code, stored in credentials.items():
        iterations = iterations_of(stored)
        if iterations is None:
            detail = f"the {MECHANISMS[code]} credential of user {name} cannot be read"
            return _failed(name, ErrorCode.UNKNOWN_SERVER_ERROR, detail)
        infos.append(CredentialInfo(mechanism=code, iterations=iterations))
    return DescribeUserScramCredentialsResult(user=name, error_message="", credential_infos=infos)


def _failed(name: str, code: ErrorCode, detail: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=name, error_code=int(code), error_message=cut_detail(detail)
    )
