"""A picture of a short conversation: a sequence diagram as SVG, for a page or a report of a fault.

    exchanges ─► arrows by time ─► rows and lines down ─► picture.svg

`trace --svg` writes it. A request and its answer share a row if nothing comes between them. The
page (`page`) has the same diagram for long conversations, with filters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.foreign_text import printable
from minibroker.pages.page import render
from minibroker.trace.line import client_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.trace.exchange import Exchange

EXCHANGES_MAX: Final = 200
"""Exchanges of a picture; more belong on a page."""
LANES_MAX: Final = 12
"""Lines down; of more clients the last ones share a line."""
WIDTH: Final = 960
ROW: Final = 42
HEAD: Final = 34
LABEL_CHARACTERS: Final = 118
_RANDOM_ID: Final = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""An id that a client or a broker chose at random; its first digits are enough here."""
_SPACE: Final = 6
"""Units between two bars of a broker."""


class Arrow(NamedTuple):
    """A row of the picture: a request, an answer, or both."""

    exchange: Exchange
    at_ms: float
    has_request: bool
    has_answer: bool


class WaitingBar(NamedTuple):
    """The time that a request waits at a broker, as places in the picture."""

    x: float
    y: float
    height: float


class DrawnRow(NamedTuple):
    """A row, ready for the template."""

    y: float
    client_x: float
    broker_x: float
    has_request: bool
    has_answer: bool
    kind: str
    """`wrong` for an error, `met` for a fault, else nothing."""
    time: str
    api: str
    note: str
    """The error, the fault, or `no answer`."""
    subject: str


def picture(exchanges: Sequence[Exchange], title: str) -> str:
    """Return an SVG of at most `EXCHANGES_MAX` exchanges; it fetches nothing."""
    exchanges = sorted(exchanges, key=lambda exchange: exchange.at_ms)[:EXCHANGES_MAX]
    arrows = arrows_of(exchanges)
    clients, brokers = _lanes(exchanges)
    start_ms = exchanges[0].at_ms if exchanges else 0.0
    rows = [_row(arrow, number, clients, brokers, start_ms) for number, arrow in enumerate(arrows)]
    names = {**{x: name for name, x in reversed(clients.items())}, **_names(brokers)}
    return render(
        "trace/picture.svg",
        title=printable(title),
        width=WIDTH,
        height=HEAD + len(rows) * ROW + 14,
        head=HEAD,
        lanes=[(x, printable(name)[:40], x in brokers.values()) for x, name in names.items()],
        rows=rows,
        bars=_bars(arrows, brokers),
    )


def arrows_of(exchanges: Sequence[Exchange]) -> list[Arrow]:
    """Return requests and answers by time, a request with its answer where nothing is between."""
    events = [(exchange.at_ms, exchange.number, False, exchange) for exchange in exchanges]
    events += [
        (exchange.at_ms + exchange.duration_ms, exchange.number, True, exchange)
        for exchange in exchanges
        if exchange.duration_ms is not None
    ]
    arrows: list[Arrow] = []
    for at_ms, number, is_answer, exchange in sorted(events, key=lambda event: event[:3]):
        if is_answer and arrows and arrows[-1].exchange.number == number:
            arrows[-1] = arrows[-1]._replace(has_answer=True)
        else:
            arrows.append(Arrow(exchange, at_ms, not is_answer, is_answer))
    return arrows


def _names(lanes: dict[str, float]) -> dict[float, str]:
    return {x: name for name, x in lanes.items()}


def _lanes(exchanges: Sequence[Exchange]) -> tuple[dict[str, float], dict[str, float]]:
    """Return client → x and broker → x."""
    clients = list(dict.fromkeys(client_text(exchange) for exchange in exchanges))
    brokers = sorted({exchange.broker for exchange in exchanges})[: LANES_MAX - 1]
    room = max(LANES_MAX - len(brokers), 1)
    count = min(len(clients), room) + len(brokers)
    places = [(lane + 0.5) * WIDTH / max(count, 1) for lane in range(count)]
    client_lanes = {client: places[min(lane, room - 1)] for lane, client in enumerate(clients)}
    first = min(len(clients), room)
    return client_lanes, dict(zip(brokers, places[first:], strict=True))


def _row(
    arrow: Arrow,
    number: int,
    clients: dict[str, float],
    brokers: dict[str, float],
    start_ms: float,
) -> DrawnRow:
    exchange = arrow.exchange
    whole = _RANDOM_ID.sub(r"\1…", printable(exchange.subject))
    question, _, reply = whole.partition(" → ")
    if arrow.has_request and arrow.has_answer:
        subject = whole
    else:
        subject = question if arrow.has_request else reply
    ends = arrow.has_answer
    note = printable(exchange.error or "") if ends else ""
    if exchange.duration_ms is None and not exchange.is_one_way:
        note = "no answer"
    if exchange.fault:
        note = f"{note} ⚡ {printable(exchange.fault)}".strip()
    kind = "wrong" if ends and exchange.error else "met" if exchange.fault else ""
    api = printable(exchange.api)
    name = f"{api} v{exchange.version}"
    room = LABEL_CHARACTERS - len(name) - len(note)
    return DrawnRow(
        y=HEAD + number * ROW,
        client_x=clients[client_text(exchange)],
        broker_x=brokers.get(exchange.broker, WIDTH - 20.0),
        has_request=arrow.has_request,
        has_answer=ends,
        kind=kind,
        time=f"+{_time(arrow.at_ms - start_ms)}",
        api=name if arrow.has_request else f"answer to {api}",
        note=note,
        subject=subject if len(subject) <= room else f"{subject[: max(room - 1, 0)]}…",
    )


def _bars(arrows: Sequence[Arrow], brokers: dict[str, float]) -> list[WaitingBar]:
    """Return the bars of requests that wait, those of one broker beside each other."""
    starts: dict[int, int] = {}
    spans: list[tuple[int, int, str]] = []
    for number, arrow in enumerate(arrows):
        if arrow.has_request and not arrow.has_answer:
            starts[arrow.exchange.number] = number
            if arrow.exchange.duration_ms is None and not arrow.exchange.is_one_way:
                spans.append((number, len(arrows), arrow.exchange.broker))
        elif not arrow.has_request:
            start = starts.get(arrow.exchange.number, 0)
            spans.append((start, number, arrow.exchange.broker))
    bars: list[WaitingBar] = []
    ends: dict[str, list[int]] = {}
    for first, last, broker in sorted(spans):
        shelves = ends.setdefault(broker, [])
        shelf = next((at for at, end in enumerate(shelves) if end < first), len(shelves))
        shelves[shelf : shelf + 1] = [last]
        x = brokers.get(broker, WIDTH - 20.0) + 1 + min(shelf, 5) * _SPACE
        bars.append(WaitingBar(x, HEAD + first * ROW + 31, (last - first) * ROW))
    return bars


def _time(duration_ms: float) -> str:
    return f"{duration_ms / 1_000:.1f} s" if duration_ms >= 10_000 else f"{duration_ms:.0f} ms"
