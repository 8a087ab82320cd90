"""Logins at other brokers: one for all clients, until settings are altered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.peers.client import PeerClient
from minibroker.broker.security.sasl.peer_logins import PeerLogins
from tests.support.in_process import ManualClock

LISTENER = "SASL_PLAINTEXT"
CONFIG = BrokerConfig(
    {
        "listeners": f"{LISTENER}://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": LISTENER,
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
            'a.B required unsecuredLoginStringClaim_sub="broker";'
        ),
    }
)


def test_clients_share_a_login_until_settings_are_altered() -> None:
    in_force = CONFIG
    logins = PeerLogins(lambda: in_force, ManualClock())
    first = logins.of(LISTENER)
    assert first is not None
    assert logins.of(LISTENER) is first
    assert logins.of("PLAINTEXT") is None
    in_force = CONFIG.with_overrides({"sasl.login.refresh.window.factor": "0.5"})
    second = logins.of(LISTENER)
    assert second is not first
    assert logins.of(LISTENER) is second


def test_two_clients_of_other_brokers_have_one_login() -> None:
    logins = PeerLogins(lambda: CONFIG, ManualClock())
    cluster: Any = SimpleNamespace(peer_logins=logins.of)
    first, second = (
        PeerClient.of(cluster, CONFIG, listener=LISTENER, timeout_ms=1) for _ in range(2)
    )
    assert first._login is second._login is logins.of(LISTENER)
