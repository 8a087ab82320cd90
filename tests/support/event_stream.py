"""Reads a stream of server-sent events, as a page does with `fetch`."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterator


class ServerEvent(NamedTuple):
    """One event."""

    name: str
    data: Any


class EventStreamReader:
    """A stream of the control API, for the thread of a test."""

    def __init__(self, port: int, path: str, headers: dict[str, str] | None = None) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._connection.request("GET", path, headers=headers or {})
        self.response = self._connection.getresponse()

    def __enter__(self) -> Self:
        assert self.response.status == 200, self.response.read()
        assert self.next("hello")
        return self

    def __exit__(self, *_: object) -> None:
        sock = self._connection.sock
        self.response.close()
        self._connection.close()
        if sock is not None:
            sock.close()

    def events(self) -> Iterator[ServerEvent]:
        """Yield the events that come; comments are left out."""
        fields: dict[str, str] = {}
        while line := self.response.readline():
            text = line.decode().rstrip("\n")
            if text.startswith(":"):
                continue
            if text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif fields:
                yield ServerEvent(fields["event"], json.loads(fields["data"]))
                fields = {}

    def next(self, name: str) -> Any:
        """Return the data of the next event of this name."""
        return next(event.data for event in self.events() if event.name == name)
