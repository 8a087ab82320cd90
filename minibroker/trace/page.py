"""The page of a conversation: one HTML file with the sequence diagram, which fetches nothing.

    exchanges ─► ConversationPage.add ─► render ─► page.html, on the parts of `pages/`

`trace --html` writes it. All that stays in memory is bounded: exchanges lose their messages when
they are added, and only the first ones have their full text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pages.conversation import conversation
from minibroker.pages.page import render
from minibroker.trace.batches import count_of, size_text
from minibroker.trace.full_text import full_lines
from minibroker.trace.line import clock_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.trace.exchange import Exchange

EXCHANGES_MAX: Final = 100_000
"""Exchanges of a page; later ones are counted."""
TEXT_CHARACTERS_MAX: Final = 16_000_000
"""Characters of full texts in a page."""
TEXT_LINES_MAX: Final = 300
"""Lines of the full text of an exchange."""


class ApiRow(NamedTuple):
    """The figures of one API, as texts."""

    api: str
    requests: int
    errors: int
    median: str
    slowest: str
    sent_bytes: str
    received_bytes: str


class ConversationPage:
    """Collects exchanges, and makes the page of them. Used by one thread."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._exchanges: list[Exchange] = []
        self._texts: dict[int, str] = {}
        self._text_characters = 0
        self._left_out = 0

    def add(self, exchange: Exchange) -> None:
        """Add an exchange; behind `EXCHANGES_MAX` it is only counted."""
        if len(self._exchanges) >= EXCHANGES_MAX:
            self._left_out += 1
            return
        if self._text_characters < TEXT_CHARACTERS_MAX:
            text = _text(exchange)
            self._texts[exchange.number] = text
            self._text_characters += len(text)
        self._exchanges.append(exchange._replace(request=None, answer=None))

    def render(self) -> str:
        """Return the page."""
        notes = []
        if self._left_out:
            notes.append(
                f"Of {len(self._exchanges) + self._left_out:,} requests these are the first "
                f"{len(self._exchanges):,}: choose fewer with --api, --client, --topic or --errors."
            )
        if len(self._texts) < len(self._exchanges):
            notes.append(f"The first {len(self._texts):,} requests have all their fields here.")
        return render(
            "trace/page.html",
            title=self._title,
            facts=list(self._facts()),
            notes=notes,
            diagram=conversation(self._exchanges, self._texts),
            apis=self._apis(),
        )

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Yield names and values of the figures above the diagram."""
        exchanges = self._exchanges
        yield "Requests", f"{len(exchanges) + self._left_out:,}"
        yield "Connections", f"{len({exchange.connection for exchange in exchanges}):,}"
        yield "Errors", f"{sum(exchange.error is not None for exchange in exchanges):,}"
        yield "Faults", f"{sum(exchange.fault is not None for exchange in exchanges):,}"
        if exchanges:
            first = min(exchange.at_ms for exchange in exchanges)
            last = max(exchange.at_ms + (exchange.duration_ms or 0) for exchange in exchanges)
            yield "Begins (UTC)", clock_text(first)
            yield "Takes", _time(last - first)

    def _apis(self) -> list[ApiRow]:
        """Return the figures of each API, the most frequent first."""
        by_api: dict[str, list[Exchange]] = {}
        for exchange in self._exchanges:
            by_api.setdefault(exchange.api, []).append(exchange)
        return [
            _api_row(api, exchanges)
            for api, exchanges in sorted(by_api.items(), key=lambda item: -len(item[1]))
        ]


def _api_row(api: str, exchanges: list[Exchange]) -> ApiRow:
    durations = sorted(
        exchange.duration_ms for exchange in exchanges if exchange.duration_ms is not None
    )
    return ApiRow(
        api=api,
        requests=len(exchanges),
        errors=sum(exchange.error is not None for exchange in exchanges),
        median=_time(durations[len(durations) // 2]) if durations else "–",
        slowest=_time(durations[-1]) if durations else "–",
        sent_bytes=size_text(sum(exchange.request_bytes for exchange in exchanges)),
        received_bytes=size_text(sum(exchange.answer_bytes or 0 for exchange in exchanges)),
    )


def _text(exchange: Exchange) -> str:
    """Return the full text of an exchange, shortened."""
    lines: list[str] = []
    for line in full_lines(exchange):
        if len(lines) == TEXT_LINES_MAX:
            lines.append(f"… ({count_of(TEXT_LINES_MAX, 'line')} are shown)")
            break
        lines.append(line)
    return "\n".join(lines)


def _time(duration_ms: float) -> str:
    return f"{duration_ms / 1_000:.1f} s" if duration_ms >= 10_000 else f"{duration_ms:.1f} ms"
