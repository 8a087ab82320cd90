"""Settings with names of Java and of librdkafka, as the client gets them."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import client_settings
from minibroker.pipeline.kafka.cluster import Kafka
from tests.support.certificates import STORES, authority_pem, client_certificate, pem_of

if TYPE_CHECKING:
    from pathlib import Path

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def in_java(**settings: str) -> dict[str, str]:
    """Return a consumer's settings; `__` stands for a dot."""
    return client_settings.for_reader(
        {name.replace("__", "."): value for name, value in settings.items()}
    )


def test_names_of_librdkafka_become_those_of_java_and_others_stay() -> None:
    assert in_java(
        fetch__wait__max__ms="5",
        socket__timeout__ms="1",
        metadata__broker__list="a:1",
        nonsense="x",
        statistics__interval__ms="9",
    ) == {
        "fetch.max.wait.ms": "5",
        "request.timeout.ms": "1",
        "bootstrap.servers": "a:1",
        "nonsense": "x",
    }
    assert in_java(ssl__endpoint__identification__algorithm="none") == {
        "ssl.endpoint.identification.algorithm": ""
    }
    both = in_java(socket__timeout__ms="1", request__timeout__ms="2")
    assert both == {"request.timeout.ms": "2"}


def test_each_client_gets_its_own() -> None:
    """One file of settings serves producers and consumers, as in Java."""
    settings = {
        "acks": "all",
        "buffer.memory": "4194304",
        "client.id": "me",
        "isolation.level": "read_committed",
        "message.max.bytes": "5",
    }
    assert client_settings.for_reader(settings) == {
        "client.id": "me",
        "isolation.level": "read_committed",
    }
    assert client_settings.for_writer(settings) == {
        "acks": "all",
        "buffer.memory": "4194304",
        "client.id": "me",
        "max.request.size": "5",
    }


def test_the_client_gets_values_or_says_what_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = client_settings.for_reader({"bootstrap.servers": "a:1", "client.rack": "here"})
    assert client_settings.connection_settings(settings).rack == "here"
    with pytest.raises(PipelineError, match=r"no\.such is no setting "):
        client_settings.connection_settings({**settings, "no.such": "x"})
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "crc32c" else find_spec(name)
    )
    with pytest.raises(PipelineError, match="the package crc32c is not installed where the task"):
        client_settings.connection_settings(settings)


@pytest.mark.parametrize("name", ["trusted.jks", "trusted.p12"])
def test_a_trust_store_of_java_is_read(name: str) -> None:
    settings = in_java(
        ssl__truststore__location=str(STORES / name), ssl__truststore__password="store-secret"
    )
    assert list(settings) == ["ssl.truststore.type", "ssl.truststore.certificates"]
    assert settings["ssl.truststore.certificates"].startswith("-----BEGIN CERTIFICATE-----")


@pytest.mark.parametrize(
    ("name", "key_password"), [("keys.jks", "key-secret"), ("keys.p12", "store-secret")]
)
def test_a_key_store_of_java_is_read(name: str, key_password: str) -> None:
    settings = in_java(
        ssl__keystore__location=str(STORES / name),
        ssl__keystore__password="store-secret",
        ssl__key__password=key_password,
    )
    assert set(settings) == {
        *("ssl.keystore.type", "ssl.keystore.key", "ssl.keystore.certificate.chain")
    }
    assert settings["ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----")


def test_pem_is_taken_with_and_without_its_type(tmp_path: Path) -> None:
    ca, own = tmp_path / "ca.pem", tmp_path / "own.pem"
    ca.write_text(authority_pem())
    own.write_text(pem_of(client_certificate()))
    for more in ({}, {"ssl__truststore__type": "PEM", "ssl__keystore__type": "pem"}):
        settings = in_java(
            ssl__truststore__location=str(ca), ssl__keystore__location=str(own), **more
        )
        assert settings["ssl.truststore.certificates"].strip() == authority_pem().strip()
        assert settings["ssl.keystore.key"].strip() in pem_of(client_certificate())
    inline = in_java(ssl__truststore__certificates=authority_pem())
    assert inline["ssl.truststore.certificates"] == authority_pem().strip()


def test_certificates_of_librdkafka_are_stores(tmp_path: Path) -> None:
    ca, own = tmp_path / "ca.pem", tmp_path / "own.pem"
    ca.write_text(authority_pem())
    own.write_text(pem_of(client_certificate()))
    of_java = in_java(ssl__truststore__location=str(ca), ssl__keystore__location=str(own))
    files = in_java(
        ssl__ca__location=str(ca), ssl__key__location=str(own), ssl__certificate__location=str(own)
    )
    texts = in_java(
        ssl__ca__pem=ca.read_text(),
        ssl__key__pem=own.read_text(),
        ssl__certificate__pem=own.read_text(),
    )
    assert files == texts == of_java
    assert in_java(ssl__ca__location="probe") == {}
    with pytest.raises(PipelineError, match=r"ssl\.key\.location=/none cannot be read"):
        in_java(ssl__key__location="/none")


def test_a_wrong_store_is_one_sentence_without_its_password() -> None:
    with pytest.raises(PipelineError, match="store's password is wrong") as refused:
        in_java(
            ssl__truststore__location=str(STORES / "trusted.jks"), ssl__truststore__password="guess"
        )
    assert "guess" not in str(refused.value)
    with pytest.raises(PipelineError, match=r"/nowhere\.jks.* cannot be read: No such file"):
        in_java(ssl__truststore__location="/nowhere.jks")


def test_logins_of_librdkafka_are_jaas_lines() -> None:
    user = {"sasl__username": 'al"ice', "sasl__password": "p"}
    assert in_java(sasl__mechanisms="SCRAM-SHA-256", **user) == {
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{SCRAM} required username="al\\"ice" password="p";',
    }
    protocol = {"security.protocol": "sasl_plaintext"}
    service = {"sasl.kerberos.service.name": "kafka"}
    cached = client_settings.for_reader(protocol)
    line = f'{KERBEROS} required useTicketCache="true";'
    assert cached == {**protocol, **service, "sasl.jaas.config": line}
    keys = {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "a@R"}
    line = f'{KERBEROS} required useKeyTab="true" keyTab="/k" principal="a@R";'
    assert client_settings.for_reader({**protocol, **keys}) == {
        **protocol,
        **service,
        "sasl.jaas.config": line,
    }
    settings = {**protocol, "sasl.jaas.config": line, "sasl.username": "x", "sasl.password": "y"}
    assert client_settings.for_reader(settings) == {**protocol, "sasl.jaas.config": line}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (f"{OAUTH} required;", "does not say where a token comes from"),
        ("nothing", "the control flag of a login module is missing"),
    ],
)
def test_a_login_that_cannot_be_is_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        in_java(sasl__jaas__config=line)


def test_a_class_of_java_is_refused_by_its_name() -> None:
    with pytest.raises(PipelineError, match=r"names my\.Handler, a class of Java"):
        in_java(sasl__login__callback__handler__class="my.Handler")


def test_committed_records_are_read_by_default() -> None:
    assert Kafka().options() == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "kafka.isolation.level": "read_committed",
    }
    cluster = Kafka("h:1", settings={"isolation.level": "read_uncommitted", "a": "b"})
    assert cluster.options()["kafka.isolation.level"] == "read_uncommitted"
    assert cluster.writer_options() == {"kafka.bootstrap.servers": "h:1", "kafka.a": "b"}
