"""Kerberos: dialogues as Apache Kafka 3.9.1 and 4.4.0 answer them (golden/kerberos.json), and real
clients. The KDC is MIT's.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.client import admin
from minibroker.client.client import Client, close_idle
from minibroker.client.settings import client_settings
from minibroker.kafka.errors import ConfigError
from minibroker.pipeline.kafka.client_settings import for_reader
from minibroker.testing import Broker, Cluster
from tests.golden.record_kerberos import RECORDED
from tests.support import kerberos
from tests.support.certificates import authority_pem, broker_certificate, pem_of
from tests.support.kerberos import ALICE, BROKER, Kdc, running_kdc
from tests.support.secured_clients import missing_client, outcomes_of
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MISSING = kerberos.missing()
if _MISSING is not None:
    pytest.skip(_MISSING, allow_module_level=True)

from tests.support import kerberos_dialogues as dialogues  # noqa: E402  needs libkrb5
from tests.support.kerberos_dialogues import KERBEROS  # noqa: E402  as above

HOST = "localhost"
NOTES = json.loads(RECORDED.read_text())
DIFFERENCES = {
    # So that clients of Kafka 0.9 come in.
    "a_ticket_without_a_handshake": "3.9.1"
}
"""Dialogue in which the two Kafkas differ → the one that minibroker follows."""
SECONDS = 180
BEHIND_TLS = f"{KERBEROS}TLS"
PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", KERBEROS: "SASL_PLAINTEXT", BEHIND_TLS: "SASL_SSL"}


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC, which this process finds."""
    with running_kdc(tmp_path_factory.mktemp("kdc")) as kdc:
        yield kdc


def settings_of(kdc: Kdc) -> dict[str, str]:
    settings = dialogues.settings(kdc)
    line = settings[f"listener.name.{KERBEROS.lower()}.gssapi.sasl.jaas.config"]
    return {
        **settings,
        "listeners": ",".join(f"{name}://{HOST}:0" for name in PROTOCOLS),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in PROTOCOLS.items()),
        f"listener.name.{BEHIND_TLS.lower()}.gssapi.sasl.jaas.config": line,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": broker_certificate().private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": pem_of(broker_certificate()),
    }


@pytest.fixture(scope="module")
def broker(kdc: Kdc) -> Iterator[Broker]:
    """A broker with a key in Kerberos."""
    with Broker(config=settings_of(kdc), topics=["t"]) as broker:
        yield broker


@pytest.fixture
def address(broker: Broker) -> str:
    """The listener with Kerberos."""
    return f"{HOST}:{broker._node.app.ports[KERBEROS]}"


@pytest.mark.parametrize("name", dialogues.DIALOGUES)
def test_a_client_sees_what_kafka_lets_it_see(name: str, broker: Broker, kdc: Kdc) -> None:
    expected = NOTES[name]
    if isinstance(expected, dict):
        expected = expected[DIFFERENCES[name]]
    port = broker._node.app.ports[KERBEROS]
    assert dialogues.play(HOST, port, kdc, name) == expected


def test_every_recorded_dialogue_is_played() -> None:
    assert NOTES.keys() == dialogues.DIALOGUES.keys()
    assert DIFFERENCES.keys() == {name for name, notes in NOTES.items() if isinstance(notes, dict)}


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_librdkafka_writes_with_a_ticket(broker: Broker, address: str, kdc: Kdc) -> None:
    """Debian's, because the wheels of confluent-kafka are built without Kerberos."""
    command = ["kcat", "-P", "-b", address, "-t", "t", "-X", "security.protocol=SASL_PLAINTEXT"]
    options = {
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": ALICE,
        "sasl.kerberos.keytab": kdc.keytab(ALICE),
        "sasl.kerberos.kinit.cmd": (
            'kinit -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}'
        ),
    }
    for name, value in options.items():
        command += ["-X", f"{name}={value}"]
    environment = {**os.environ, "KRB5CCNAME": f"FILE:{kdc.directory}/kcat"}
    subprocess.run(
        command, input=b"kcat\n", env=environment, check=True, capture_output=True, timeout=SECONDS
    )
    assert b"kcat" in [record.value for record in broker.records("t")]


async def test_aiokafka_writes_with_a_ticket(
    broker: Broker, address: str, kdc: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aiokafka import AIOKafkaProducer  # noqa: PLC0415  it looks for gssapi

    for name, value in kdc.ticket(ALICE).items():
        monkeypatch.setenv(name, value)
    settings: dict[str, Any] = {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
        "sasl_kerberos_domain_name": HOST,
    }
    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait("t", b"aiokafka")
    assert b"aiokafka" in [record.value for record in await asyncio.to_thread(broker.records, "t")]


@pytest.mark.parametrize("listener", [KERBEROS, BEHIND_TLS])
@pytest.mark.parametrize("way", ["a keytab", "the usual cache", "a cache", "names of librdkafka"])
def test_our_own_client_logs_in_with_a_ticket(
    broker: Broker, kdc: Kdc, monkeypatch: pytest.MonkeyPatch, way: str, listener: str
) -> None:
    cache = kdc.ticket(ALICE)["KRB5CCNAME"]
    if way == "the usual cache":
        monkeypatch.setenv("KRB5CCNAME", cache)
    ticket = {
        "a keytab": f'useKeyTab=true keyTab="{kdc.keytab(ALICE)}" principal="{ALICE}"',
        "the usual cache": "useTicketCache=true",
        "a cache": f'useTicketCache=true ticketCache="{cache}" principal="{ALICE}"',
    }
    settings = {
        "bootstrap.servers": f"{HOST}:{broker._node.app.ports[listener]}",
        "security.protocol": PROTOCOLS[listener],
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority_pem(),
    }
    if way == "names of librdkafka":
        ticket_settings = {
            "sasl.kerberos.keytab": kdc.keytab(ALICE),
            "sasl.kerberos.principal": ALICE,
        }
        settings = for_reader({**settings, **ticket_settings, "sasl.mechanisms": "GSSAPI"})
    else:
        module = "com.sun.security.auth.module.Krb5LoginModule"
        settings["sasl.jaas.config"] = f"{module} required {ticket[way]};"
        settings["sasl.kerberos.service.name"] = "kafka"
    assert "t" in admin.describe(Client(client_settings(settings))).topics
    close_idle()


def test_without_a_ticket_our_own_client_says_so(
    broker: Broker, address: str, kdc: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.directory}/nothing")
    settings = for_reader({"bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT"})
    with pytest.raises(ConnectionError, match=r"GSSAPI: .*nothing"):
        admin.describe(Client(client_settings(settings)))


@pytest.mark.parametrize(
    "client",
    [
        pytest.param("java-3.9.1", marks=pytest.mark.java),
        pytest.param("java-4.4.0", marks=pytest.mark.java),
        "sarama",
        "franz-go",
    ],
)
def test_clients_write_and_read_with_a_keytab(
    client: str, broker: Broker, kdc: Kdc, tmp_path: Path
) -> None:
    """With TLS and without. kafkajs has no Kerberos."""
    reason = missing_client(client)
    if reason is not None:
        pytest.skip(reason)
    ca = tmp_path / "ca.pem"
    ca.write_text(authority_pem())
    user, _, realm = ALICE.partition("@")
    cases = [
        {
            "name": listener,
            "address": f"{HOST}:{broker._node.app.ports[listener]}",
            "protocol": PROTOCOLS[listener],
            "topic": f"{client}-{listener}",
            "mechanism": "GSSAPI",
            "user": user,
            "realm": realm,
            "keytab": kdc.keytab(ALICE),
            "krb5_conf": str(kdc.config),
            **({"ca": str(ca)} if listener == BEHIND_TLS else {}),
        }
        for listener in (KERBEROS, BEHIND_TLS)
    ]
    for case in cases:
        broker.create_topic(case["topic"])
    outcomes = outcomes_of(client, cases)
    assert outcomes == {name: {"read": name} for name in (KERBEROS, BEHIND_TLS)}


def test_a_failed_login_names_the_reason(
    broker: Broker, kdc: Kdc, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        for name in ("a_ticket_for_another_service", "a_name_that_no_rule_takes"):
            dialogues.play(HOST, broker._node.app.ports[KERBEROS], kdc, name)
    logged = " ".join(caplog.messages)
    assert "GSSAPI: Cannot decrypt ticket for http/localhost@EXAMPLE.TEST" in logged
    assert "a rule of sasl.kerberos.principal.to.local.rules makes x@y" in logged


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"keyTab": "/nowhere"}, "keytab /nowhere has no key of kafka/localhost@EXAMPLE.TEST"),
        ({"principal": "other/host@EXAMPLE.TEST"}, "has no key of other/host@EXAMPLE.TEST"),
        ({"useKeyTab": "false"}, "the JAAS line of GSSAPI has no key of this broker"),
        ({"serviceName": "other"}, "the JAAS line has another one"),
    ],
)
def test_a_broker_without_its_key_does_not_start(
    kdc: Kdc, change: dict[str, str], sentence: str
) -> None:
    options = {"useKeyTab": "true", "keyTab": kdc.keytab(BROKER), "principal": BROKER, **change}
    words = " ".join(f'{name}="{value}"' for name, value in options.items())
    settings = settings_of(kdc)
    for key in [name for name in settings if name.endswith("jaas.config")]:
        settings[key] = f"com.sun.security.auth.module.Krb5LoginModule required {words};"
    with pytest.raises(ConfigError, match=sentence), Broker(config=settings):
        pass


def test_followers_log_in_with_a_ticket(kdc: Kdc) -> None:
    settings = {
        **dialogues.settings(kdc),
        "listeners": f"PLAINTEXT://{HOST}:0,{KERBEROS}://{HOST}:0",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{KERBEROS}:SASL_PLAINTEXT",
        "inter.broker.listener.name": KERBEROS,
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "replica.fetch.wait.max.ms": "50",
    }
    with Cluster(2, config=settings, topics=["t"]) as cluster:
        wait_until(lambda: cluster.in_sync("t") == [0, 1], "all replicas are in sync")

        def principals() -> set[str]:
            return {
                transport._context.principal
                for node in (0, 1)
                for transport in cluster.node(node).app._server.connections
            }

        wait_until(lambda: "User:kafka" in principals(), "a follower has logged in")
