"""Clients of the source: what is unknown is refused, and no group is joined."""

from __future__ import annotations

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options
from minibroker.pipeline.kafka.source import consumer
from minibroker.pipeline.offsets import OffsetRange


def parsed(**client: str) -> options.SourceOptions:
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in client.items()}
    return options.parse(
        {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", **given}, streaming=False
    )


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
