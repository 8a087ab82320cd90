"""Options of the sink: what the producer gets, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.kafka.sink.options import DEFAULTS, parse_options

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
