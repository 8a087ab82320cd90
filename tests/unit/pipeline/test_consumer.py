"""Java's names of settings become librdkafka's; what is unknown is refused, nothing is dropped."""

from __future__ import annotations

import pytest

from minibroker.pipeline import consumer, options
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.offsets import OffsetRange


def parsed(**client: str) -> options.SourceOptions:
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in client.items()}
    return options.parse(
        {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", **given}, streaming=False
    )


def test_javas_names_become_librdkafkas() -> None:
    settings = consumer.client_settings(
        {
            "fetch.max.wait.ms": "7",
            "request.timeout.ms": "8",
            "ssl.truststore.location": "ca.pem",
            "max.poll.records": "500",
            "security.protocol": "SSL",
        }
    )

    assert settings == {
        "fetch.wait.max.ms": "7",
        "socket.timeout.ms": "8",
        "ssl.ca.location": "ca.pem",
        "security.protocol": "SSL",
        "log_level": "0",
    }


def test_a_login_in_javas_form_is_understood() -> None:
    settings = consumer.client_settings(
        {"sasl.jaas.config": 'x.PlainLoginModule required username="u" password="p q";'}
    )

    assert (settings["sasl.username"], settings["sasl.password"]) == ("u", "p q")


def test_another_login_is_refused() -> None:
    with pytest.raises(PipelineError, match="only PLAIN and SCRAM"):
        consumer.client_settings({"sasl.jaas.config": "Krb5LoginModule required useKeyTab=true;"})


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(PipelineError, match=r'refused by librdkafka.*"no.such"'):
        consumer.admin_client(parsed(no_such="1"), lambda _error: None)
    with pytest.raises(PipelineError, match=r'refused by librdkafka.*"no.such"'):
        consumer.range_consumer(parsed(no_such="1"), OffsetRange("t", 0, 0, 5), lambda _error: None)


def test_a_range_is_assigned_at_its_start_and_no_group_is_joined() -> None:
    made = consumer.range_consumer(parsed(), OffsetRange("t", 3, 17, 20), lambda _error: None)
    try:
        [assigned] = made.assignment()
        assert (assigned.topic, assigned.partition, assigned.offset) == ("t", 3, 17)
    finally:
        made.close()
