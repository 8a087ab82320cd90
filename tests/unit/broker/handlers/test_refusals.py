"""The refusals of tokens and of SASL: their fields.

Apache Kafka's own refusals stand beside them in tests/compat/scenarios/admin.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.handlers.refusals import error_response
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from minibroker.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest

if TYPE_CHECKING:
    from tests.support.in_process import RawClient


async def test_a_token_is_refused_with_the_principals_that_it_would_have_had(
    client: RawClient,
) -> None:
    request = CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="carol", renewers=[], max_lifetime_ms=-1
    )
    answer = await client.call(request, 3)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (answer.principal_type, answer.principal_name) == ("User", "carol")
    assert answer.token_requester_principal_name == "ANONYMOUS"
    assert answer.expiry_timestamp_ms == -1


def test_a_failure_of_the_broker_is_told_in_the_form_of_the_api() -> None:
    """An internal failure is not answered with the refusal's code."""
    request = SaslAuthenticateRequest()
    answer = error_response(request, 1, ErrorCode.UNKNOWN_SERVER_ERROR, "why")
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, "why")
