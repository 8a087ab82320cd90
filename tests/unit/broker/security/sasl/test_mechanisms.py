"""The mechanisms of a listener, from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.secured import secured_settings
from minibroker.broker.security.sasl import mechanisms as module
from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.broker.security.sasl.mechanisms import KNOWN_MAX, Mechanisms, ScramLogins
from minibroker.broker.security.sasl.plain import PlainExchange, users_of
from minibroker.broker.security.sasl.scram import ScramExchange
from minibroker.broker.security.sasl.users import users_of_config
from minibroker.broker.timers import Timers
from minibroker.client.sasl import nonce
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.scram import (
    ScramCredential,
    credential,
    credential_of,
    salted_password,
)
from tests.support.in_process import InProcessBroker, ManualClock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from minibroker.broker.security.sasl.exchange import SaslExchange


LINE = 'a.PlainLoginModule required user_alice="secret";'
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
STORED = credential(1, b"salt", salted_password(1, "pw", b"salt", 4096), 4096)


def mechanisms(**settings: str) -> Mechanisms:
    """Return those of a listener SASL_PLAINTEXT; two underscores in a key stand for a dot."""
    config = BrokerConfig(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            **{key.replace("__", "."): value for key, value in settings.items()},
        }
    )

    def config_of_user(user: str) -> Mapping[str, str]:
        return {"SCRAM-SHA-256": STORED, "SCRAM-SHA-512": "?"} if user == "bob" else {}

    return Mechanisms(config, config.listeners[0], config_of_user=config_of_user)


def test_the_order_is_that_of_kafka() -> None:
    enabled = mechanisms(
        sasl__enabled__mechanisms="SCRAM-SHA-256,PLAIN,SCRAM-SHA-512,PLAIN", **{JAAS: LINE}
    )
    assert enabled.names == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]
    assert enabled.receive_bytes_max == 524_288


def test_an_exchange_knows_the_users_of_the_listener() -> None:
    attempt = mechanisms(sasl__enabled__mechanisms="PLAIN", **{JAAS: LINE}).begin("PLAIN")
    attempt.respond(b"\0alice\0secret", 0)
    assert attempt.name == "alice"


@pytest.mark.parametrize("enabled", ["OAUTHBEARER", "PLAIN"])
async def test_tokens_that_nobody_signs_are_one_line_at_the_start(
    enabled: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    names = mechanisms(sasl__enabled__mechanisms=enabled, **{JAAS: LINE})
    assert caplog.messages == []
    await names.start(Timers(clock), clock)
    expected = [
        "listener SASL_PLAINTEXT takes unsecured tokens of OAUTHBEARER: whoever knows the name of a"
        " user gets in as this user. For signed tokens set"
        " listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"
    ]
    assert caplog.messages == (expected if enabled == "OAUTHBEARER" else [])
    await names.close()


def test_an_exchange_finds_the_credential_of_its_mechanism() -> None:
    enabled = mechanisms(sasl__enabled__mechanisms="SCRAM-SHA-256,SCRAM-SHA-512")
    assert enabled.begin("SCRAM-SHA-256").respond(b"n,,n=bob,r=x", 0).endswith(b",i=4096")
    for mechanism, first in (
        ("SCRAM-SHA-512", b"n,,n=bob,r=x"),
        ("SCRAM-SHA-256", b"n,,n=eve,r=x"),
        ("SCRAM-SHA-256", b"n,,n=bob,r=x,tokenauth=true"),
    ):
        with pytest.raises(CredentialsError):
            enabled.begin(mechanism).respond(first, 0)


def test_the_length_of_a_session_is_that_of_the_nearest_setting() -> None:
    prefix = "listener.name.sasl_plaintext."
    enabled = mechanisms(
        **{
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "connections.max.reauth.ms": "1000",
            f"{prefix}scram-sha-256.connections.max.reauth.ms": "5",
        }
    )
    lengths = [enabled.max_session_ms(name) for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
    assert lengths == [5, 1000]
    enabled = mechanisms(
        **{
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            f"{prefix}connections.max.reauth.ms": "7",
        }
    )
    assert enabled.max_session_ms("SCRAM-SHA-256") == 7


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "enables GSSAPI and has no logins"),
        ({"sasl.enabled.mechanisms": ""}, "is empty"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, f"set {JAAS}"),
        ({"sasl.enabled.mechanisms": "PLAIN", JAAS: "s3cret"}, f"{JAAS}: JAAS: the control flag"),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": "x",
            },
            "expected a number of milliseconds",
        ),
    ],
)
def test_settings_that_let_nobody_in_are_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        mechanisms(**settings)
    assert "s3cret" not in str(refused.value)


def test_no_two_nonces_are_equal() -> None:
    assert len({nonce() for _ in range(100)}) == 100


def test_a_stored_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def reading(stored: str) -> ScramCredential | None:
        texts.append(stored)
        return credential_of(stored)

    monkeypatch.setattr(module, "credential_of", reading)
    users = {"bob": {"SCRAM-SHA-256": STORED}, "eve": {"SCRAM-SHA-256": "?"}}
    logins = ScramLogins("SCRAM-SHA-256", lambda user: users.get(user, {}), None)
    for _ in range(3):
        login = logins.find("bob", is_token=False)
        assert login is not None
        assert login.credential == credential_of(STORED)
        assert logins.find("eve", is_token=False) is None
    assert texts == [STORED, "?"]


def test_a_changed_credential_counts_at_once_and_a_removed_one_is_forgotten() -> None:
    users = {"bob": {"SCRAM-SHA-256": STORED}}
    logins = ScramLogins("SCRAM-SHA-256", lambda user: users.get(user, {}), None)
    assert logins.find("bob", is_token=False) is not None
    other = credential(1, b"other", salted_password(1, "new", b"other", 4096), 4096)
    users["bob"]["SCRAM-SHA-256"] = other
    login = logins.find("bob", is_token=False)
    assert login is not None
    assert login.credential == credential_of(other)
    users.clear()
    assert logins.find("bob", is_token=False) is None
    assert logins._logins == {}


def test_no_more_users_are_kept_than_allowed() -> None:
    logins = ScramLogins("SCRAM-SHA-256", lambda _: {"SCRAM-SHA-256": STORED}, None)
    for number in range(KNOWN_MAX + 1):
        assert logins.find(f"user-{number}", is_token=False) is not None
    assert len(logins._logins) == 1


# Every mechanism's exchange has the parts that the authenticator uses.


def test_a_new_exchange_is_not_complete() -> None:
    exchanges: list[SaslExchange] = [
        PlainExchange({}),
        ScramExchange("SCRAM-SHA-256", lambda *_: None, lambda: ""),
    ]
    for exchange in exchanges:
        assert (exchange.is_complete, exchange.name, exchange.is_token) == (False, "", False)


def test_the_two_failures_are_no_kind_of_each_other() -> None:
    assert not issubclass(RefusedError, CredentialsError)
    assert not issubclass(CredentialsError, RefusedError)


# PLAIN: names and passwords; the dialogues with Kafka's answers are integration tests.


USERS = {"alice": "secret", "jürgen": "\ud83d\ude00"}


def test_users_stand_in_the_options() -> None:
    options = {"username": "admin", "password": "p", "user_alice": "secret", "user_": "x"}
    assert users_of(options) == {"alice": "secret", "": "x"}


@pytest.mark.parametrize("token", ["\0alice\0secret", "alice\0alice\0secret", "\0jürgen\0😀"])
def test_the_right_password_completes_the_exchange(token: str) -> None:
    exchange = PlainExchange(USERS)
    assert exchange.respond(token.encode(), 0) == b""
    assert exchange.is_complete
    assert exchange.name in token
    assert exchange.expires_ms is None


@pytest.mark.parametrize(
    "token", ["", "\0alice\0", "\0\0secret", "\0alice\0Secret", "\0x\0secret", "x\0alice\0secret"]
)
def test_anything_else_is_refused(token: str) -> None:
    exchange = PlainExchange({**USERS, "": "secret"})
    with pytest.raises(RefusedError) as refused:
        exchange.respond(token.encode(), 0)
    assert not exchange.is_complete
    assert "secret" not in str(refused.value)


# The users of `minibroker.users`, and their SCRAM credentials in the tree.


CONFIGURED_USERS = {"alice": 'a "b" \\ c', "b c": "x\ny"}


def test_users_are_read_as_they_were_written() -> None:
    assert (
        users_of_config(BrokerConfig(secured_settings("SASL_PLAINTEXT", CONFIGURED_USERS)))
        == CONFIGURED_USERS
    )
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

    first = await credentials(CONFIGURED_USERS)
    assert first.keys() == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    assert await credentials(CONFIGURED_USERS) == first
    other = await credentials({**CONFIGURED_USERS, "b c": "other"})
    assert all(other[mechanism] != first[mechanism] for mechanism in first)
