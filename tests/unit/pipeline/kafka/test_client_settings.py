"""Kafka's settings, as Java's clients and librdkafka's take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import client_settings
from tests.support.certificates import (
    STORES,
    authority_pem,
    client_certificate,
    pem_of,
)

if TYPE_CHECKING:
    from pathlib import Path

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def translated(**settings: str) -> dict[str, str]:
    """Return a consumer's settings without the level of its log; `__` stands for a dot."""
    given = {name.replace("__", "."): value for name, value in settings.items()}
    found = client_settings.for_reader(given)
    assert found.pop("log_level") == "0"
    return found


def test_a_file_is_read_as_kafkas_tools_read_it(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# a comment\nsecurity.protocol = SSL\nkafka.client.id: me\n")
    assert client_settings.read_file(str(file)) == {"security.protocol": "SSL", "client.id": "me"}
    with pytest.raises(PipelineError, match=r"--kafka-config: cannot read .*none\.properties"):
        client_settings.read_file(str(tmp_path / "none.properties"))


def test_names_of_java_are_translated_and_others_stay() -> None:
    assert translated(fetch__max__wait__ms="5", send__buffer__bytes="1", nonsense="x") == {
        "fetch.wait.max.ms": "5",
        "socket.send.buffer.bytes": "1",
        "nonsense": "x",
    }
    assert translated(ssl__endpoint__identification__algorithm="") == {
        "ssl.endpoint.identification.algorithm": "none"
    }


def test_each_client_gets_its_own() -> None:
    """One file of settings serves producers and consumers, as in Java."""
    given = {
        "acks": "all",
        "buffer.memory": "4194304",
        "client.id": "me",
        "isolation.level": "read_committed",
        "max.poll.records": "5",
    }
    assert translated(**{name.replace(".", "__"): given[name] for name in given}) == {
        "client.id": "me",
        "isolation.level": "read_committed",
    }
    assert client_settings.for_writer(given) == {
        "acks": "all",
        "client.id": "me",
        "queue.buffering.max.kbytes": "4096",
    }
    assert client_settings.for_admin(given) == {"client.id": "me", "log_level": "0"}
    with pytest.raises(PipelineError, match=r"buffer\.memory=much: expected a number"):
        client_settings.for_writer({"buffer.memory": "much"})


@pytest.mark.parametrize("name", ["trusted.jks", "trusted.p12"])
def test_a_trust_store_of_java_is_read(name: str) -> None:
    found = translated(
        ssl__truststore__location=str(STORES / name), ssl__truststore__password="store-secret"
    )
    assert list(found) == ["ssl.ca.pem"]
    assert found["ssl.ca.pem"].startswith("-----BEGIN CERTIFICATE-----")


@pytest.mark.parametrize(
    ("name", "key_password"), [("keys.jks", "key-secret"), ("keys.p12", "store-secret")]
)
def test_a_key_store_of_java_is_read(name: str, key_password: str) -> None:
    found = translated(
        ssl__keystore__location=str(STORES / name),
        ssl__keystore__password="store-secret",
        ssl__key__password=key_password,
    )
    assert set(found) == {"ssl.key.pem", "ssl.certificate.pem"}
    assert found["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----")


def test_pem_is_taken_with_and_without_its_type(tmp_path: Path) -> None:
    ca, own = tmp_path / "ca.pem", tmp_path / "own.pem"
    ca.write_text(authority_pem())
    own.write_text(pem_of(client_certificate()))
    for more in ({}, {"ssl__truststore__type": "PEM", "ssl__keystore__type": "pem"}):
        found = translated(
            ssl__truststore__location=str(ca), ssl__keystore__location=str(own), **more
        )
        assert found["ssl.ca.pem"].strip() == authority_pem().strip()
        assert found["ssl.key.pem"].strip() in pem_of(client_certificate())
    inline = translated(ssl__truststore__certificates=authority_pem())
    assert inline == {"ssl.ca.pem": authority_pem().strip()}


def test_a_wrong_store_is_one_sentence_without_its_password() -> None:
    with pytest.raises(PipelineError, match="store's password is wrong") as told:
        translated(
            ssl__truststore__location=str(STORES / "trusted.jks"), ssl__truststore__password="guess"
        )
    assert "guess" not in str(told.value)
    with pytest.raises(PipelineError, match=r"/nowhere\.jks.* cannot be read: No such file"):
        translated(ssl__truststore__location="/nowhere.jks")


def test_settings_of_librdkafka_stay_as_they_are() -> None:
    given = {"ssl__ca__location": "/ca.pem", "ssl__key__location": "/k", "sasl__username": "alice"}
    assert translated(**given) == {name.replace("__", "."): given[name] for name in given}


def test_a_jaas_line_is_a_login() -> None:
    line = f'{SCRAM} required username="al\\"ice" password=\'s "x\';'
    assert translated(sasl__jaas__config=line, sasl__mechanism="SCRAM-SHA-256") == {
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": 'al"ice',
        "sasl.password": 's "x',
    }


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (f'{SCRAM} required username="alice";', "has no password"),
        (f'{SCRAM} required username="a" password="b" tokenauth="true";', "delegation token"),
        ("com.sun.security.auth.module.Krb5LoginModule required;", "Krb5LoginModule, expected"),
        (f"{OAUTH} required;", "does not say where a token comes from"),
        ("nothing", "the control flag of a login module is missing"),
    ],
)
def test_a_login_that_cannot_be_is_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        translated(sasl__jaas__config=line)


def test_a_class_of_java_is_refused_by_its_name() -> None:
    with pytest.raises(PipelineError, match=r"names my\.Handler, a class of Java"):
        translated(sasl__login__callback__handler__class="my.Handler")


def test_the_connector_gets_names_of_java(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("the key")
    given = {
        "enable.ssl.certificate.verification": "true",
        "fetch.wait.max.ms": "5",
        "log_level": "0",
        "sasl.mechanisms": "PLAIN",
        "sasl.password": 's"x',
        "sasl.username": "alice",
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.pem": "the certificate",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.key.location": str(key),
    }
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    assert client_settings.for_connector(given) == {
        "fetch.max.wait.ms": "5",
        "sasl.jaas.config": f'{plain} required username="alice" password="s\\"x";',
        "sasl.mechanism": "PLAIN",
        "security.protocol": "SASL_SSL",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.keystore.certificate.chain": "the certificate",
        "ssl.keystore.key": "the key",
        "ssl.keystore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.truststore.type": "PEM",
    }
    java = {"ssl.truststore.location": "/a.jks", "sasl.jaas.config": "x"}
    assert client_settings.for_connector(java) == java
    with pytest.raises(PipelineError, match="is librdkafka's alone"):
        client_settings.for_connector({"enable.ssl.certificate.verification": "false"})
    with pytest.raises(PipelineError, match=r"ssl\.key\.location=/none cannot be read"):
        client_settings.for_connector({"ssl.key.location": "/none"})
