"""Errors of handlers as answers, unsupported versions, correlation ids."""

from __future__ import annotations

import logging
from struct import pack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers import (
    api_versions,
    create_topics,
    describe_cluster,
    fetch,
    list_offsets,
    metadata,
    produce,
)
from minibroker.broker.handlers.registry import supported_versions
from minibroker.broker.metrics import Metrics
from minibroker.broker.server.answers import Run, error_response
from minibroker.broker.server.dispatch import Dispatcher
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError, ProtocolError
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minibroker.kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support.in_process import Serve, request_frame

if TYPE_CHECKING:
    from collections.abc import Callable


async def test_an_unsupported_api_versions_is_answered_in_version_0(serve: Serve) -> None:
    running = await serve()
    async with await running.connect() as client:
        client.writer.write(pack(">ihhih", 11, 18, 99, 7, -1) + b"\0")
        assert await client.receive_frame() == (
            pack(">i", 7)  # correlation id; no tags
            + pack(">h", 35)  # UNSUPPORTED_VERSION
            + pack(">ihhh", 1, 18, 0, 5)  # the only range a client needs to ask again
        )
        answer = await client.call(ApiVersionsRequest(), 0)
        assert answer.error_code == 0


async def test_an_unsupported_api_versions_may_hold_anything(serve: Serve) -> None:
    running = await serve()
    async with await running.connect() as client:
        frame = pack(">hhih", 18, 6, 8, 1) + b"x" + b"\0" + b"whatever comes then"
        client.writer.write(pack(">i", len(frame)) + frame)
        assert (await client.receive_frame())[4:6] == pack(">h", 35)


@pytest.mark.parametrize("number", [0, 1, -1, 2**31 - 1, -(2**31)])
async def test_any_correlation_id_comes_back(serve: Serve, number: int) -> None:
    running = await serve()
    async with await running.connect() as client:
        client.writer.write(request_frame(MetadataRequest(topics=[]), 9, number))
        client.expect(3, 9, number)
        await client.receive()


async def test_a_client_without_a_name_is_served(serve: Serve) -> None:
    running = await serve()
    async with await running.connect(None) as client:
        await client.call(MetadataRequest(topics=[]), 9)


class OnlySome:
    """Services of which the dispatcher needs two."""

    def __init__(self) -> None:
        self.supported_apis = {18: (0, 3)}
        self.metrics = Metrics()


def test_an_event_outside_the_table_is_refused_by_name() -> None:
    dispatcher = Dispatcher(OnlySome())  # type: ignore[arg-type]
    context = SimpleNamespace(repeated_header=None, api_key=-1)
    frame = memoryview(request_frame(MetadataRequest(topics=[]), 1)[4:])
    with pytest.raises(ProtocolError, match=r"Metadata \(key 3\) version 1 is not served"):
        dispatcher.dispatch(Run(0), context, frame)  # type: ignore[arg-type]


# Errors as answers, each in the form of its API.


TOPIC = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
PRODUCE = ProduceRequest(
    acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(index=3)])]
)
FETCH = FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=3)])])
OFFSETS = ListOffsetsRequest(
    topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=3)])]
)
# Handler, request, version, where in the answer the code stands.
PLACES: list[tuple[Any, Any, int, Callable[[Any], int]]] = [
    (api_versions, ApiVersionsRequest(), 0, lambda a: a.error_code),
    (describe_cluster, DescribeClusterRequest(), 0, lambda a: a.error_code),
    (create_topics, CreateTopicsRequest(topics=[TOPIC]), 5, lambda a: a.topics[0].error_code),
    (
        metadata,
        MetadataRequest(topics=[MetadataRequestTopic(name="t")]),
        9,
        lambda a: a.topics[0].error_code,
    ),
    (produce, PRODUCE, 3, lambda a: a.responses[0].partition_responses[0].error_code),
    (fetch, FETCH, 4, lambda a: a.responses[0].partitions[0].error_code),
    (fetch, FETCH, 12, lambda a: a.error_code),
    (list_offsets, OFFSETS, 1, lambda a: a.topics[0].partitions[0].error_code),
]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError(ErrorCode.POLICY_VIOLATION, "no"), ErrorCode.POLICY_VIOLATION),
        (CoordinationError("the tree is away"), ErrorCode.REQUEST_TIMED_OUT),
        (ZeroDivisionError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
@pytest.mark.parametrize(("module", "request_", "version", "place"), PLACES)
async def test_an_error_of_a_handler_is_answered_in_its_own_form(  # noqa: PLR0917
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    code: ErrorCode,
    module: Any,
    request_: Any,
    version: int,
    place: Callable[[Any], int],
) -> None:
    def failing(context: Any, request: Any) -> None:
        raise error

    monkeypatch.setattr(module, "handle", failing)
    running = await serve()
    async with await running.connect("tester") as client:
        answer = await client.call(request_, version)
        assert place(answer) == code
    logged = [r for r in caplog.records if r.levelno >= logging.WARNING]
    if isinstance(error, KafkaError):
        assert logged == []
    elif isinstance(error, CoordinationError):
        assert "the tree is away" in logged[0].getMessage()
    else:
        assert logged[0].exc_info is not None
        assert "tester" in logged[0].getMessage()
        assert "127.0.0.1:" in logged[0].getMessage()


def test_every_served_api_has_an_error_answer_for_all_its_versions() -> None:
    from minibroker.broker.handlers.registry import load_handler  # noqa: PLC0415  beside its only use
    from minibroker.kafka.protocol.primitives import Writer  # noqa: PLC0415

    class Context:
        """Return the context of a client that asks `version`."""

        client_address = "127.0.0.1:1"
        client_id = "c"
        version = 0

    error = KafkaError(ErrorCode.POLICY_VIOLATION, "no")
    for key, versions in supported_versions().items():
        handler = load_handler(key, versions, Metrics())
        for version in range(versions[0], versions[1] + 1):
            Context.version = version
            request = PRODUCE if key == 0 else handler.request()
            answer = error_response(handler, Context(), request, error)  # type: ignore[arg-type]
            answer.write(Writer(), version)
