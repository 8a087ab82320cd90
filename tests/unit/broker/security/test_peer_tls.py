"""Connections between brokers use the certificates of their listener."""

from __future__ import annotations

import ssl

import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.listener_tls import ListenerTls
from minibroker.broker.security.peer_tls import PeerContexts
from minibroker.kafka.errors import ConfigError
from tests.support.certificates import (
    SSL_LISTENER,
    authority_pem,
    client_certificate,
    pem_of,
    shake_hands,
    tls_settings,
)


def context_of(config: ConfigValues, listener: str) -> ssl.SSLContext:
    """Return the context of connections to a listener."""
    return PeerContexts(lambda: config).of(listener)


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


def test_new_connections_have_the_new_stores(caplog: pytest.LogCaptureFixture) -> None:
    before = tls_settings(ssl_client_auth="required")
    listener = ListenerTls(SSL_LISTENER, ConfigValues(before))
    contexts = PeerContexts(lambda: ConfigValues(before))
    first = contexts.of("SSL")
    contexts.update(ConfigValues(before))
    assert contexts.of("SSL") is first
    other = {
        "ssl.keystore.key": client_certificate("other").private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": pem_of(client_certificate("other")),
    }
    contexts.update(ConfigValues(before | other))
    connection = shake_hands(listener.context, contexts.of("SSL"))
    assert listener.principal_of(connection) == "User:CN=other,OU=Users,O=Acme"
    present = contexts.of("SSL")
    contexts.update(ConfigValues(before | {"ssl.keystore.key": authority_pem()}))
    assert contexts.of("SSL") is present
    assert "connections to other brokers keep their certificate: listener SSL" in caplog.text
