"""Connections between brokers use the certificates of their listener."""

from __future__ import annotations

import ssl

import pytest

from minibroker.config.settings import ConfigValues
from minibroker.errors import ConfigError
from minibroker.security.listener_tls import ListenerTls
from minibroker.security.peer_tls import context_of
from tests.support.certificates import SSL_LISTENER, shake_hands, tls_settings


def test_a_broker_shows_its_own_certificate() -> None:
    config = ConfigValues(tls_settings(ssl_client_auth="required"))
    listener = ListenerTls(SSL_LISTENER, config)
    connection = shake_hands(listener.context, context_of(config, "SSL"))
    assert listener.principal_of(connection) == "User:CN=broker,OU=Users,O=Acme"


def test_a_broker_of_another_authority_is_refused() -> None:
    listener = ListenerTls(SSL_LISTENER, ConfigValues(tls_settings(1)))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(listener.context, context_of(ConfigValues(tls_settings()), "SSL"))


def test_the_settings_are_those_of_the_listener() -> None:
    key = "listener.name.ssl.ssl.endpoint.identification.algorithm"
    assert not context_of(ConfigValues(tls_settings() | {key: ""}), "SSL").check_hostname
    with pytest.raises(ConfigError, match=r"listener SSL: .*expected https"):
        context_of(ConfigValues(tls_settings() | {key: "x"}), "SSL")
