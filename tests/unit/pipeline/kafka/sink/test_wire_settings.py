"""Settings that the tasks' own producer takes, and those for which librdkafka writes."""

from __future__ import annotations

import pytest

from minibroker.client.settings import UnservedError
from minibroker.kafka.records.compression import LZ4, NONE
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.sink.wire_settings import ProducerSettings, producer_settings


def found(**more: str) -> ProducerSettings:
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in more.items()}
    return producer_settings(parse_options({"kafka.bootstrap.servers": "a:1", **given}).settings)


def test_the_defaults_are_those_of_librdkafka() -> None:
    settings = found()
    assert settings.connection.servers == (("a", 1),)
    assert (settings.codec, settings.level) == (NONE, None)
    assert (settings.batch_bytes, settings.batch_records) == (1_000_000, 10_000)
    assert (settings.limits.in_flight, settings.limits.patience_s) == (5, 900.0)
    assert (settings.limits.request_bytes, settings.record_bytes) == (1_000_000, 100_000_000)


def test_settings_of_java_and_of_librdkafka_are_taken() -> None:
    settings = found(
        compression_type="lz4",
        compression_level="9",
        max_request_size="5000",
        batch_num_messages="7",
        delivery_timeout_ms="2000",
        max_in_flight="1",
        buffer_memory="1000000",
        linger_ms="0",
    )
    assert (settings.codec, settings.level) == (LZ4, 9)
    assert (settings.batch_bytes, settings.record_bytes, settings.batch_records) == (5000, 5000, 7)
    assert (settings.limits.in_flight, settings.limits.patience_s) == (1, 2.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partitioner", "random"),
        ("retries", "3"),
        ("compression_type", "brotli"),
        ("batch_size", "many"),
        ("debug", "all"),
    ],
)
def test_settings_of_librdkafka_alone_are_left_to_it(name: str, value: str) -> None:
    with pytest.raises(UnservedError):
        found(**{name: value})
