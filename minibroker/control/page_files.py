"""The files of the console's page: package data of `control/console`, read once.

Everybody gets them, without a token: they are the same in each installation, and tell nothing of
the broker. `POLICY` lets the page load and ask nothing but this server, and no other page frame it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from minibroker.control.messages import HttpError, Response

if TYPE_CHECKING:
    from minibroker.control.messages import HttpRequest

INDEX: Final = "index.html"
PATH: Final = "/console/"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
_HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-cache"),
    ("Vary", "Accept"),
)
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}
_NAME: Final = re.compile(r"[a-z0-9_-]{1,40}\.([a-z]{2,4})")

_answers: dict[str, Response] = {}
"""File → its answer. The loop owns it."""


def is_page(request: HttpRequest) -> bool:
    """Return whether a request is for the page or a file of it, and so for nobody's data."""
    if request.method != "GET":
        return False
    if request.path == "/":
        return "text/html" in request.headers.get("accept", "")
    return request.path.startswith(PATH)


async def page_file(name: str, request: HttpRequest) -> Response:
    """Return a file of the page; 304 without it where the browser has it. Raises HttpError(404)."""
    response = _answers.get(name)
    if response is None:
        response = _answers[name] = await asyncio.to_thread(_load, name)
    (_, tag) = response.headers[-1]
    if tag in request.headers.get("if-none-match", ""):
        return Response(HTTPStatus.NOT_MODIFIED, b"", response.content_type, response.headers)
    return response


def _load(name: str) -> Response:
    """Return the answer with a file. Raises HttpError(404)."""
    match = _NAME.fullmatch(name)
    kind = _TYPES.get(match.group(1)) if match is not None else None
    file = files("minibroker.control").joinpath("console", name)
    if kind is None or not file.is_file():
        raise HttpError(HTTPStatus.NOT_FOUND, f"the page has no file {name!r:.100}")
    body = file.read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Response(HTTPStatus.OK, body, kind, (*_HEADERS, ("ETag", tag)))
