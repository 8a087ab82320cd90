"""An exchange as a line: time, API, version, client, broker, subject, error, duration."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from minibroker.kafka.foreign_text import printable

if TYPE_CHECKING:
    from minibroker.trace.exchange import Exchange

CLIENT_MAX: Final = 40
"""Characters of a client id in a line."""


def to_line(exchange: Exchange) -> str:
    """Return the exchange as one line.

    `12:03:04.123 Produce v9 shop → 127.0.0.1:9092: orders-0 3 records 210 B → orders-0 @120:
    ok, 3.2 ms`
    """
    subject = f" {exchange.subject}:" if exchange.subject else ""
    return (
        f"{clock_text(exchange.at_ms)} {exchange.api} v{exchange.version} {client_text(exchange)} "
        f"→ {exchange.broker}:{subject} {outcome(exchange)}"
    )


def outcome(exchange: Exchange) -> str:
    """Return the error or `ok`, the duration, and the fault that a rule made of it."""
    if exchange.answer_bytes is None:
        text = "no answer asked for" if exchange.is_one_way else "no answer"
    else:
        text = exchange.error or "ok"
        if exchange.duration_ms is not None:
            text += f", {exchange.duration_ms:.1f} ms"
    return f"{text}, fault: {printable(exchange.fault)}" if exchange.fault else text


def client_text(exchange: Exchange) -> str:
    """Return the client id, or the address of a client without one."""
    client_id = exchange.client_id
    if not client_id:
        return exchange.client_address
    return printable(
        client_id if len(client_id) <= CLIENT_MAX else f"{client_id[: CLIENT_MAX - 1]}…"
    )


def clock_text(at_ms: float) -> str:
    """Return the time of the day, UTC, in milliseconds; `-` for a time that no calendar has."""
    try:
        second, microsecond = divmod(round(at_ms * 1_000), 1_000_000)
        return f"{_second_text(second)}.{microsecond // 1_000:03d}"
    except (OverflowError, ValueError, OSError):
        return "-"


@lru_cache(maxsize=16)
def _second_text(second: int) -> str:
    """Return the time of the day; thousands of requests have the same."""
    return datetime.fromtimestamp(second, UTC).strftime("%H:%M:%S")
