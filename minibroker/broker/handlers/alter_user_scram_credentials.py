"""AlterUserScramCredentials: key 51, version 0.

Behaviour: sets and removes SCRAM credentials. Each user gets its own result, and all changes of a
user are made or none. The client sends the salted password, never the password. The credentials are
stored where Kafka 3.9 stores them; a listener with SCRAM uses them from the next login on.
Source: KIP-554; Kafka ZkAdminManager.alterUserScramCredentials.
Differs from Kafka: both mechanisms of a user may be set at once, as in 3.9. Kafka 4 refuses it, and
so does this broker where `minibroker.advertised.kafka.version` is 4.0 or newer.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.cluster.paths import sanitize
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, as_answer
from minibroker.kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from minibroker.kafka.protocol.refusals import refusal
from minibroker.kafka.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    credential,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext


async def handle(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Return one result per user."""
    if not context.services.cluster.is_controller:
        refused: AlterUserScramCredentialsResponse = refusal(
            request, context.version, ErrorCode.NOT_CONTROLLER, None
        )
        return refused
    response = AlterUserScramCredentialsResponse()
    turn = TimeSlice()
    for name, changes in _changes_of_users(request).items():
        result = AlterUserScramCredentialsResult(user=name, error_message="")
        response.results.append(result)
        try:
            await _alter(context, name, changes)
        except Exception as error:
            result.error_code, result.error_message = as_answer(error, f"credentials of {name}")
        if turn.is_over:
            await turn.pause()
    return response


class _UserChanges(NamedTuple):
    """The changes of one user, in the order of the request."""

    upsertions: list[ScramCredentialUpsertion]
    deletions: list[ScramCredentialDeletion]


def _changes_of_users(request: AlterUserScramCredentialsRequest) -> dict[str, _UserChanges]:
    """Return user → its changes. Users with an upsertion come first."""
    changes: dict[str, _UserChanges] = {}
    for upsertion in request.upsertions:
        changes.setdefault(upsertion.name, _UserChanges([], [])).upsertions.append(upsertion)
    for deletion in request.deletions:
        changes.setdefault(deletion.name, _UserChanges([], [])).deletions.append(deletion)
    return changes


async def _alter(context: RequestContext, name: str, asked_changes: _UserChanges) -> None:
    """Make all changes of one user. Raises KafkaError for the first change that is refused."""
    upsertions, deletions = asked_changes
    # Kafka reports the fault that it finds last, and it looks at upsertions last.
    in_order: list[ScramCredentialUpsertion | ScramCredentialDeletion] = [*deletions, *upsertions]
    for change in reversed(in_order):
        _check(change)
    mechanisms = Counter(change.mechanism for change in in_order)
    if max(mechanisms.values()) > 1 or (len(in_order) > 1 and _is_kafka_4(context)):
        raise KafkaError(
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        )
    cluster = context.services.cluster
    stored = cluster.config_of("users", sanitize(name))
    if any(MECHANISMS[deletion.mechanism] not in stored for deletion in deletions):
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )
    changes: dict[str, str | None] = {
        MECHANISMS[deletion.mechanism]: None for deletion in deletions
    }
    for upsertion in upsertions:
        if not upsertion.salted_password:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the salted password is empty")
        changes[MECHANISMS[upsertion.mechanism]] = credential(
            upsertion.mechanism, upsertion.salt, upsertion.salted_password, upsertion.iterations
        )
    await cluster.alter_config("users", sanitize(name), changes)


def _is_kafka_4(context: RequestContext) -> bool:
    """Return whether the advertised release takes one change of a user in a request, as Kafka 4."""
    release = context.services.config.advertised_kafka_version
    return release is not None and int(release.partition(".")[0]) >= 4


def _check(change: ScramCredentialUpsertion | ScramCredentialDeletion) -> None:
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in MECHANISMS:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialUpsertion):
        if change.iterations < ITERATIONS_MIN:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if change.iterations > ITERATIONS_MAX:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
