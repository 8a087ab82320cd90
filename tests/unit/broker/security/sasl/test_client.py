"""This broker's logins at others: against its own server side, and against one that cheats."""

from __future__ import annotations

import base64
import hashlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.peers import PeerClient
from minibroker.broker.security.sasl.peer_logins import PeerLogins, login_of
from minibroker.broker.security.sasl.plain import PlainExchange
from minibroker.broker.security.sasl.scram import Login as ServerLogin
from minibroker.broker.security.sasl.scram import ScramExchange
from minibroker.client.sasl import PasswordLogin, ScramClient
from minibroker.kafka.errors import ConfigError, ProtocolError
from minibroker.kafka.scram import CODES, credential, credential_of, salted_password
from tests.support.in_process import ManualClock

if TYPE_CHECKING:
    from minibroker.broker.security.sasl.exchange import SaslExchange


SALT = b"salt"
PREFIX = "listener.name.sasl_plaintext."


def server(mechanism: str, password: str) -> SaslExchange:
    """Return a broker's side that knows the user `a,b=c`."""
    if mechanism == "PLAIN":
        return PlainExchange({"a,b=c": password})
    code = CODES[mechanism]
    credential_in_use = credential_of(
        credential(code, SALT, salted_password(code, password, SALT, 4096), 4096)
    )
    assert credential_in_use is not None
    return ScramExchange(
        mechanism, lambda name, _: ServerLogin(name, credential_in_use), lambda: "theirs"
    )


@pytest.mark.parametrize("mechanism", ["PLAIN", *CODES])
def test_a_login_is_complete_when_the_broker_has_proved_itself(mechanism: str) -> None:
    ours, theirs = (
        PasswordLogin(mechanism, "a,b=c", "secret").begin("host"),
        server(mechanism, "secret"),
    )
    token = ours.begin()
    while not ours.is_complete:
        token = ours.respond(theirs.respond(token, 0))
    assert theirs.is_complete
    assert theirs.name == "a,b=c"


def test_a_broker_that_does_not_know_the_credential_is_left() -> None:
    ours, theirs = ScramClient("SCRAM-SHA-256", "a", "secret", "x"), server("SCRAM-SHA-256", "s")
    ours.respond(theirs.respond(ours.begin(), 0))
    with pytest.raises(ProtocolError, match="does not know"):
        ours.respond(b"v=" + base64.b64encode(hashlib.sha256().digest()))
    assert not ours.is_complete


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"r=y,s=YQ==,i=4096",
        b"r=x1,s=YQ==,i=4095",
        b"r=x1,s=YQ==,i=99999999",
        b"r=x1,s=YQ,i=4096",
        b"e=unknown-user",
    ],
)
def test_a_first_message_that_no_broker_sends_is_refused(first: bytes) -> None:
    with pytest.raises(ProtocolError):
        ScramClient("SCRAM-SHA-256", "a", "secret", "x").respond(first)


def test_a_token_after_plain_is_refused() -> None:
    with pytest.raises(ProtocolError):
        PasswordLogin("PLAIN", "a", "b").begin("host").respond(b"x")


def test_a_printed_login_has_no_password() -> None:
    assert repr(PasswordLogin("PLAIN", "admin", "s3cret")) == "PasswordLogin(PLAIN, admin)"


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            **settings,
        }
    )


def test_a_login_stands_in_the_line_of_the_listener() -> None:
    settings = config(
        **{
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            f"{PREFIX}scram-sha-512.sasl.jaas.config": 'a.B required username=a password="b";',
        }
    )
    assert login_of(settings, "SASL_PLAINTEXT", ManualClock()) == PasswordLogin(
        "SCRAM-SHA-512", "a", "b"
    )
    assert login_of(settings, "PLAINTEXT", ManualClock()) is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "protocol=GSSAPI"),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"}, "expected one of its"),
        ({"sasl.mechanism.inter.broker.protocol": "PLAIN"}, "has no logins"),
        (
            {
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                f"{PREFIX}plain.sasl.jaas.config": 'a.B required username="a";',
            },
            "has no username and password",
        ),
    ],
)
def test_a_login_that_is_missing_is_named(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        login_of(config(**settings), "SASL_PLAINTEXT", ManualClock())


# Logins at other brokers: one for all clients, until settings are altered.


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
