"""Every verb against brokers that want TLS, certificates, passwords or tokens."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pyarrow as pa
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

from minibroker.client import connection as wire_connection
from minibroker.client.client import Client, close_idle
from minibroker.client.connection import BlockingConnection
from minibroker.client.produce import ProduceQueue
from minibroker.kafka.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from minibroker.pipeline import PipelineError, archive, inspect, replay, rollup
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.client_settings import connection_settings, for_reader
from minibroker.pipeline.kafka.cluster import kafka_of
from minibroker.pipeline.kafka.options import parse
from minibroker.pipeline.kafka.sink import transaction
from minibroker.pipeline.kafka.sink.marker import Position
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.sink.writers import write_rows
from minibroker.pipeline.kafka.source import range_reader as record_reader
from minibroker.pipeline.kafka.source.reader import read_range
from minibroker.pipeline.offsets import OffsetRange
from minibroker.testing import Broker
from tests.pipeline.secured_clients import ask_read_and_write, write_properties
from tests.support.certificates import authority_pem as ca_pem
from tests.support.certificates import client_certificate, tls_settings, write_stores
from tests.support.sasl_dialogues import VALIDATOR
from tests.support.signed_tokens import AUDIENCE, ISSUER, rsa_key, token, write_jwks, write_key
from tests.support.token_provider import CLIENT, TokenProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from minibroker.pipeline.kafka.options import SourceOptions

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

TOPICS = ["orders:2", "totals"]
PASSWORD = 'se"cret\\ ä€=,;#!'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SUBJECT = 'unsecuredLoginStringClaim_sub="alice"'
OF_TOKENS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
}
BY_TOKEN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
PROVIDER = "sasl.oauthbearer.token.endpoint.url"
REAUTH_MS = 60_000


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
    directory = tmp_path / "archive"

    assert archive("orders", to=directory, **common).rows == 20
    assert replay(directory, to_topic="copy", keep_partitions=True, **common).rows == 20
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


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("names", ["java", "confluent-kafka"])
def test_a_login_by_password(secured: Broker, mechanism: str, names: str) -> None:
    login = secured.client_config(names, mechanism=mechanism)
    ask_read_and_write(kafka_of(None, None, login), f"{names}-{mechanism}")


def test_a_login_by_a_delegation_token() -> None:
    with Broker(
        topics=TOPICS,
        security="SASL_PLAINTEXT",
        users={"alice": PASSWORD},
        config={"delegation.token.secret.key": "of all brokers"},
    ) as broker:
        fill(broker)
        settings = broker.client_config("java", mechanism="SCRAM-SHA-256")
        request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
        delegated = Client(connection_settings(for_reader(settings))).ask_any(
            request, CreateDelegationTokenResponse, (1, 3)
        )
        hmac = b64encode(delegated.hmac).decode("ascii")
        login = f'username="{delegated.token_id}" password="{hmac}" tokenauth="true"'
        settings["sasl.jaas.config"] = f"{SCRAM} required {login};"
        ask_read_and_write(kafka_of(None, None, settings), "delegated")


def test_a_login_by_token() -> None:
    with Broker(
        topics=TOPICS,
        config={
            **OF_TOKENS,
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
                f'{OAUTH} required unsecuredLoginStringClaim_sub="broker";'
            ),
        },
    ) as broker:
        fill(broker)
        settings = {**BY_TOKEN, "sasl.jaas.config": f"{OAUTH} required {SUBJECT};"}
        ask_read_and_write(kafka_of(broker.bootstrap, None, settings), "token")


@pytest.fixture(scope="module")
def believing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yield a broker that believes the signed tokens of one provider, with records in a topic."""
    signed = {
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        "sasl.oauthbearer.jwks.endpoint.url": write_jwks(tmp_path_factory.mktemp("jwks")),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "connections.max.reauth.ms": str(REAUTH_MS),
    }
    with Broker(topics=TOPICS, config={**OF_TOKENS, **signed}) as broker:
        fill(broker)
        yield broker


@pytest.mark.parametrize("names", ["java", "librdkafka"])
def test_a_login_by_a_token_of_a_provider(believing: Broker, names: str) -> None:
    with TokenProvider() as provider:
        settings = {**BY_TOKEN, PROVIDER: provider.url}
        if names == "java":
            secret = f'clientId="{CLIENT[0]}" clientSecret="{CLIENT[1]}"'
            settings["sasl.jaas.config"] = f"{OAUTH} required {secret};"
        else:
            settings["sasl.oauthbearer.method"] = "oidc"
            settings["sasl.oauthbearer.client.id"] = CLIENT[0]
            settings["sasl.oauthbearer.client.secret"] = CLIENT[1]
        ask_read_and_write(kafka_of(believing.bootstrap, None, settings), names)
        assert len(provider.requests) == 1


def test_the_own_client_signs_an_assertion(believing: Broker, tmp_path: Path) -> None:
    """The token for it is fetched once for all connections of the process."""
    with TokenProvider() as provider:
        provider.public_key = rsa_key("job").public_key()
        assertion = {
            "claim.aud": provider.url,
            "claim.iss": CLIENT[0],
            "claim.sub": CLIENT[0],
            "private.key.file": write_key(tmp_path / "key.pem", rsa_key("job")),
        }
        assertion_settings = {
            f"sasl.oauthbearer.assertion.{name}": assertion[name] for name in assertion
        }
        options = source_options(
            believing, {**BY_TOKEN, PROVIDER: provider.url, **assertion_settings}
        )
        for _ in range(2):
            batches = read_range(options, OffsetRange("orders", 0, 0, 10))
            assert sum(batch.num_rows for batch in batches) == 10
            close_idle()
        assert len(provider.requests) == 1


def test_a_token_that_is_not_believed_is_one_sentence(believing: Broker, tmp_path: Path) -> None:
    """The broker ends the login with its reason, and nobody tries again."""
    settings = by_file(tmp_path)
    (tmp_path / "token").write_text(token({"aud": "another"}))
    options = source_options(believing, settings)
    with pytest.raises(PipelineError, match=r'cannot be read: .*\{"status":"invalid_token"\}'):
        list(read_range(options, OffsetRange("orders", 0, 0, 10)))


class Sessions:
    """The sessions of the own client at a broker, which a test ends by moving both clocks."""

    def __init__(self, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        self._broker = broker
        self._monkeypatch = monkeypatch
        self.logins = 0
        log_in = BlockingConnection._log_in

        def counted(connection: BlockingConnection) -> None:
            log_in(connection)
            self.logins += 1

        monkeypatch.setattr(BlockingConnection, "_log_in", counted)

    def end(self) -> None:
        self._broker.clock.advance(milliseconds=REAUTH_MS)
        self._monkeypatch.setattr(wire_connection, "time", MovedTime(REAUTH_MS / 1000))
        self.logins = 0


@pytest.fixture
def sessions(believing: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sessions]:
    """Yield the sessions at `believing`; it would not answer on a connection that is too old."""
    close_idle()
    monkeypatch.setattr(record_reader._SpanReader, "_drop", pytest.fail)
    monkeypatch.setattr(ProduceQueue, "_lose", pytest.fail)
    yield Sessions(believing, monkeypatch)
    close_idle()


def by_file(directory: Path) -> dict[str, str]:
    """Return the settings of a login with a token that stands in a file."""
    (directory / "token").write_text(token())
    return {**BY_TOKEN, PROVIDER: (directory / "token").as_uri()}


def test_a_reader_logs_in_again_in_the_middle_of_a_range(
    believing: Broker, sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = source_options(believing, {**by_file(tmp_path), "max.partition.fetch.bytes": "1"})
    monkeypatch.setattr(record_reader, "CHUNK_RECORDS", 1)
    batches = read_range(options, OffsetRange("orders", 0, 0, 10))
    rows = next(batches).num_rows
    sessions.end()
    assert rows + sum(batch.num_rows for batch in batches) == 10
    assert sessions.logins == 1


def test_a_writer_logs_in_again_in_the_middle_of_a_transaction(
    believing: Broker, sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "BLOCK_BYTES", 0)  # rows wait for the next ones
    kafka = kafka_of(believing.bootstrap, None, by_file(tmp_path))
    sink = parse_options({**kafka.writer_options(), "topic": "again"})

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": pa.array([b"sent"])})
        yield pa.record_batch({"value": pa.array([b"waits"])})
        sessions.end()
        yield pa.record_batch({"value": pa.array([b"comes"])})

    believing.create_topic("again")
    assert write_rows(sink, Position("again", "query", "run", 0, 0, 0), rows()).rows == 3
    assert [record.value for record in believing.records("again")] == [b"sent", b"waits", b"comes"]
    assert sessions.logins > 0


class MovedTime:
    """Stands for the module `time`."""

    def __init__(self, moved_s: float) -> None:
        self._moved_s = moved_s

    def monotonic(self) -> float:
        return time.monotonic() + self._moved_s


def source_options(broker: Broker, settings: dict[str, str]) -> SourceOptions:
    kafka = kafka_of(broker.bootstrap, None, settings)
    return parse({**kafka.options(), "subscribe": "orders"}, streaming=False)


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_a_client_shows_a_certificate_of_a_store(tmp_path: Path, kind: str) -> None:
    """The broker wants a certificate. Both stores have passwords, but for PEM."""
    settings = write_stores(tmp_path / "pem", client_certificate(), ca_pem())
    if kind == "PKCS12":
        settings = write_pkcs12(tmp_path)
    with Broker(topics=TOPICS, config=tls_settings(ssl_client_auth="required")) as broker:
        fill(broker)
        client_settings = {"security.protocol": "SSL", **settings}
        ask_read_and_write(kafka_of(broker.bootstrap, None, client_settings), kind)


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
    settings = secured.client_config("confluent-kafka")
    with pytest.raises(PipelineError, match=r"Authentication failed.*--kafka-config"):
        preflight.ask(kafka_of(None, None, {**settings, "sasl.password": "guess"}))
    del settings["ssl.ca.location"]
    with pytest.raises(PipelineError, match=r"do not agree .*certificate verify failed"):
        preflight.ask(kafka_of(None, None, settings))
