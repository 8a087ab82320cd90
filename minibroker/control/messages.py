"""A request of the control API and its answer, both whole; `server` reads and writes them."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final, NamedTuple

JSON: Final = "application/json"


class HttpRequest(NamedTuple):
    """A request, read whole."""

    method: str
    """`GET` for `HEAD`, too."""
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class Response(NamedTuple):
    """An answer, written whole."""

    status: int
    body: bytes | bytearray
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class HttpError(Exception):
    """An answer of 4xx or 5xx with a sentence that says what to do."""

    def __init__(
        self, status: int, sentence: str, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers

    def response(self) -> Response:
        """Return it as JSON: `{"error": …}`."""
        return json_response({"error": str(self)}, self.status)._replace(headers=self.headers)


def json_response(value: Any, status: int = HTTPStatus.OK) -> Response:
    """Return a value as a line of JSON."""
    return Response(status, json.dumps(value).encode() + b"\n")
