"""The routes of the registry: a method and a path ─► an operation, and the parts of the path.

GET /subjects/orders-value/versions/latest
GET /contexts/.staging/subjects/orders-value/versions/latest     the same in a context
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from minibroker.registry.errors import RegistryError
from minibroker.registry.subjects import DEFAULT, context_named

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from minibroker.control.messages import HttpRequest
    from minibroker.registry.state import RegistryState

BODY_BYTES_MAX: Final = 2 << 20
"""A schema of 1 MB whose quotation marks are all escaped."""
SMALL_BODY_BYTES: Final = 64 << 10


class RegistryCall(NamedTuple):
    """A request of an operation."""

    request: HttpRequest
    parts: dict[str, str]
    """Name in braces → part of the path, decoded."""
    context: str
    body: bytearray

    @property
    def query(self) -> dict[str, str]:
        """Return the query."""
        return self.request.query


class RegistryOperation(NamedTuple):
    """A method of a path."""

    method: str
    path: str
    run: Callable[[Any, RegistryCall, RegistryState], Awaitable[Any]]
    """Gets the API, the call, and the state. Returns a value for JSON, a Response, or a function
    that makes the value in a thread.
    """
    is_write: bool = False
    """The registry of the broker that leads the topic does it."""

    @property
    def words(self) -> list[str]:
        """Return the parts of the path."""
        return self.path.split("/")[1:]


class Paths:
    """The table of operations, by the number of parts of their paths. Constant."""

    def __init__(self, operations: Sequence[RegistryOperation]) -> None:
        self._by_length: dict[int, list[RegistryOperation]] = {}
        for operation in operations:
            self._by_length.setdefault(len(operation.words), []).append(operation)

    def find(self, request: HttpRequest) -> tuple[RegistryOperation, dict[str, str], str]:
        """Return the operation, the parts of its path, and the context. Raises RegistryError: 404
        for another path, 405 for another method.
        """
        # OPTIONS * has a path without a part.
        words = [unquote(word) for word in request.path.split("/")[1:]] or [request.path]
        if len(words) > 1 and not words[-1]:
            words.pop()
        context = DEFAULT
        if words[0] == "contexts" and len(words) > 1:
            context, words = context_named(words[1]), words[2:] or [""]
        methods = []
        for operation in self._by_length.get(len(words), ()):
            parts = _match(operation.words, words)
            if parts is not None:
                if operation.method == request.method:
                    return operation, parts, context
                methods.append(operation.method)
        if methods:
            allow = (("Allow", ", ".join(sorted(methods))),)
            raise RegistryError(HTTPStatus.METHOD_NOT_ALLOWED, "HTTP 405 Method Not Allowed", allow)
        raise RegistryError(HTTPStatus.NOT_FOUND, "HTTP 404 Not Found")


def _match(pattern: Sequence[str], words: Sequence[str]) -> dict[str, str] | None:
    """Return the parts of a path, None if it is another one."""
    parts: dict[str, str] = {}
    for name, word in zip(pattern, words, strict=True):
        if name.startswith("{"):
            if not word:
                return None
            parts[name[1:-1]] = word
        elif name != word:
            return None
    return parts
