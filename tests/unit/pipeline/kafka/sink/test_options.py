"""Options of the sink: what is refused, and the settings of the tasks' producer."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from minibroker.kafka.records.compression import LZ4, NONE, ZSTD
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.kafka.sink.options import DEFAULTS, parse_options
from minibroker.pipeline.kafka.sink.producer_settings import ProducerSettings, producer_settings

BROKERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_missing_options_have_a_default() -> None:
    options = parse_options(BROKERS)

    assert options.brokers == "localhost:9092"
    assert (options.topic, options.prefix, options.tasks) == (None, "minibroker-sink", 0)
    assert options.settings == {**DEFAULTS, "bootstrap.servers": "localhost:9092"}


def test_settings_of_kafka_win_over_ours() -> None:
    options = parse_options({**BROKERS, "kafka.linger.ms": "5", "Kafka.Compression.Type": "lz4"})

    assert options.settings["linger.ms"] == "5"
    assert options.settings["compression.type"] == "lz4"


def test_names_are_as_given() -> None:
    options = parse_options(
        {**BROKERS, "topic": "Orders", "tasks": "4", "transactional.id.prefix": "shop"}
    )

    assert (options.topic, options.prefix, options.tasks) == ("Orders", "shop", 4)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, 'needs the option "kafka.bootstrap.servers"'),
        ({**BROKERS, "kafka.transactional.id": "x"}, "transactional.id.prefix"),
        ({**BROKERS, "kafka.acks": "1"}, "transactions need acks"),
        ({**BROKERS, "tasks": "many"}, "'many' and has to be a number"),
    ],
)
def test_a_wrong_option_is_refused_in_a_sentence(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        parse_options(options)


class Frame:
    """The part of a DataFrame that is used."""

    columns = ("id",)
    schema = StructType([StructField("id", LongType())])


FRAME: Any = Frame()


def test_columns_are_checked_before_anything_starts() -> None:
    with pytest.raises(PipelineError, match="column 'value'"):
        sinks.stream_to_topic(FRAME, {}, checkpoint="progress", topic="orders")


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
