"""The TLS of a listener: its own settings, and the principals of its clients."""

from __future__ import annotations

import logging
import os
import ssl
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.listeners import Listener, SecurityProtocol
from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.listener_tls import ListenerTls
from minibroker.broker.security.peer_tls import PeerContexts
from minibroker.kafka.errors import ConfigError
from tests.support.certificates import (
    SSL_LISTENER,
    authority_pem,
    broker_certificate,
    client_certificate,
    client_tls,
    pem_of,
    shake_hands,
    tls_settings,
)

if TYPE_CHECKING:
    from pathlib import Path


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


# Certificates that change while the listener runs.


def store_settings(tmp_path: Path, number: int = 0, **more: str) -> dict[str, str]:
    """Return settings with the key store in a file, which is written."""
    file = tmp_path / "keys.pem"
    file.write_text(pem_of(broker_certificate(number)))
    settings = {**tls_settings(**more), "ssl.keystore.location": str(file)}
    del settings["ssl.keystore.key"], settings["ssl.keystore.certificate.chain"]
    return settings


def served_by(listener: ListenerTls) -> int:
    """Return the number of the CA whose clients trust the listener."""
    try:
        shake_hands(listener.context, client_tls(0))
    except ssl.SSLCertVerificationError:
        shake_hands(listener.context, client_tls(1))
        return 1
    return 0


def test_a_file_that_is_replaced_in_place_is_read_again(tmp_path: Path) -> None:
    config = ConfigValues(store_settings(tmp_path))
    listener = ListenerTls(SSL, config)
    context = listener.context
    listener.update(config)
    assert listener.context is context
    store_settings(tmp_path, 1)
    os.utime(tmp_path / "keys.pem", ns=(1, 1))
    listener.update(config)
    assert served_by(listener) == 1


def test_another_store_is_taken_from_the_settings_of_the_listener(tmp_path: Path) -> None:
    settings = store_settings(tmp_path)
    listener = ListenerTls(SSL, ConfigValues(settings))
    other = tmp_path / "other.pem"
    other.write_text(pem_of(broker_certificate(1)))
    changed = ConfigValues({**settings, "listener.name.ssl.ssl.keystore.location": str(other)})
    listener.check(changed)
    assert served_by(listener) == 0
    listener.update(changed)
    assert served_by(listener) == 1


def test_a_store_that_cannot_be_used_is_refused_and_the_present_one_stays(tmp_path: Path) -> None:
    settings = store_settings(tmp_path)
    listener = ListenerTls(SSL, ConfigValues(settings))
    changed = ConfigValues({**settings, "ssl.keystore.location": "/nowhere"})
    for change in (listener.check, listener.update):
        with pytest.raises(ConfigError, match=r"listener SSL: .*cannot be read"):
            change(changed)
    assert served_by(listener) == 0


@pytest.mark.parametrize(
    ("allowing", "complaint"),
    [
        ("ssl.allow.dn.changes", "DistinguishedName does not match: existing=CN=broker,OU=Users"),
        ("ssl.allow.san.changes", "SubjectAltNames do not match"),
    ],
)
def test_a_certificate_of_another_name_needs_leave(
    tmp_path: Path, allowing: str, complaint: str
) -> None:
    settings = store_settings(tmp_path)
    listener = ListenerTls(SSL, ConfigValues(settings))
    (tmp_path / "keys.pem").write_text(pem_of(client_certificate()))
    os.utime(tmp_path / "keys.pem", ns=(1, 1))
    both = {"ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "true"}
    with pytest.raises(ConfigError, match=complaint):
        listener.update(ConfigValues({**settings, **both, allowing: "false"}))
    listener.update(ConfigValues({**settings, **both}))


def test_a_trust_store_is_not_added_to_a_listener_without_one(tmp_path: Path) -> None:
    settings = store_settings(tmp_path)
    without = {key: text for key, text in settings.items() if "truststore" not in key}
    listener = ListenerTls(SSL, ConfigValues(without))
    with pytest.raises(ConfigError, match="Cannot add SSL truststore"):
        listener.update(ConfigValues(settings))


# Connections between brokers use the certificates of their listener.


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
    old_settings = tls_settings(ssl_client_auth="required")
    listener = ListenerTls(SSL_LISTENER, ConfigValues(old_settings))
    contexts = PeerContexts(lambda: ConfigValues(old_settings))
    first = contexts.of("SSL")
    contexts.update(ConfigValues(old_settings))
    assert contexts.of("SSL") is first
    other = {
        "ssl.keystore.key": client_certificate("other").private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": pem_of(client_certificate("other")),
    }
    contexts.update(ConfigValues(old_settings | other))
    connection = shake_hands(listener.context, contexts.of("SSL"))
    assert listener.principal_of(connection) == "User:CN=other,OU=Users,O=Acme"
    present = contexts.of("SSL")
    contexts.update(ConfigValues(old_settings | {"ssl.keystore.key": authority_pem()}))
    assert contexts.of("SSL") is present
    assert "connections to other brokers keep their certificate: listener SSL" in caplog.text
