"""The settings of earlier runs, as a start finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.broker_access import BrokerAccess
from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.security.stored_passwords import StoredPasswords
from minibroker.broker.timers import Timers
from minibroker.clock import SystemClock
from tests.support.cluster import Recorder, new_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

SECRET, OLD = "password.encoder.secret", "password.encoder.old.secret"
PASSWORD, OTHER_PASSWORD = "listener.name.a.ssl.key.password", "listener.name.b.ssl.key.password"


async def test_settings_that_change_while_passwords_get_a_new_secret_stay_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SystemClock()
    config = BrokerConfig({SECRET: "new", OLD: "old"})
    cluster = new_cluster(EmbeddedTree(tmp_path / "metadata.db", clock), Recorder())
    await cluster.start()
    by_old = await StoredPasswords(BrokerConfig({SECRET: "old"})).encode(
        {PASSWORD: "a", OTHER_PASSWORD: "b"}
    )
    await cluster.alter_config("brokers", "0", {**by_old, "background.threads": "9"})
    passwords = StoredPasswords(config)
    later = await passwords.encode({OTHER_PASSWORD: "c"})
    encode_again = StoredPasswords.encode_again

    async def alter_meanwhile(self: StoredPasswords, stored: Mapping[str, str]) -> dict[str, str]:
        encoded = await encode_again(self, stored)
        await cluster.alter_config("brokers", "0", {**later, "background.threads": None})
        return encoded

    monkeypatch.setattr(StoredPasswords, "encode_again", alter_meanwhile)
    access = BrokerAccess(
        config, DynamicConfig(config), cluster, clock, Timers(clock), has_peers=False
    )
    await access.load_altered(lambda: passwords)
    stored = await cluster.stored_config("brokers", "0")
    assert await passwords.decode(stored) == {PASSWORD: "a", OTHER_PASSWORD: "c"}
    await cluster.close()
