"""The conversation of clients and brokers as a sequence diagram, a part of any page.

    exchanges ─► conversation() ─► JSON in the page ─► conversation.js draws the rows in view

A lifeline for each client and each broker; an arrow for a request and for its answer. A page that
has one includes `pages/conversation.css` and `pages/conversation.js` in its blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from minibroker.pages.page import macro

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from markupsafe import Markup

NO_ANSWER: Final = "no answer"
"""The end of a request whose answer did not come; `conversation.js` knows it."""
_LINES_MAX: Final = 2_000
"""Most lines that a reader without scripts gets."""


class Talk(Protocol):
    """A request and its answer: the fields of `trace.exchange.Exchange` that are drawn."""

    @property
    def number(self) -> int: ...
    @property
    def connection(self) -> int: ...
    @property
    def client_address(self) -> str: ...
    @property
    def broker(self) -> str: ...
    @property
    def api(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def correlation_id(self) -> int: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def at_ms(self) -> float: ...
    @property
    def duration_ms(self) -> float | None: ...
    @property
    def request_bytes(self) -> int: ...
    @property
    def answer_bytes(self) -> int | None: ...
    @property
    def subject(self) -> str: ...
    @property
    def error(self) -> str | None: ...
    @property
    def fault(self) -> str | None: ...
    @property
    def is_one_way(self) -> bool: ...


def conversation(exchanges: Iterable[Talk], texts: Mapping[int, str] | None = None) -> Markup:
    """Return the diagram, with its filters.

    Args:
        exchanges: in any order; the diagram sorts by time. A page of 100,000 stays quick.
        texts: number of an exchange → its full text, which a click on its row shows.
    """
    talks = list(exchanges)
    full_texts = texts or {}
    return macro(
        "pages/conversation.html",
        "diagram",
        rows=[[*_row(talk), full_texts.get(talk.number)] for talk in talks],
        lines=[_line(talk) for talk in talks[-_LINES_MAX:]],
        count=len(talks),
    )


def _row(talk: Talk) -> list[Any]:
    """Return the values in the order that `conversation.js` knows."""
    return [
        talk.number,
        talk.connection,
        talk.client_address,
        talk.broker,
        talk.api,
        talk.version,
        talk.correlation_id,
        talk.client_id,
        round(talk.at_ms, 3),
        None if talk.duration_ms is None else round(talk.duration_ms, 3),
        talk.request_bytes,
        talk.answer_bytes,
        talk.subject,
        talk.error,
        talk.fault,
        _end(talk) if talk.duration_ms is None else None,
    ]


def _end(talk: Talk) -> str:
    """Return how an exchange ends: its duration, or why it has none."""
    if talk.duration_ms is not None:
        return f"{talk.duration_ms:.1f} ms"
    return "no answer asked for" if talk.is_one_way else NO_ANSWER


def _line(talk: Talk) -> str:
    """Return an exchange in one line, for a reader without scripts."""
    parts = [
        f"{talk.api} v{talk.version}",
        f"{talk.client_id or talk.client_address} to {talk.broker}",
        talk.subject,
        talk.error or "",
        f"[{talk.fault}]" if talk.fault else "",
        _end(talk),
    ]
    return "  ".join(part for part in parts if part)
