"""Settings of the tasks' producer."""

from __future__ import annotations

import pytest

from minibroker.kafka.records.compression import LZ4, NONE, ZSTD
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink.options import parse_options
from minibroker.pipeline.kafka.sink.producer_settings import ProducerSettings, producer_settings


def settings_of(**more: str) -> ProducerSettings:
    settings = {f"kafka.{name.replace('_', '.')}": value for name, value in more.items()}
    return producer_settings(parse_options({"kafka.bootstrap.servers": "a:1", **settings}).settings)


def test_the_defaults_wait_as_long_as_a_transaction_lasts() -> None:
    settings = settings_of()
    assert settings.connection.servers == (("a", 1),)
    assert (settings.codec, settings.level) == (NONE, None)
    assert (settings.batch_bytes, settings.batch_records) == (1_000_000, 10_000)
    assert (settings.limits.in_flight, settings.limits.patience_s) == (5, 900.0)
    assert (settings.limits.request_bytes, settings.record_bytes) == (1_000_000, 100_000_000)


def test_settings_of_java_and_of_librdkafka_are_taken() -> None:
    settings = settings_of(
        compression_type="lz4",
        compression_level="9",
        max_request_size="5000",
        batch_num_messages="7",
        message_timeout_ms="2000",
        max_in_flight="1",
        buffer_memory="1000000",
        linger_ms="0",
        retries="3",
        debug="all",
    )
    assert (settings.codec, settings.level) == (LZ4, 9)
    assert (settings.batch_bytes, settings.record_bytes, settings.batch_records) == (5000, 5000, 7)
    assert (settings.limits.in_flight, settings.limits.patience_s) == (1, 2.0)
    of_java = settings_of(compression_type="zstd", compression_zstd_level="3")
    assert (of_java.codec, of_java.level) == (ZSTD, 3)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("partitioner", "random", "partitioner=random: expected murmur2_random"),
        ("compression_type", "brotli", "compression.type=brotli: expected one of none"),
        ("batch_size", "many", "setting batch.size is 'many', which is no number"),
        ("no_such_setting", "x", r"no\.such\.setting is no setting that this client knows"),
        ("request_required_acks", "1", "transactions need acks from all replicas"),
    ],
)
def test_a_wrong_setting_is_one_sentence(name: str, value: str, sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        settings_of(**{name: value})
