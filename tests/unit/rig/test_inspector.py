"""The inspector on a broker in the test's own loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.topic_option import TopicToCreate
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.rig.inspector import Inspector

if TYPE_CHECKING:
    from pathlib import Path

from tests.support.in_process import InProcessBroker


async def test_a_wait_begins_before_its_topic(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        look = Inspector(running.broker)
        waiting = asyncio.ensure_future(look.wait_for("t", 2, 60))
        await look.create_topic("t", 2, {})
        for index in range(2):
            await look.produce(
                "t", key=None, values=[b"v"], headers=(), index=index, timestamp=None
            )
        assert [record.partition for record in await waiting] == [0, 1]


async def test_an_append_that_the_broker_refuses_is_an_error(tmp_path: Path) -> None:
    settings = {"auto.create.topics.enable": "false"}
    async with InProcessBroker(tmp_path, settings) as running:
        look = Inspector(running.broker)
        with pytest.raises(KafkaError) as caught:
            await look.produce("t", key=None, values=[b"v"], headers=(), index=None, timestamp=None)
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await look.create_topic("t", 1, {"cleanup.policy": "compact"})
        with pytest.raises(KafkaError) as caught:
            await look.produce("t", key=None, values=[b"v"], headers=(), index=None, timestamp=None)
        assert caught.value.code == ErrorCode.INVALID_RECORD


async def test_a_topic_that_does_not_exist_is_made_where_clients_may(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        look = Inspector(running.broker)
        await look.produce("t", key=b"k", values=[None], headers=(), index=None, timestamp=7)
        (record,) = look.records("t", None, "read_committed")
        assert (record.key, record.value, record.timestamp) == (b"k", None, 7)


async def test_a_reset_takes_internal_topics_too(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, {"offsets.topic.num.partitions": "1"}) as running:
        look = Inspector(running.broker)
        await running.broker.services.groups.journal.ensure_topic()
        assert look.topics() == {}
        assert "__consumer_offsets" in running.broker.cluster.image.topics
        await look.reset([TopicToCreate("t", -1, {})])
        assert list(running.broker.cluster.image.topics) == ["t"]
        assert look.committed("g") == {}
        assert look.groups() == {}
