"""The TLS of a listener: its own settings, and the principals of its clients."""

from __future__ import annotations

import logging
import ssl

import pytest

from minibroker.config.listeners import Listener, SecurityProtocol
from minibroker.config.settings import ConfigValues
from minibroker.errors import ConfigError
from minibroker.security.listener_tls import ListenerTls
from tests.support.certificates import (
    client_certificate,
    client_tls,
    shake_hands,
    tls_settings,
)

SSL = Listener("SSL", "127.0.0.1", 0, SecurityProtocol.SSL)
SASL = Listener("EXTERNAL", "127.0.0.1", 0, SecurityProtocol.SASL_SSL)


def principal(settings: dict[str, str], client: ssl.SSLContext) -> str:
    listener = ListenerTls(SSL, ConfigValues(settings))
    return listener.principal_of(shake_hands(listener.context, client))


def test_a_client_without_a_certificate_is_anonymous() -> None:
    assert principal(tls_settings(), client_tls()) == "User:ANONYMOUS"
    requested = tls_settings(ssl_client_auth="requested")
    assert principal(requested, client_tls()) == "User:ANONYMOUS"


def test_a_certificate_names_the_principal() -> None:
    settings = tls_settings(ssl_client_auth="required")
    client = client_tls(certificate=client_certificate())
    assert principal(settings, client) == "User:CN=alice,OU=Users,O=Acme"
    settings["ssl.principal.mapping.rules"] = "RULE:^CN=(.*?),.*$/$1/U"
    assert principal(settings, client) == "User:ALICE"


def test_a_name_that_no_rule_matches_has_no_principal() -> None:
    settings = tls_settings(ssl_client_auth="required", ssl_principal_mapping_rules="RULE:x/y/")
    with pytest.raises(ValueError, match=r"matches the client's name CN=alice"):
        principal(settings, client_tls(certificate=client_certificate()))


def test_a_required_certificate_is_checked() -> None:
    settings = tls_settings(ssl_client_auth="required")
    for client in (client_tls(), client_tls(certificate=client_certificate(number=1))):
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError):
            principal(settings, client)


def test_settings_of_the_listener_stand_over_those_of_all() -> None:
    settings = tls_settings() | {"listener.name.ssl.ssl.client.auth": "required"}
    assert ListenerTls(SSL, ConfigValues(settings)).context.verify_mode == ssl.CERT_REQUIRED


def test_with_sasl_only_the_listeners_own_setting_asks_for_certificates(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = tls_settings(ssl_client_auth="required")
    listener = ListenerTls(SASL, ConfigValues(settings))
    assert listener.context.verify_mode == ssl.CERT_NONE
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert "listener.name.external.ssl.client.auth" in record.getMessage()
    settings["listener.name.external.ssl.client.auth"] = "required"
    assert ListenerTls(SASL, ConfigValues(settings)).context.verify_mode == ssl.CERT_REQUIRED


def test_an_error_names_the_listener() -> None:
    with pytest.raises(ConfigError, match=r"listener SSL: a listener with TLS needs a certificate"):
        ListenerTls(SSL, ConfigValues({}))
