"""Settings that our own client takes, and those for which librdkafka reads."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from minibroker.client.settings import UnservedError, wire_settings
from minibroker.pipeline.kafka.client_settings import for_reader

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

SERVER = {"bootstrap.servers": "a:1"}
SCRAM = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="alice" password="secret-of-alice";',
}


def test_addresses_are_written_as_kafka_has_them() -> None:
    found = wire_settings(for_reader({"bootstrap.servers": "a:1, SSL://b, [::1]:3,[::1]"}))
    assert found.servers == (("a", 1), ("b", 9092), ("::1", 3), ("::1", 9092))
    assert not found.uses_tls
    assert not found.uses_sasl


def test_limits_are_taken_from_the_settings() -> None:
    more = {"fetch.max.wait.ms": "7", "max.partition.fetch.bytes": "1000", "client.id": "me"}
    found = wire_settings(for_reader({**SERVER, **more, "request.timeout.ms": "1500"}))
    assert (found.fetch_wait_ms, found.fetch_bytes) == (7, 1000)
    assert (found.client_id, found.timeout_s) == ("me", 1.5)


def test_equal_settings_share_connections_and_hide_their_passwords() -> None:
    found = wire_settings(for_reader({**SERVER, **SCRAM}))
    assert found == wire_settings(for_reader({**SERVER, **SCRAM}))
    assert hash(found) != hash(wire_settings(for_reader({**SERVER, **SCRAM, "client.id": "x"})))
    assert found.uses_tls
    assert found.uses_sasl
    assert "secret-of-alice" not in repr(found)
    mechanism, exchange = found.login()
    assert mechanism == "SCRAM-SHA-256"
    assert exchange.begin().startswith(b"n,,n=alice,r=")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"broker.address.family": "v4"}, "broker.address.family is librdkafka's alone"),
        ({"enable.ssl.certificate.verification": "false"}, "verification is librdkafka's alone"),
        ({"security.protocol": "sasl_plaintext"}, "a login by GSSAPI is librdkafka's alone"),
        (
            {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"},
            "a login without sasl.username",
        ),
        ({"security.protocol": "ssl", "ssl.ca.location": "probe"}, "ssl.ca.location=probe is no"),
        ({"security.protocol": "ssl", "ssl.ca.location": "/"}, "ssl.ca.location=/ is no file"),
        ({"fetch.min.bytes": "few"}, "fetch.min.bytes is 'few', which is no number"),
        ({"bootstrap.servers": "a:b"}, "address 'a:b' has no port"),
        ({"client.rack": "a"}, "client.rack is librdkafka's alone"),
    ],
)
def test_settings_that_it_does_not_serve_are_named(given: dict[str, str], reason: str) -> None:
    with pytest.raises(UnservedError, match=reason):
        wire_settings(for_reader({**SERVER, **given}))


def test_a_worker_without_the_packages_reads_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def without(name: str) -> ModuleSpec | None:
        return None if name == "lz4" else found(name)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(UnservedError, match="the package lz4 is not installed"):
        wire_settings(for_reader(SERVER))
