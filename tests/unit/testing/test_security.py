"""Certificates for tests: one CA for the broker and its clients, kept with its directory."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.listener_tls import ListenerTls
from minibroker.kafka.errors import ConfigError
from minibroker.testing import Broker
from minibroker.testing.security import Security
from tests.support.certificates import SSL_LISTENER, shake_hands


def principal(security: Security, client: ssl.SSLContext) -> str:
    listener = ListenerTls(SSL_LISTENER, ConfigValues(security.broker_settings()))
    return listener.principal_of(shake_hands(listener.context, client))


def test_a_client_trusts_the_broker_and_its_certificate_names_the_user(tmp_path: Path) -> None:
    security = Security("SSL", tmp_path)
    for user, expected in ((None, "User:ANONYMOUS"), ("alice", "User:alice")):
        settings = security.client_settings("aiokafka", "localhost:1", user=user)
        assert principal(security, settings["ssl_context"]) == expected


def test_a_directory_keeps_its_authority(tmp_path: Path) -> None:
    settings = Security("SSL", tmp_path / "tls").client_settings("aiokafka", "localhost:1")
    again = Security("SSL", tmp_path / "tls")
    assert principal(again, settings["ssl_context"]) == "User:ANONYMOUS"
    assert (tmp_path / "tls" / "ca-key.pem").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("user", ["ca-key", "ca", "../ca-key", "..", "a/b"])
def test_the_name_of_a_user_is_not_the_name_of_another_file(tmp_path: Path, user: str) -> None:
    directory = tmp_path / "tls"
    security = Security("SSL", directory)
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    settings = security.client_settings("aiokafka", "localhost:1", user=user)
    assert principal(security, settings["ssl_context"]) == f"User:{user}"
    shown = security.client_settings("java", "localhost:1", user=user)
    own = Path(shown["ssl.keystore.location"])
    assert own.parent == directory / "users"
    assert own.read_bytes() not in before.values()
    assert {path.name for path in directory.iterdir()} == {*before, "users"}


def test_wrong_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="security=TLS: expected one of PLAINTEXT, SSL, SASL_PLAINTEXT"
    ):
        Security("TLS", tmp_path)
    with pytest.raises(ValueError, match="client 'kcat': expected one of confluent-kafka"):
        Security("PLAINTEXT", tmp_path).client_settings("kcat", "localhost:1")


def test_a_missing_package_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(ConfigError, match=r"pip install 'minibroker\[testing\]'"):
        Security("SSL", tmp_path)


def test_the_certificates_go_with_the_broker() -> None:
    with Broker(security="SSL") as broker:
        assert broker._security is not None
        directory = broker._security.directory
        assert directory.exists()
    assert not directory.exists()


def test_a_user_needs_a_secured_broker() -> None:
    with Broker() as broker:
        assert broker.client_config("java") == {"bootstrap.servers": broker.bootstrap}
        with pytest.raises(ValueError, match="needs a broker with security="):
            broker.client_config("java", user="alice")


def test_users_log_in_with_the_password_that_the_broker_knows(tmp_path: Path) -> None:
    security = Security("sasl_plaintext", tmp_path, {"alice": "secret", "bob": 'a"b'})
    text = security.broker_settings()["minibroker.users"]
    assert text == '"alice"="secret" "bob"="a\\"b"'
    settings = security.client_settings("aiokafka", "localhost:1")
    assert (settings["sasl_plain_username"], settings["sasl_mechanism"]) == (
        "alice",
        "SCRAM-SHA-256",
    )
    line = security.client_settings("java", "h:1", user="bob", mechanism="PLAIN")[
        "sasl.jaas.config"
    ]
    assert line.endswith('PlainLoginModule required username="bob" password="a\\"b";')
    for wrong in ({"user": "carol"}, {"mechanism": "GSSAPI"}):
        with pytest.raises(ValueError, match="expected one of"):
            security.client_settings("java", "h:1", **wrong)


def test_certificates_of_clients_count_only_where_nobody_logs_in(tmp_path: Path) -> None:
    assert Security("SSL", tmp_path).broker_settings()["ssl.client.auth"] == "requested"
    settings = Security("SASL_SSL", tmp_path, {"alice": "secret"}).broker_settings()
    assert "ssl.client.auth" not in settings


def test_users_and_the_protocol_have_to_fit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give the users"):
        Security("SASL_PLAINTEXT", tmp_path)
    with pytest.raises(ConfigError, match="leave out the users"):
        Security("PLAINTEXT", tmp_path, {"alice": "secret"})
