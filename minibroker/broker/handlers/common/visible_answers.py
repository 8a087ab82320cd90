"""Answers that wait until the records they speak of are visible.

A coordinator writes its record and changes its state at once. With `flush.messages` the record has
to be synced first: until then the answer waits, and where the disk refuses it becomes an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.kafka.error_codes import ErrorCode

R = TypeVar("R")


def when_visible(
    waiting: Awaitable[None] | None, response: R, refuse: Callable[[ErrorCode], R]
) -> R | Awaitable[R]:
    """Return the response, or an awaitable of it if there is something to wait for.

    `waiting` is what a coordinator's `visible` returned; `refuse` makes the response of the error.
    """
    return response if waiting is None else _wait(waiting, response, refuse)


async def _wait(waiting: Awaitable[None], response: R, refuse: Callable[[ErrorCode], R]) -> R:
    try:
        await waiting
    except KafkaError as error:
        return refuse(error.code)
    return response
