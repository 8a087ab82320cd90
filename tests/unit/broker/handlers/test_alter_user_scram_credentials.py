"""AlterUserScramCredentials: the controller alone, and several changes of one user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.support.counted_work import CountedWork
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient


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


@pytest.mark.parametrize(
    ("release", "code"),
    [
        ("", ErrorCode.NONE),
        ("3.9", ErrorCode.NONE),
        ("4.0", ErrorCode.DUPLICATE_RESOURCE),
        ("4.4", ErrorCode.DUPLICATE_RESOURCE),
    ],
)
async def test_a_user_has_two_changes_in_a_request_before_kafka_4(
    release: str, code: ErrorCode, tmp_path: Path
) -> None:
    settings = {"minibroker.advertised.kafka.version": release} if release else {}
    change = {"name": "a", "iterations": 4096, "salt": b"s", "salted_password": b"p"}
    request = AlterUserScramCredentialsRequest(
        upsertions=[ScramCredentialUpsertion(**change, mechanism=number) for number in (1, 2)]
    )
    async with InProcessBroker(tmp_path, settings) as running, await running.connect() as client:
        answer = await client.call(request, 0)
        single = await client.call(
            AlterUserScramCredentialsRequest(
                upsertions=[ScramCredentialUpsertion(**change, mechanism=1)]
            ),
            0,
        )
    assert [result.error_code for result in answer.results] == [code]
    assert [result.error_code for result in single.results] == [ErrorCode.NONE]


async def test_the_work_grows_as_the_number_of_users(client: RawClient) -> None:
    async def count_calls(user_count: int) -> int:
        deletions = [
            ScramCredentialDeletion(name=f"u{number}", mechanism=1) for number in range(user_count)
        ]
        with CountedWork() as work:
            await client.call(AlterUserScramCredentialsRequest(deletions=deletions), 0)
        return work.lines

    small = await count_calls(500)
    assert await count_calls(2_000) < 5 * small
