"""Errors of handlers as answers, unsupported versions, correlation ids."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.metrics import Metrics
from minibroker.broker.server.answers import Run
from minibroker.broker.server.dispatch import Dispatcher
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.in_process import request_frame

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.in_process import InProcessBroker

    Serve = Callable[..., Awaitable[InProcessBroker]]


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
    frame = memoryview(request_frame(MetadataRequest(topics=[]), 1)[4:])
    with pytest.raises(ProtocolError, match=r"Metadata \(key 3\) version 1 is not served"):
        dispatcher.dispatch(Run(0), None, frame)  # type: ignore[arg-type]
