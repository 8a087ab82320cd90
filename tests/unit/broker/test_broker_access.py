"""Users, tokens and logins of a broker, as its settings ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.app import Broker
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.kafka.errors import ConfigError
from tests.support.in_process import InProcessBroker, ManualClock

if TYPE_CHECKING:
    from pathlib import Path

LISTENER = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
}
USERS = {"minibroker.users": 'alice="secret"'}


async def test_a_broker_without_such_settings_has_none_of_it(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        access = running.broker.access
        assert (access.authorizer, access.tokens) == (None, None)
        assert running.broker.cluster.peer_logins is None
        assert running.broker.cluster.peer_contexts is None


async def test_users_of_the_settings_have_credentials_after_the_start(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, {**LISTENER, **USERS}) as running:
        assert "SCRAM-SHA-256" in running.broker.cluster.config_of("users", "alice")
        login_of = running.broker.cluster.peer_logins
        assert login_of is not None
        assert login_of("SASL_PLAINTEXT").name == "alice"


async def test_a_start_is_refused_where_others_could_not_be_logged_in_at(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, LISTENER):
        pass  # no other broker may come, so there is nothing to log in at
    tree = SharedTree(tmp_path / "tree", ManualClock())
    await tree.open()
    with pytest.raises(ConfigError, match="has no logins"):
        await Broker(
            BrokerConfig({**LISTENER, "log.dirs": str(tmp_path / "of-two")}), tree=tree.session()
        ).start()
    await tree.close()
