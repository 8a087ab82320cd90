"""The short way of Produce, and fetch sessions, under an authorizer.

`test_permissions.py` compares single requests with Apache Kafka. Here an ACL
changes between two requests of one connection.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_process import InProcessBroker, batch_of
from tests.support.principals import connect_as
from tests.unit.broker.handlers.acl_requests import ALICE, SETTINGS, acl, allow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FORBIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED
READ = acl(Operation.READ, ResourceType.TOPIC, "t")
WRITE = acl(Operation.WRITE, ResourceType.TOPIC, "t")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[InProcessBroker]:
    """A broker with an authorizer, and the topic `t` of two partitions."""
    async with InProcessBroker(tmp_path, SETTINGS) as broker:
        await broker.create_topic("t", 2)
        yield broker


def produce(*indexes: int) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name="t",
                partition_data=[
                    PartitionProduceData(index=index, records=bytes(batch_of(b"value")))
                    for index in indexes
                ],
            )
        ],
    )


def forbid(running: InProcessBroker) -> None:
    """Take every ACL of the topic away."""
    authorizer = running.broker.services.authorizer
    assert authorizer is not None
    authorizer.put(READ.pattern, frozenset())


@pytest.mark.parametrize("indexes", [(0,), (0, 1)])
async def test_a_producer_that_sent_before_is_refused_once_it_may_not(
    running: InProcessBroker, indexes: tuple[int, ...]
) -> None:
    async with await connect_as(running, ALICE) as alice:
        for is_allowed in (False, True, False):
            if is_allowed:
                await allow(running, WRITE)
            else:
                forbid(running)
            answer = await alice.call(produce(*indexes), 9)
            codes = [part.error_code for part in answer.responses[0].partition_responses]
            assert codes == [0 if is_allowed else FORBIDDEN] * len(indexes)
    partition = running.partitions.get("t", 0)
    assert partition.log_end_offset == 1


async def test_a_producer_is_decided_about_once_unless_every_yes_is_logged(
    running: InProcessBroker, caplog: pytest.LogCaptureFixture
) -> None:
    await allow(running, WRITE)

    async def lines_of(requests: int) -> int:
        caplog.clear()
        for _ in range(requests):
            answer = await alice.call(produce(0), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        return sum("may WRITE TOPIC t" in record.message for record in caplog.records)

    async with await connect_as(running, ALICE) as alice:
        with caplog.at_level(logging.DEBUG, "minibroker.broker.security.authorizer"):
            assert await lines_of(3) == 3
        assert await lines_of(1) == 0
        authorizer = running.broker.services.authorizer
        assert authorizer is not None
        authorizer.allows = None  # type: ignore[method-assign, assignment]  nobody is asked
        await lines_of(3)


async def test_a_quiet_partition_of_a_session_is_refused_once_it_may_not_be_read(
    running: InProcessBroker,
) -> None:
    await allow(running, READ)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    async with await connect_as(running, ALICE) as alice:
        full = FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1000,
            session_id=0,
            session_epoch=0,
            topics=[FetchTopic(topic="t", partitions=[partition])],
        )
        answer = await alice.call(full, 11)
        assert answer.responses[0].partitions[0].error_code == 0
        session_id = answer.session_id
        assert session_id
        codes = []
        for epoch in (1, 2, 3):
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1000,
                session_id=session_id,
                session_epoch=epoch,
                topics=[],
            )
            if epoch == 2:
                forbid(running)
            if epoch == 3:
                await allow(running, READ)
            answer = await alice.call(request, 11)
            codes.append([p.error_code for topic in answer.responses for p in topic.partitions])
        assert codes == [[], [FORBIDDEN], [0]]
