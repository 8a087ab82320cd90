"""No password, key or token stands in a log, a list of processes, an error or an answer.

One broker has a known secret in every setting that takes one. Clients log in well and badly,
administrators ask and alter, and whatever comes out is searched.
"""

from __future__ import annotations

import logging
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.keys import BROKER_KEYS
from minibroker.cli import main
from minibroker.cli.errors import EXIT_USAGE
from minibroker.kafka.errors import ConfigError, MinibrokerError
from minibroker.testing import Broker
from tests.support.certificates import STORES, broker_certificate
from tests.support.mixed_logins import DIALOGUES, LISTENERS, PROTOCOLS, SETTINGS, play
from tests.support.peers import write_properties
from tests.support.processes import ManagedProcess, free_port
from tests.support.sasl_dialogues import ALICE, BOB, JWKS_URL, SASL, Talk, add_scram_users
from tests.support.signed_tokens import write_jwks
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = "127.0.0.1"
START_SECONDS = 240.0
PLAINTEXT, TLS = "PLAINTEXT", "TLS"
KEY_PASSWORD, TOKEN_KEY = "opens-the-key", "signs-the-tokens"
CONTROL_TOKEN, CAROL = "for-operators-only", "carol-secret"
MISTYPED, ALTERED = "mistyped-secret", "altered-secret"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECRET_KEYS = sorted(key for key, key_row in BROKER_KEYS.items() if key_row.is_sensitive)


def encrypted_key() -> str:
    """Return the key of a broker, which KEY_PASSWORD opens."""
    key = load_pem_private_key(broker_certificate().private_key_pem.bytes(), None)
    encryption = BestAvailableEncryption(KEY_PASSWORD.encode())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


class Secured:
    """A broker in a process of its own, with the most talkative log."""

    def __init__(self, directory: Path) -> None:
        self.ports = {name: free_port() for name in (PLAINTEXT, TLS, *LISTENERS)}
        self.control = f"http://{HOST}:{free_port()}"
        key = encrypted_key()
        self.secrets = {
            *(ALICE[1], BOB[1], CAROL, MISTYPED, ALTERED, KEY_PASSWORD, TOKEN_KEY, CONTROL_TOKEN),
            key.splitlines()[1],
        }
        """Text that nobody may see."""
        self.log = directory / "log"
        protocols = {TLS: "SSL", PLAINTEXT: PLAINTEXT} | PROTOCOLS
        chain = b"".join(pem.bytes() for pem in broker_certificate().cert_chain_pems).decode()
        config = directory / "server.properties"
        write_properties(
            config,
            {
                **SETTINGS,
                JWKS_URL: write_jwks(directory),
                "listeners": ",".join(f"{n}://{HOST}:{p}" for n, p in self.ports.items()),
                "listener.security.protocol.map": ",".join(
                    f"{name}:{protocol}" for name, protocol in protocols.items()
                ),
                "log.dirs": str(directory / "data"),
                "minibroker.users": f'carol="{CAROL}"',
                "delegation.token.secret.key": TOKEN_KEY,
                "listener.name.tls.ssl.keystore.type": "PEM",
                "listener.name.tls.ssl.keystore.key": key.replace("\n", "\\n"),
                "listener.name.tls.ssl.keystore.certificate.chain": chain.replace("\n", "\\n"),
                "listener.name.tls.ssl.key.password": KEY_PASSWORD,
            },
        )
        address = self.control.removeprefix("http://")
        command = [sys.executable, "-m", "minibroker", "serve", "--config", str(config)]
        self.process = ManagedProcess(
            [*command, "--log-level", "debug", "--control", address],
            self.log,
            environment={"MINIBROKER_CONTROL_TOKEN": CONTROL_TOKEN},
        )
        self.process.wait_until(
            lambda: "listening on" in self.log.read_text(), START_SECONDS, "minibroker"
        )

    def ask(self, path: str, token: str) -> str:
        """Return what the control API answers."""
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(self.control + path, headers=headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return str(answer.read())
        except urllib.error.HTTPError as error:
            return str(error.read())


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    running = Secured(tmp_path_factory.mktemp("secured"))
    try:
        yield running
    finally:
        running.process.stop()


def log_in_badly(secured: Secured) -> list[Any]:
    """Play every dialogue, and a few with a password that is typed wrongly."""
    add_scram_users(HOST, secured.ports[PLAINTEXT])
    answers: list[Any] = [play(HOST, secured.ports, name) for name in DIALOGUES]
    for misplaced in (f"\0alice\0{MISTYPED}", MISTYPED, f"n,,n={MISTYPED},r={MISTYPED}"):
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            talk = Talk(HOST, secured.ports[SASL])
            talk.handshake(mechanism)
            answer = talk.quietly("sasl_authenticate", 1, auth_bytes=misplaced.encode())
            # The first message of the server repeats the nonce.
            answers.append(answer.get("error_message"))
            talk.close()
    for port in secured.ports.values():
        talk = Talk(HOST, port)
        talk.send(f"\0alice\0{MISTYPED}".encode())
        talk.close()
    return answers


def make_a_token(secured: Secured) -> None:
    """Make a delegation token, and try to renew it with a wrong one."""
    talk = Talk(HOST, secured.ports[SASL])
    talk.handshake()
    talk.plain()
    token = talk.quietly("create_delegation_token", 1, renewers=[], max_lifetime_ms=-1)
    assert token["error_code"] == 0, token
    secured.secrets |= {token["hmac"].hex(), repr(token["hmac"])[2:-1]}
    talk.ask("renew_delegation_token", 1, hmac=MISTYPED.encode(), renew_period_ms=-1)
    talk.close()


def alter_and_describe(secured: Secured) -> list[Any]:
    """Set secrets while the broker runs, rightly and wrongly, and ask for all settings."""
    values = {
        "listener.name.tls.ssl.key.password": ALTERED,
        "listener.name.tls.ssl.keystore.key": ALTERED,
        "listener.name.tls.ssl.keystore.password": ALTERED,
        "listener.name.sasl.plain.sasl.jaas.config": f'{JAAS} user_alice="{ALTERED}"',
        "listener.name.again.plain.sasl.jaas.config": f'{JAAS} user_alice="{ALTERED}";',
        "sasl.jaas.config": f'{JAAS} user_alice="{ALTERED}',
        "ssl.key.password": ALTERED,
        "delegation.token.secret.key": ALTERED,
        "minibroker.users": f'carol="{ALTERED}',
        "password.encoder.secret": ALTERED,
    }
    answers = []
    with WireClient(HOST, secured.ports[PLAINTEXT]) as client:
        for name, value in values.items():
            config = {"name": name, "config_operation": 0, "value": value}
            for broker in ("0", ""):
                resource = {"resource_type": 4, "resource_name": broker, "configs": [config]}
                answers.append(
                    client.call(
                        "incremental_alter_configs", 1, resources=[resource], validate_only=False
                    )
                )
        for broker in ("0", ""):
            resource = {"resource_type": 4, "resource_name": broker, "configuration_keys": None}
            answers.append(
                client.call(
                    "describe_configs",
                    4,
                    resources=[resource],
                    include_synonyms=True,
                    include_documentation=True,
                )
            )
    return answers


def test_no_secret_comes_out(secured: Secured, capsys: pytest.CaptureFixture[str]) -> None:
    outputs: list[Any] = log_in_badly(secured)
    make_a_token(secured)
    outputs += alter_and_describe(secured)
    for path in ("/requests", "/metrics", "/topics", "/groups", "/cluster", "/faults", "/clock"):
        outputs += [secured.ask(path, CONTROL_TOKEN), secured.ask(path, MISTYPED)]
    main(["serve", "--help"])
    log = secured.log.read_text()
    outputs += [capsys.readouterr(), psutil.Process(secured.process.popen.pid).cmdline(), log]
    leaks = [
        str(text)[max(str(text).find(secret) - 100, 0) :][:200]
        for text in outputs
        for secret in secured.secrets
        if secret in str(text)
    ]
    assert leaks == []
    for expected in (
        "Invalid username or password",
        "TLS handshake with",
        "created delegation token",
    ):
        assert expected in log  # so the log was asked


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_setting_with_a_secret_is_never_shown(key: str, caplog: pytest.LogCaptureFixture) -> None:
    prefixes = ("", "listener.name.tls.", "listener.name.sasl.plain.")
    for name in (prefix + key for prefix in prefixes):
        texts: list[object] = []
        try:
            config = BrokerConfig({name: ALTERED, "listeners": "TLS://:0"})
        except ConfigError as error:
            texts.append(error)
        else:
            texts.append(config)
        assert ALTERED not in f"{texts!r} {caplog.text}", name


STARTS: dict[str, dict[str, str]] = {
    "a key that is none": {"ssl.keystore.key": ALTERED},
    "a wrong password of the key": {
        "ssl.keystore.key": encrypted_key(),
        "ssl.key.password": ALTERED,
    },
    "a wrong password of a JKS": {
        "ssl.keystore.type": "JKS",
        "ssl.keystore.location": str(STORES / "keys.jks"),
        "ssl.keystore.password": ALTERED,
    },
    "a wrong password of a PKCS12": {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(STORES / "keys.p12"),
        "ssl.keystore.password": ALTERED,
    },
    "a wrong password of a trust store": {
        "ssl.truststore.type": "JKS",
        "ssl.truststore.location": str(STORES / "trusted.jks"),
        "ssl.truststore.password": ALTERED,
    },
    "a JAAS line without an end": {
        "listener.name.sasl.plain.sasl.jaas.config": f'{JAAS} user_alice="{ALTERED}"'
    },
    "a JAAS line with an open quote": {
        "listener.name.sasl.plain.sasl.jaas.config": f'{JAAS} user_alice="{ALTERED};'
    },
    "a JAAS line with a stray word": {
        "listener.name.sasl.plain.sasl.jaas.config": f"{JAAS} user_alice = {ALTERED} {ALTERED};"
    },
    "users with an open quote": {"minibroker.users": f'alice="{ALTERED}'},
    "users without a name": {"minibroker.users": ALTERED},
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_that_fails_shows_no_secret(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    chain = b"".join(pem.bytes() for pem in broker_certificate().cert_chain_pems).decode()
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:0,TLS://{HOST}:0,SASL://{HOST}:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,SASL:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f"{JAAS};",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": broker_certificate().private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": chain,
        **STARTS[name],
    }
    if "ssl.keystore.location" in settings:
        del settings["ssl.keystore.key"], settings["ssl.keystore.certificate.chain"]
    with pytest.raises(MinibrokerError) as failure:
        Broker(config=settings).start()
    assert ALTERED not in f"{failure.value} {caplog.text}"


def test_users_that_cannot_be_read_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    users = tmp_path / "users"
    users.write_text(f"alice:secret\n{ALTERED}\n")
    for value in (f"@{users}", ALTERED, f":{ALTERED}"):
        assert main(["serve", "--user", value]) == EXIT_USAGE
    output = capsys.readouterr()
    assert ALTERED not in f"{output}"
    assert output.err.count("expected NAME:PASSWORD") == 3
