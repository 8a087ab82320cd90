"""Exchanges as JSON lines, and exchanges of such lines.

    {"number":1,"connection":1,"client":"127.0.0.1:50000","broker":"127.0.0.1:9092",
     "api":"Produce","version":9,"correlationId":7,"clientId":"shop","atMs":1700000000123.0,
     "durationMs":3.2,"requestBytes":120,"answerBytes":60,"subject":"orders-0 …","error":null,
     "fault":null,"request":{…},"answer":{…}}

in one line each. A line that is read back gives an equal exchange, passwords and keys aside
(`plain_values`). `trace --json` and the proxy write these lines; `scripted` answers from them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import MinibrokerError, ProtocolError
from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS, Api, load_messages
from minibroker.kafka.protocol.json_form import from_fields
from minibroker.trace.exchange import Exchange
from minibroker.trace.plain_values import HIDDEN, to_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minibroker.kafka.protocol.message import Message

LINE_CHARACTERS_MAX: Final = 256 << 20
"""A longer line is no exchange: base64 of the largest frame has fewer."""

_API_OF_NAME: Final[dict[str, Api]] = {api.name: api for api in APIS.values()}


class DialogueError(MinibrokerError):
    """A line that is no exchange; the message says which, and why."""


def answer_version(exchange: Exchange) -> int:
    """Return the version of an exchange's answer: 0 for an ApiVersions that a broker refused."""
    api = _API_OF_NAME.get(exchange.api)
    if api is None or api.key != API_VERSIONS:
        return exchange.version
    error = getattr(exchange.answer, "error_code", 0)
    return 0 if error == ErrorCode.UNSUPPORTED_VERSION else exchange.version


def to_object(exchange: Exchange) -> dict[str, Any]:
    """Return the exchange as the object of its line."""
    request, answer = exchange.request, exchange.answer
    return {
        "number": exchange.number,
        "connection": exchange.connection,
        "client": exchange.client_address,
        "broker": exchange.broker,
        "api": exchange.api,
        "version": exchange.version,
        "correlationId": exchange.correlation_id,
        "clientId": exchange.client_id,
        "atMs": exchange.at_ms,
        "durationMs": exchange.duration_ms,
        "requestBytes": exchange.request_bytes,
        "answerBytes": exchange.answer_bytes,
        "subject": exchange.subject,
        "error": exchange.error,
        "fault": exchange.fault,
        "request": None if request is None else to_plain(request, exchange.version),
        "answer": None if answer is None else to_plain(answer, answer_version(exchange)),
    }


def to_json(exchange: Exchange) -> str:
    """Return the line of an exchange, without its end."""
    # Half a surrogate pair has no UTF-8: only ASCII can be written anywhere.
    return json.dumps(to_object(exchange), separators=(",", ":"))


def read_exchanges(lines: Iterable[str]) -> Iterator[Exchange]:
    """Yield the exchanges of lines; empty lines are passed over.

    Raises DialogueError for a line that is no exchange.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield from_json(line)
        except DialogueError as error:
            raise DialogueError(f"line {number}: {error}") from None


def from_json(line: str) -> Exchange:
    """Return the exchange of a line. Raises DialogueError."""
    if len(line) > LINE_CHARACTERS_MAX:
        raise DialogueError(f"{len(line)} characters, expected {LINE_CHARACTERS_MAX} at most")
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        raise DialogueError("no JSON") from None
    if not isinstance(content, dict):
        raise DialogueError("expected an object")
    exchange = Exchange(
        number=_number(content, "number"),
        connection=_number(content, "connection"),
        client_address=_text(content, "client"),
        broker=_text(content, "broker"),
        api=_text(content, "api"),
        version=_number(content, "version"),
        correlation_id=_number(content, "correlationId"),
        client_id=_optional_text(content, "clientId"),
        at_ms=_moment(content, "atMs"),
        duration_ms=None if content.get("durationMs") is None else _moment(content, "durationMs"),
        request_bytes=_number(content, "requestBytes"),
        answer_bytes=None
        if content.get("answerBytes") is None
        else _number(content, "answerBytes"),
        subject=_text(content, "subject"),
        error=_optional_text(content, "error"),
        fault=_optional_text(content, "fault"),
    )
    return _with_messages(exchange, content.get("request"), content.get("answer"))


def _with_messages(exchange: Exchange, request: object, answer: object) -> Exchange:
    """Return the exchange with its messages. Raises DialogueError."""
    if request is None and answer is None:
        return exchange
    api = _API_OF_NAME.get(exchange.api)
    if api is None or not api.min_version <= exchange.version <= api.max_version:
        raise DialogueError(f"{exchange.api!r:.60} version {exchange.version} is not known")
    request_class, answer_class = load_messages(api.key)
    try:
        if answer is not None:
            version = exchange.version
            if api.key == API_VERSIONS and _error_of(answer) == ErrorCode.UNSUPPORTED_VERSION:
                version = 0
            message: Message = from_fields(answer_class, _readable(answer), version)
            exchange = exchange._replace(answer=message)
        if request is not None:
            message = from_fields(request_class, _readable(request), exchange.version)
            exchange = exchange._replace(request=message)
    except ProtocolError as error:
        raise DialogueError(str(error)) from None
    return exchange


def _error_of(answer: object) -> object:
    return answer.get("errorCode") if isinstance(answer, dict) else None


def _readable(content: object) -> object:
    """Return the fields without the hidden ones, which are read as their defaults."""
    if isinstance(content, dict):
        return {name: _readable(value) for name, value in content.items() if value != HIDDEN}
    if isinstance(content, list):
        return [_readable(item) for item in content]
    return content


def _number(content: dict[str, Any], name: str) -> int:
    value = content.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise DialogueError(f"{name}: expected a number")


def _moment(content: dict[str, Any], name: str) -> float:
    value = content.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise DialogueError(f"{name}: expected a number of ms")


def _text(content: dict[str, Any], name: str) -> str:
    value = content.get(name)
    if isinstance(value, str):
        return value
    raise DialogueError(f"{name}: expected a text")


def _optional_text(content: dict[str, Any], name: str) -> str | None:
    return None if content.get(name) is None else _text(content, name)
