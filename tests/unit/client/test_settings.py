"""Settings with Java's names that the client takes, and those that it refuses."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from minibroker.client.settings import client_settings, with_stores_as_text
from minibroker.kafka.errors import ConfigError
from tests.support.certificates import STORES, authority_pem, client_certificate, pem_of

SERVER = {"bootstrap.servers": "a:1"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
NO_KERBEROS = "no Kerberos: the Python package gssapi is not installed (make kerberos)"
ALICE = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": f'{SCRAM} required username="alice" password="secret-of-alice";',
}


def test_addresses_are_written_as_kafka_has_them() -> None:
    settings = client_settings({"bootstrap.servers": "a:1, SSL://b, [::1]:3,[::1]"})
    assert settings.servers == (("a", 1), ("b", 9092), ("::1", 3), ("::1", 9092))
    assert not settings.uses_tls
    assert not settings.uses_sasl


def test_limits_are_taken_from_the_settings() -> None:
    more = {"fetch.max.wait.ms": "7", "max.partition.fetch.bytes": "1000", "client.id": "me"}
    more |= {"request.timeout.ms": "1500", "client.rack": "here", "reconnect.backoff.ms": "77"}
    settings = client_settings({**SERVER, **more})
    assert (settings.fetch_wait_ms, settings.fetch_bytes, settings.rack) == (7, 1000, "here")
    assert (settings.client_id, settings.timeout_s) == ("me", 1.5)


def test_equal_settings_share_connections_and_hide_their_passwords() -> None:
    settings = client_settings({**SERVER, **ALICE})
    assert settings == client_settings({**SERVER, **ALICE})
    assert hash(settings) != hash(client_settings({**SERVER, **ALICE, "client.id": "x"}))
    assert settings.uses_tls
    assert settings.uses_sasl
    assert "secret-of-alice" not in repr(settings)


def first_message(mechanism: str, line: str) -> bytes:
    login = {"sasl.mechanism": mechanism, "sasl.jaas.config": line}
    settings = client_settings({**SERVER, "security.protocol": "SASL_PLAINTEXT", **login})
    name, exchange = settings.login("a")
    assert name == mechanism.upper()
    return exchange.begin()


def test_a_jaas_line_is_a_login() -> None:
    user = 'username="al\\"ice" password=\'s "x\''
    assert first_message("plain", f"{PLAIN} required {user};") == b'\0al"ice\0s "x'
    scram = first_message("SCRAM-SHA-512", f"{SCRAM} required {user};")
    assert scram.startswith(b'n,,n=al"ice,r=')
    assert b"tokenauth" not in scram
    token = first_message("SCRAM-SHA-512", f'{SCRAM} required {user} tokenauth="true";')
    assert token.endswith(b",tokenauth=true")


@pytest.mark.parametrize(
    ("options", "login"),
    [
        (
            'useKeyTab=true keyTab="/a.keytab" principal="a@R" serviceName="kafka"',
            ("a@R", "/a.keytab", "kafka", ""),
        ),
        ('useTicketCache=true principal="a@R"', ("a@R", "", "broker", "")),
        ('useTicketCache="true" ticketCache="FILE:/var/x"', ("", "", "broker", "/var/x")),
    ],
)
def test_a_ticket_comes_from_a_keytab_or_a_cache(
    options: str, login: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    kerberos = pytest.importorskip("minibroker.client.kerberos", reason=NO_KERBEROS)
    monkeypatch.setattr(kerberos.KerberosLogin, "begin", lambda login, host: (login, host))
    service = {} if "serviceName" in options else {"sasl.kerberos.service.name": "broker"}
    changes = {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": f"{KERBEROS} required {options};",
    }
    settings = client_settings({**SERVER, **service, **changes})
    exchange: Any = settings.login("a")
    assert exchange == ("GSSAPI", (login, "a"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"no.such.setting": "x"}, "no.such.setting is no setting that this client knows"),
        ({"fetch.min.byte": "1"}, "this client knows; fetch.min.bytes is one"),
        ({"ssl.engine.factory.class": "x"}, "ssl.engine.factory.class is no setting"),
        ({"security.protocol": "tls"}, "security.protocol=tls: expected plaintext, ssl"),
        ({"security.protocol": "sasl_plaintext"}, "a login by GSSAPI needs sasl.jaas.config"),
        ({**ALICE, "sasl.mechanism": "NTLM"}, "sasl.mechanism=NTLM: expected one of PLAIN"),
        ({**ALICE, "sasl.mechanism": "PLAIN"}, "ScramLoginModule, expected .*PlainLoginModule"),
        (
            {**ALICE, "sasl.jaas.config": f'{SCRAM} required username="a";'},
            "ScramLoginModule has no password",
        ),
        ({**ALICE, "sasl.jaas.config": "nothing"}, "control flag of a login module is missing"),
        ({"fetch.min.bytes": "few"}, "fetch.min.bytes is 'few', which is no number"),
        ({"bootstrap.servers": "a:b"}, "address 'a:b' has no port"),
        ({"bootstrap.servers": ""}, "bootstrap.servers is empty"),
    ],
)
def test_settings_that_it_does_not_serve_are_named(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        client_settings({**SERVER, **changes})


def test_a_login_by_kerberos_says_where_its_ticket_is() -> None:
    pytest.importorskip("minibroker.client.kerberos", reason=NO_KERBEROS)
    changes = {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": f"{KERBEROS} required;"}
    with pytest.raises(ConfigError, match="says nothing about a ticket"):
        client_settings({**SERVER, **ALICE, "sasl.kerberos.service.name": "kafka", **changes})


def test_the_context_has_the_stores_and_the_limits_of_tls() -> None:
    words = {
        **SERVER,
        "security.protocol": "SSL",
        "ssl.truststore.location": str(STORES / "trusted.jks"),
        "ssl.truststore.password": "store-secret",
        "ssl.enabled.protocols": "TLSv1.3",
    }
    context = client_settings(words).context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert context.check_hostname
    assert context.cert_store_stats()["x509"] == 1
    trusting = client_settings({**words, "enable.ssl.certificate.verification": "false"})
    assert trusting.context().verify_mode == ssl.CERT_NONE
    unnamed = client_settings({**words, "ssl.endpoint.identification.algorithm": ""}).context()
    assert not unnamed.check_hostname
    assert unnamed.verify_mode == ssl.CERT_REQUIRED


def test_stores_travel_as_text() -> None:
    files = {
        **SERVER,
        "ssl.truststore.location": str(STORES / "trusted.jks"),
        "ssl.truststore.password": "store-secret",
        "ssl.keystore.location": str(STORES / "keys.p12"),
        "ssl.keystore.password": "store-secret",
        "ssl.key.password": "store-secret",
    }
    texts = with_stores_as_text(files)
    assert texts.keys() == {
        *("bootstrap.servers", "ssl.truststore.type", "ssl.truststore.certificates"),
        *("ssl.keystore.type", "ssl.keystore.key", "ssl.keystore.certificate.chain"),
    }
    assert texts["ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----")
    again = with_stores_as_text(texts)
    assert with_stores_as_text(again) == again
    inline = {"ssl.truststore.certificates": authority_pem()}
    assert with_stores_as_text(inline)["ssl.truststore.certificates"] == authority_pem().strip()
    own = pem_of(client_certificate())
    assert with_stores_as_text({"ssl.keystore.key": own, "ssl.keystore.certificate.chain": own})
