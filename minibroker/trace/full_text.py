"""An exchange in full: every field of the request and of the answer, indented as in YAML.

`trace --full` prints it, and the page shows it below a chosen exchange. Records and the bytes of
consumer groups are opened (`embedded`), other bytes are hexadecimal digits. All of it is bounded.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from minibroker.kafka.foreign_text import printable, shorten
from minibroker.kafka.protocol.answer_error import error_name
from minibroker.kafka.protocol.message import Message
from minibroker.trace.batches import summarize
from minibroker.trace.embedded import assignment_text, record_lines, subscription_text
from minibroker.trace.json_lines import answer_version
from minibroker.trace.line import client_text, clock_text, outcome
from minibroker.trace.plain_values import Plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.trace.exchange import Exchange

LINES_MAX: Final = 5_000
"""Lines of one message."""
TEXT_MAX: Final = 1_000
"""Characters of one text."""
HEX_BYTES_MAX: Final = 64
_ERRORS: Final = frozenset({"errorCode", "partitionErrorCode"})
_OPENERS: Final = {
    "assignment": assignment_text,
    "memberAssignment": assignment_text,
    "metadata": subscription_text,
    "memberMetadata": subscription_text,
}
"""Field of bytes → the function that returns their text, or None."""


def full_lines(exchange: Exchange) -> Iterator[str]:
    """Yield the lines of an exchange, the first one without indentation."""
    yield (
        f"{clock_text(exchange.at_ms)} {exchange.api} v{exchange.version}"
        f" #{exchange.number}, correlation id {exchange.correlation_id}"
    )
    client = client_text(exchange)
    address = "" if client == exchange.client_address else f" ({exchange.client_address})"
    yield f"  client: {client}{address}, connection {exchange.connection}"
    yield f"  broker: {exchange.broker}"
    yield f"  outcome: {outcome(exchange)}"
    if exchange.subject:
        yield f"  subject: {exchange.subject}"
    yield f"  request: {exchange.request_bytes} B"
    yield from message_lines(exchange.request, exchange.version)
    if exchange.answer_bytes is not None:
        yield f"  answer: {exchange.answer_bytes} B"
        yield from message_lines(exchange.answer, answer_version(exchange))


def message_lines(message: Message | None, version: int) -> Iterator[str]:
    """Yield the fields of a message, four columns in; at most `LINES_MAX` lines."""
    if message is None:
        return
    content = to_plain(message, version, _of_bytes)
    for number, line in enumerate(islice(_lines(content, "    "), LINES_MAX + 1)):
        yield line if number < LINES_MAX else f"    … ({LINES_MAX} lines are shown)"


def _lines(content: dict[str, Plain], indent: str) -> Iterator[str]:
    for name, value in content.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, list) and value:
            if all(isinstance(item, int) for item in value):
                yield f"{indent}{name}: [{', '.join(map(str, value[:TEXT_MAX]))}]"
                continue
            yield f"{indent}{name}:"
            for item in value:
                yield from _item(item, indent + "  ")
        elif name in _ERRORS and value and isinstance(value, int):
            yield f"{indent}{name}: {value} {error_name(value)}"
        else:
            yield f"{indent}{name}: {_text(value)}"


def _item(item: Plain, indent: str) -> Iterator[str]:
    """Yield the lines of an item of a list; a dash stands before the first."""
    if not isinstance(item, dict) or not item:
        yield f"{indent}- {_text(item)}"
        return
    for number, line in enumerate(_lines(item, indent + "  ")):
        yield line if number else f"{indent}- {line[len(indent) + 2 :]}"


def _text(value: Plain) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value in ("", [], {}):
        return {str: '""', list: "[]", dict: "{}"}[type(value)]
    return printable(shorten(str(value), TEXT_MAX))


def _of_bytes(name: str, data: bytes) -> Plain:
    """Return what a person wants to see of bytes."""
    if name == "records":
        return {str(summarize(data)): list[Plain](record_lines(data))}
    opener = _OPENERS.get(name)
    text = None if opener is None else opener(data)
    if text is not None:
        return text
    more = "…" if len(data) > HEX_BYTES_MAX else ""
    return f"{len(data)} B 0x{bytes(data[:HEX_BYTES_MAX]).hex()}{more}"
