"""Requests as they come: a stream of what logs of requests have that is new.

A broker has such a log, and so has a proxy. Nobody is told of each request: a look takes what came
since the last one, four times a second at most, and only as many as the rate allows.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from minibroker.broker.slices import TimeSlice
from minibroker.control.shapes import FeedEvent, RequestView
from minibroker.control.slices import SLICE_S
from minibroker.control.streams import StreamPace, event_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from minibroker.control.shapes import FeedQuery, RequestsQuery
    from minibroker.rig.request_log import RequestLog, SeenRequest

OPEN_MAX: Final = 50
"""Requests without an answer that an event has."""
OPEN_SCANNED_MAX: Final = 500
"""Requests without an answer that one look reads."""
SCANNED_MAX: Final = 500
"""Requests of one log that one look reads: some 50 µs."""
LOOK_S_MAX: Final = 0.5
"""A look takes at most the requests of so long a time."""


def fits(request: SeenRequest, choice: RequestsQuery | FeedQuery) -> bool:
    """Return whether a request is one of those that were chosen."""
    return (
        choice.api in (None, request.api)
        and choice.client_id in (None, request.client_id)
        and choice.client_address in (None, request.client_address)
        and (not choice.failed or request.error is not None)
        and (choice.slow_ms is None or request.duration_ms >= choice.slow_ms)
    )


def view_of(broker_id: int | None, request: SeenRequest, log: RequestLog) -> msgspec.Struct:
    """Return a request as JSON has it, with its subject as long as its log remembers it."""
    return _view(broker_id, request, request.subject or log.describe(request.number))


def _view(broker_id: int | None, request: SeenRequest, subject: str) -> msgspec.Struct:
    fields = request._asdict() | {"subject": subject}
    view: msgspec.Struct = RequestView(broker_id=broker_id, **fields)
    return view


def last_of(
    logs: Mapping[int | None, RequestLog], choice: RequestsQuery | FeedQuery, limit: int
) -> Iterator[msgspec.Struct | None]:
    """Yield the last requests of some brokers, oldest first. None is a chance to pause."""
    last: list[tuple[int | None, SeenRequest]] = []
    for broker_id, log in logs.items():
        chosen: list[tuple[int | None, SeenRequest]] = []
        for request in list(reversed(log)):
            if len(chosen) >= limit:
                break
            if fits(request, choice):
                chosen.append((broker_id, request))
            yield None
        last += reversed(chosen)
    if len(logs) > 1:
        last.sort(key=lambda entry: entry[1].at_ms)
    for broker_id, request in last[-limit:] if limit else ():
        yield view_of(broker_id, request, logs[broker_id])


class RequestFeed:
    """The requests of one stream. Owned by the loop."""

    def __init__(self, logs: Mapping[int | None, RequestLog], query: FeedQuery) -> None:
        """`logs`: broker → its log; None: that of a proxy."""
        self._logs = logs
        self._query = query
        self._totals = {broker_id: log.total for broker_id, log in logs.items()}
        """Broker → number of requests that are behind the last look."""
        self._open: list[tuple[int | None, str, int]] = []
        """Broker, connection and correlation id of the requests that were open then."""

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the events of the stream, for ever."""
        pace = StreamPace()
        news = asyncio.Event()
        for log in self._logs.values():
            log.follow()
            log.wake(news)
        try:
            first = [view async for view in _paused(self._logs, self._query)]
            open_views = (await self._look_at_open())[0]
            yield event_of("requests", FeedEvent(skipped=0, requests=first, open=open_views))
            last_look_s = monotonic()
            while True:
                await pace.next_look(news)
                news.clear()
                passed_s = min(monotonic() - last_look_s, LOOK_S_MAX)
                last_look_s = monotonic()
                event = await self._look(max(1, int(self._query.rate * passed_s)))
                if (piece := pace.piece(event)) is not None:
                    yield piece
        finally:
            for log in self._logs.values():
                log.let_sleep(news)
                log.leave()

    async def _look(self, limit: int) -> bytes | None:
        """Return the event of what came since the last look, None for nothing."""
        skipped = 0
        chosen: list[tuple[int | None, SeenRequest]] = []
        for broker_id, log in self._logs.items():
            requests, left_out = log.since(self._totals[broker_id], SCANNED_MAX)
            self._totals[broker_id] = log.total
            skipped += left_out
            chosen += [(broker_id, request) for request in requests if fits(request, self._query)]
        if len(self._logs) > 1:
            chosen.sort(key=lambda entry: entry[1].at_ms)
        skipped += max(0, len(chosen) - limit)
        open_views, is_changed = await self._look_at_open()
        if not chosen and not skipped and not is_changed:
            return None
        turn = TimeSlice(SLICE_S)
        views = []
        for broker_id, request in self._choice(chosen, limit):
            views.append(view_of(broker_id, request, self._logs[broker_id]))
            if turn.is_over:
                await turn.pause()
        return event_of("requests", FeedEvent(skipped=skipped, requests=views, open=open_views))

    async def _look_at_open(self) -> tuple[list[msgspec.Struct], bool]:
        """Return the chosen requests without an answer, and whether they are others than before.

        Only those that an event has are described, and others are served between two of them.
        """
        waiting = [
            (broker_id, request, describe)
            for broker_id, log in self._logs.items()
            for request, describe in islice(log.open_requests(), OPEN_SCANNED_MAX)
            if fits(request, self._query)
        ]
        waiting.sort(key=lambda entry: entry[1].machine_ms)
        del waiting[OPEN_MAX:]
        keys = [
            (broker_id, request.client_address, request.correlation_id)
            for broker_id, request, _ in waiting
        ]
        is_changed, self._open = keys != self._open, keys
        turn = TimeSlice(SLICE_S)
        views = []
        for broker_id, request, describe in waiting:
            views.append(_view(broker_id, request, describe()))
            if turn.is_over:
                await turn.pause()
        return views, is_changed

    def _choice(
        self, chosen: list[tuple[int | None, SeenRequest]], limit: int
    ) -> list[tuple[int | None, SeenRequest]]:
        """Return as many requests as the limit allows: those with a subject, then the last ones."""
        if len(chosen) <= limit:
            return chosen
        described = [
            entry
            for entry in chosen
            if entry[1].subject or self._logs[entry[0]].remembers(entry[1].number)
        ]
        return described[:limit] if len(described) >= limit else chosen[-limit:]


async def _paused(
    logs: Mapping[int | None, RequestLog], query: FeedQuery
) -> AsyncGenerator[msgspec.Struct, None]:
    """Yield the earlier requests; others are served between two of them."""
    turn = TimeSlice(SLICE_S)
    for view in last_of(logs, query, query.last):
        if view is not None:
            yield view
        if turn.is_over:
            await turn.pause()
