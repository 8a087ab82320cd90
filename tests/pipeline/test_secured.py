"""Every verb and every client against brokers that want TLS, certificates, passwords or tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates

from minibroker.pipeline import PipelineError, archive, inspect, preflight, replay, rollup
from minibroker.pipeline.plan import kafka_of
from minibroker.testing import Broker
from tests.pipeline.secured_clients import ask_read_and_write, write_properties
from tests.support.certificates import authority_pem as ca_pem
from tests.support.certificates import client_certificate, tls_settings, write_stores

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

TOPICS = ["orders:2", "totals"]
PASSWORD = 'se"cret\\ ä€=,;#!'
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SUBJECT = 'unsecuredLoginStringClaim_sub="alice"'


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    """Yield a broker of SASL_SSL, with records in a topic."""
    with Broker(topics=TOPICS, security="SASL_SSL", users={"alice": PASSWORD}) as broker:
        fill(broker)
        yield broker


def fill(broker: Broker) -> None:
    for number in range(20):
        broker.produce("orders", [{"amount": number}], partition=number % 2)


def test_every_verb_logs_in_with_a_file_of_settings(
    spark: SparkSession, secured: Broker, tmp_path: Path
) -> None:
    """The file also has what consumers alone take, and producers alone."""
    more = {"linger.ms": "5", "isolation.level": "read_committed"}
    file = write_properties(tmp_path / "client.properties", secured.client_config("java") | more)
    common: dict[str, Any] = {"kafka_config": file, "spark": spark}
    here = tmp_path / "archive"

    assert archive("orders", to=here, **common).rows == 20
    assert replay(here, to_topic="copy", keep_partitions=True, **common).rows == 20
    rolled = rollup(
        "orders",
        window="1d",
        agg="sum(amount) AS total",
        schema="amount INT",
        to="totals",
        checkpoint=tmp_path / "checkpoint",
        **common,
    )
    assert rolled.rows == 20
    looked = inspect("orders", **common)

    assert sum(partition.records for partition in looked.topics[0].partitions) == 20
    assert len(secured.records("copy")) == 20


def test_the_connector_logs_in_with_settings_of_librdkafka(
    spark: SparkSession, secured: Broker, tmp_path: Path
) -> None:
    given = secured.client_config("confluent-kafka")
    file = write_properties(tmp_path / "client.properties", given)
    done = archive("orders", to=tmp_path / "a", source="connector", kafka_config=file, spark=spark)
    assert done.rows == 20


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("names", ["java", "confluent-kafka"])
def test_a_login_by_password(secured: Broker, mechanism: str, names: str) -> None:
    given = secured.client_config(names, mechanism=mechanism)
    ask_read_and_write(kafka_of(None, "minibroker", None, given), f"{names}-{mechanism}")


def test_a_login_by_token() -> None:
    with Broker(
        topics=TOPICS,
        config={
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
                f'{OAUTH} required unsecuredLoginStringClaim_sub="broker";'
            ),
        },
    ) as broker:
        fill(broker)
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH} required {SUBJECT};",
        }
        ask_read_and_write(
            kafka_of(broker.bootstrap, "minibroker", None, settings), "token", fetches=("auto",)
        )


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_a_client_shows_a_certificate_of_a_store(tmp_path: Path, kind: str) -> None:
    """The broker wants a certificate. Both stores have passwords, but for PEM."""
    settings = write_stores(tmp_path / "pem", client_certificate(), ca_pem())
    if kind == "PKCS12":
        settings = write_pkcs12(tmp_path)
    with Broker(topics=TOPICS, config=tls_settings(ssl_client_auth="required")) as broker:
        fill(broker)
        given = {"security.protocol": "SSL", **settings}
        ask_read_and_write(kafka_of(broker.bootstrap, "minibroker", None, given), kind)


def write_pkcs12(directory: Path) -> dict[str, str]:
    """Write a key store and a trust store as Java's keytool does; return their settings."""
    own = client_certificate()
    key = load_pem_private_key(own.private_key_pem.bytes(), None)
    chain = load_pem_x509_certificates(b"".join(part.bytes() for part in own.cert_chain_pems))
    lock = BestAvailableEncryption(b"store-secret")
    keys, trusted = directory / "keys.p12", directory / "trusted.p12"
    keys.write_bytes(
        serialize_key_and_certificates(b"me", key, chain[0], chain[1:], lock)  # type: ignore[arg-type]
    )
    authority = load_pem_x509_certificate(ca_pem().encode())
    trusted.write_bytes(serialize_java_truststore([PKCS12Certificate(authority, b"ca")], lock))
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(keys),
        "ssl.keystore.password": "store-secret",
        "ssl.truststore.type": "JKS",  # Java reads either format under either name
        "ssl.truststore.location": str(trusted),
        "ssl.truststore.password": "store-secret",
    }


def test_a_wrong_password_and_an_unknown_authority_are_one_sentence(
    secured: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "ANSWER_TIMEOUT_S", 1)
    given = secured.client_config("confluent-kafka")
    with pytest.raises(PipelineError, match=r"Authentication failed.*--kafka-config"):
        preflight.ask(kafka_of(None, "minibroker", None, {**given, "sasl.password": "guess"}))
    del given["ssl.ca.location"]
    with pytest.raises(PipelineError, match=r"do not agree .*certificate verify failed"):
        preflight.ask(kafka_of(None, "minibroker", None, given))
