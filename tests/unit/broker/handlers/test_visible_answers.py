"""An answer waits for the record it speaks of."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from minibroker.broker.handlers.common.visible_answers import when_visible
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError


def refuse(code: ErrorCode) -> str:
    return code.name


async def test_an_answer_with_nothing_to_wait_for_is_there_at_once() -> None:
    assert when_visible(None, "good", refuse) == "good"


@pytest.mark.parametrize("is_refused", [False, True])
async def test_an_answer_waits_or_becomes_an_error(is_refused: bool) -> None:
    visible: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    answer = when_visible(visible, "good", refuse)
    assert inspect.iscoroutine(answer)
    if is_refused:
        visible.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))
    else:
        visible.set_result(None)
    assert await answer == ("NOT_COORDINATOR" if is_refused else "good")
