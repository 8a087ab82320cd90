"""Certificates for tests: one CA for the broker and its clients, kept with its directory."""

from __future__ import annotations

import ssl
import sys
from typing import TYPE_CHECKING

import pytest

from minibroker.config.settings import ConfigValues
from minibroker.errors import ConfigError
from minibroker.security.listener_tls import ListenerTls
from minibroker.testing import Broker
from minibroker.testing.security import Security
from tests.support.certificates import SSL_LISTENER, shake_hands

if TYPE_CHECKING:
    from pathlib import Path


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


def test_wrong_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="security=TLS: expected one of PLAINTEXT, SSL"):
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
