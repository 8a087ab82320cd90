"""AlterUserScramCredentials where another broker is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.error_codes import ErrorCode
from minibroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


async def test_only_the_controller_changes_credentials(
    deposed: InProcessBroker, client: RawClient
) -> None:
    request = AlterUserScramCredentialsRequest(
        upsertions=[ScramCredentialUpsertion(name="a", mechanism=1)],
        deletions=[
            ScramCredentialDeletion(name="b", mechanism=1),
            ScramCredentialDeletion(name="a", mechanism=2),
        ],
    )
    answer = await client.call(request, 0)
    assert [(result.user, result.error_code) for result in answer.results] == [
        ("a", ErrorCode.NOT_CONTROLLER),
        ("b", ErrorCode.NOT_CONTROLLER),
    ]
