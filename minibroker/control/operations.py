"""An operation of the control API: a method of a path, with the shapes of what goes in and out.

The modules of `paths` have them, `api.OPERATIONS` is the table of all. A request finds its row
here, and `description` makes `openapi.json` from the rows.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from minibroker.control.messages import JSON, HttpError
from minibroker.control.shapes import Nothing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from minibroker.control.messages import EventStream, HttpRequest, Response

BODY_BYTES_MAX: Final = 64 << 10
NOT_RUNNING: Final = (HTTPStatus.SERVICE_UNAVAILABLE,)
OF_WAITS: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.GATEWAY_TIMEOUT)


def list_of(shape: Any) -> Any:
    """Return the type of a list of shapes."""
    return GenericAlias(list, (shape,))


class ControlCall(NamedTuple):
    """A request of an operation, checked."""

    request: HttpRequest
    part: str
    """The part of the path in braces, decoded; empty if the path has none."""
    query: Any
    """A value of the operation's shape."""
    body: Any
    """A value of the operation's shape."""


class ControlOperation(NamedTuple):
    """A method of a path."""

    name: str
    """The name of the function in clients."""
    method: str
    path: str
    """With a part in braces at most once: `/faults/{id}`."""
    summary: str
    run: Callable[[Any, ControlCall], Awaitable[Response | EventStream]]
    """A function of `paths`; its first argument is the scope of the API (`scope.ControlScope`)."""
    answer: Any
    """A shape, a list of one, or None: text."""
    query: type[Any] = Nothing
    body: type[Any] | None = None
    """None: any body is ignored; `str`: it is taken as it is."""
    raw_body: type[Any] | None = None
    """A shape that is decoded in place of `body`, where the rest is decoded in slices."""
    status: int = HTTPStatus.OK
    media_type: str = JSON
    failures: tuple[int, ...] = ()
    """Statuses that it may answer besides those of every operation."""
    body_types: tuple[str, ...] = (JSON,)
    body_bytes_max: int = BODY_BYTES_MAX
    is_open: bool = False
    """Nobody needs a token."""
    has_data: bool = False
    """It answers records: on a secured broker nobody reads them without a token."""

    @property
    def part_name(self) -> str:
        """Return the name in braces, or an empty text."""
        return self.path.partition("{")[2].partition("}")[0]


class Routes:
    """Operations by their paths. Constant."""

    def __init__(self, operations: Sequence[ControlOperation]) -> None:
        by_path: dict[str, dict[str, ControlOperation]] = {}
        for operation in operations:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        self._patterns = [
            (re.compile(re.sub(r"\\{\w+\\}", "([^/]+)", re.escape(path))), methods)
            for path, methods in by_path.items()
        ]

    def find(self, request: HttpRequest) -> tuple[ControlOperation, str]:
        """Return the operation, and the part of the path in braces. Raises HttpError."""
        if not request.path.startswith("/"):
            raise HttpError(
                HTTPStatus.BAD_REQUEST, f"the target {request.path:.100} is no path: expected /…"
            )
        for pattern, methods in self._patterns:
            if match := pattern.fullmatch(request.path):
                operation = methods.get(request.method)
                if operation is None:
                    allowed = ", ".join(methods)
                    raise HttpError(
                        HTTPStatus.METHOD_NOT_ALLOWED,
                        f"{request.method} {request.path:.100}: expected {allowed}",
                        (("Allow", allowed),),
                    )
                return operation, unquote("".join(match.groups()))
        raise HttpError(
            HTTPStatus.NOT_FOUND, f"there is no {request.path:.100}; / has a list of what there is"
        )
