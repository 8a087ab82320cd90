"""Every client against brokers whose certificates have a chain, and that want one, or a token.

Minibroker and Apache Kafka have the same settings. The listener CHAIN shows a certificate of an
intermediate CA and wants one of a client; both sides trust the root alone. The listener TOKENS
believes signed tokens, which a provider gives to clients with a secret.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka import Producer
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificates

from minibroker.pipeline.kafka.cluster import kafka_of
from minibroker.testing import Broker
from tests.golden.both_kafkas import listeners
from tests.golden.record_sasl import ALLOWED_URLS
from tests.pipeline.secured_clients import ask_read_and_write, write_properties
from tests.support.certificates import authority_pem, chained, java_store
from tests.support.new_topics import make_topic
from tests.support.peers import KafkaPeer
from tests.support.processes import free_port
from tests.support.signed_tokens import AUDIENCE, ISSUER, write_jwks
from tests.support.token_provider import CLIENT, TokenProvider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

PROTOCOLS: Final = {"PLAINTEXT": "PLAINTEXT", "CHAIN": "SSL", "TOKENS": "SASL_SSL"}
PASSWORD: Final = "p#1! =:'\\\"x"
"""Password of stores and keys, with the signs of properties files and JAAS lines."""
OAUTH: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"


def broker_settings(directory: Path, jwks_url: str) -> dict[str, str]:
    """Return the settings of a broker besides its addresses."""
    keys, trusted = directory / "broker.pem", directory / "ca.pem"
    keys.write_text(java_store(chained("broker", "localhost", "127.0.0.1")))
    trusted.write_text(authority_pem())
    protocols = {"CONTROLLER": "PLAINTEXT", **PROTOCOLS}
    tokens = "listener.name.tokens.oauthbearer"
    return {
        "listener.security.protocol.map": ",".join(":".join(pair) for pair in protocols.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "listener.name.chain.ssl.client.auth": "required",
        "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{tokens}.sasl.jaas.config": f"{OAUTH}LoginModule required;",
        f"{tokens}.sasl.server.callback.handler.class": f"{OAUTH}ValidatorCallbackHandler",
        f"{tokens}.sasl.oauthbearer.jwks.endpoint.url": jwks_url,
        f"{tokens}.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{tokens}.sasl.oauthbearer.expected.issuer": ISSUER,
    }


@pytest.fixture(scope="module")
def provider() -> Iterator[TokenProvider]:
    """Yield a provider that gives tokens to clients with the secret of `CLIENT`."""
    with TokenProvider() as provider:
        yield provider


@pytest.fixture(scope="module", params=["minibroker", "kafka"])
def addresses(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Yield listener → HOST:PORT of each broker in turn, with records in a topic."""
    directory = tmp_path_factory.mktemp("chained")
    jwks_url = write_jwks(directory).replace("file:///", "file:/")  # Kafka 4 compares the text
    ports = {name: free_port() for name in PROTOCOLS}
    settings = broker_settings(directory, jwks_url)
    address_of = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    if request.param == "minibroker":
        listener_list = ",".join(f"{name}://{address}" for name, address in address_of.items())
        with Broker(config={**settings, "listeners": listener_list}):
            fill(address_of["PLAINTEXT"])
            yield address_of
        return
    kafka = KafkaPeer("4.4.0", directory / "kafka", settings=settings, port=ports["PLAINTEXT"])
    kafka.settings |= listeners(kafka, ports)
    kafka.options = [ALLOWED_URLS + jwks_url]
    kafka.start()
    try:
        fill(address_of["PLAINTEXT"])
        yield address_of
    finally:
        kafka.stop()


def fill(address: str) -> None:
    """Make the topics, and 20 records in one of them."""
    make_topic(address, "orders", 2)
    make_topic(address, "totals")
    producer = Producer({"bootstrap.servers": address})
    for number in range(20):
        producer.produce("orders", b'{"amount":1}', partition=number % 2)
    assert producer.flush(60) == 0


def pem_texts() -> tuple[str, str]:
    """Return the key of a client as PEM, with a password, and its chain of certificates."""
    own = chained("alice", "alice@example.org")
    key = load_pem_private_key(own.private_key_pem.bytes(), None)
    lock = BestAvailableEncryption(PASSWORD.encode())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock).decode()
    return pem, "".join(part.bytes().decode() for part in own.cert_chain_pems)


def java_stores(directory: Path) -> dict[str, str]:
    """Return settings of two stores of type JKS, which keytool writes."""
    pem, chain = pem_texts()
    key = load_pem_private_key(pem.encode(), PASSWORD.encode())
    own, *others = load_pem_x509_certificates(chain.encode())
    lock = BestAvailableEncryption(PASSWORD.encode())
    imported, keys, trusted = (directory / name for name in ("keys.p12", "keys.jks", "trusted.jks"))
    imported.write_bytes(
        serialize_key_and_certificates(b"me", key, own, others, lock)  # type: ignore[arg-type]
    )
    root = directory / "root.pem"
    root.write_text(authority_pem())
    keytool(
        *("-importkeystore", "-srckeystore", str(imported), "-srcstorepass", PASSWORD),
        *("-srcstoretype", "PKCS12", "-destkeystore", str(keys), "-deststoretype", "JKS"),
        *("-deststorepass", PASSWORD),
    )
    keytool(
        *("-importcert", "-noprompt", "-alias", "root", "-file", str(root), "-storetype", "JKS"),
        *("-keystore", str(trusted), "-storepass", PASSWORD),
    )
    return {
        "ssl.keystore.type": "JKS",
        "ssl.keystore.location": str(keys),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "JKS",
        "ssl.truststore.location": str(trusted),
        "ssl.truststore.password": PASSWORD,
    }


def keytool(*arguments: str) -> None:
    done = subprocess.run(
        ["keytool", "-J-XX:TieredStopAtLevel=1", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def pem_files(directory: Path) -> dict[str, str]:
    pem, chain = pem_texts()
    keys, trusted = directory / "keys.pem", directory / "trusted.pem"
    keys.write_text(pem + chain)
    trusted.write_text(authority_pem())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys),
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
    }


def pem_inline(_: Path) -> dict[str, str]:
    pem, chain = pem_texts()
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": pem,
        "ssl.keystore.certificate.chain": chain,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority_pem(),
    }


def librdkafkas_files(directory: Path) -> dict[str, str]:
    pem, chain = pem_texts()
    files = {"ssl.key": pem, "ssl.certificate": chain, "ssl.ca": authority_pem()}
    for name, text in files.items():
        (directory / name).write_text(text)
    file_settings = {f"{name}.location": str(directory / name) for name in files}
    return {**file_settings, "ssl.key.password": PASSWORD}


@pytest.mark.parametrize("stores", [java_stores, pem_files, pem_inline, librdkafkas_files])
def test_every_client_shows_its_chain_and_checks_that_of_the_broker(
    addresses: Mapping[str, str], tmp_path: Path, stores: Any
) -> None:
    settings = {"security.protocol": "SSL", **stores(tmp_path)}
    file = write_properties(tmp_path / "client.properties", settings)
    kafka = kafka_of(addresses["CHAIN"], str(file), {})
    ask_read_and_write(kafka, stores.__name__)


def test_every_client_gets_its_token_from_an_endpoint(
    addresses: Mapping[str, str], tmp_path: Path, provider: TokenProvider
) -> None:
    """Java's names: the secret is in the JAAS line, and the authority in a store."""
    store = {name: text for name, text in pem_inline(tmp_path).items() if "truststore" in name}
    login = 'clientId="{}" clientSecret="{}"'.format(*CLIENT)
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{OAUTH}LoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": provider.url,
        "sasl.jaas.config": f"{OAUTH}LoginModule required {login};",
        **store,
    }
    file = write_properties(tmp_path / "client.properties", settings)
    kafka = kafka_of(addresses["TOKENS"], str(file), {})
    ask_read_and_write(kafka, "endpoint")
