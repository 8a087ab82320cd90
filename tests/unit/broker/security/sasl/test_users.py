"""The users of `minibroker.users`, and their SCRAM credentials in the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.secured import secured_settings
from minibroker.broker.security.sasl.users import users_of_config
from minibroker.kafka.errors import ConfigError
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path

USERS = {"alice": 'a "b" \\ c', "b c": "x\ny"}


def test_users_are_read_as_they_were_written() -> None:
    assert users_of_config(BrokerConfig(secured_settings("SASL_PLAINTEXT", USERS))) == USERS
    assert users_of_config(BrokerConfig()) == {}


def test_a_broken_value_is_refused_without_the_passwords() -> None:
    with pytest.raises(ConfigError, match=r"minibroker\.users: JAAS") as refused:
        users_of_config(BrokerConfig({"minibroker.users": 'alice="s3cret'}))
    assert "s3cret" not in str(refused.value)


async def test_credentials_are_written_once_and_again_with_another_password(
    tmp_path: Path,
) -> None:
    async def credentials(users: dict[str, str]) -> dict[str, str]:
        settings = secured_settings("SASL_PLAINTEXT", users)
        async with InProcessBroker(tmp_path, settings) as running:
            return dict(running.broker.cluster.config_of("users", "b%20c"))

    first = await credentials(USERS)
    assert first.keys() == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    assert await credentials(USERS) == first
    other = await credentials({**USERS, "b c": "other"})
    assert all(other[mechanism] != first[mechanism] for mechanism in first)
