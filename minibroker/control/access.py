"""Access to the control API: who may ask what. First station of a request behind `server`.

| token | `/health` | GET | POST, DELETE |
|---|---|---|---|
| the full one | yes | yes | yes |
| the one that reads | yes | yes | 403 |
| none, or a wrong one | yes | 401 | 401 |

Where no token is set, only programs on this machine are served, and the page of this server. The
page of another server can reach loopback too: the browser says so (`Sec-Fetch-Site`, `Origin`), or
it came by a foreign name (`Host`: DNS rebinding), and it is refused. If the broker asks its clients
who they are, callers without a token may only look, and read no records: a reset, a fault or a
later clock may destroy data, and records are what a login is for.

The files of the page have nothing to hide, and everybody gets them (`page_files`). With
`--console-read-only` a page changes nothing, whatever its token; other programs do.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control.messages import LOOPBACK, HttpError
from minibroker.control.page_files import is_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.control.messages import HttpRequest

_OPEN_TO_ALL: Final = "/health/"


class Access:
    """The tokens of one control API. Constant."""

    __slots__ = ("_full", "_is_secured", "_page_only_reads", "_reading")

    def __init__(
        self,
        token: str | None = None,
        read_token: str | None = None,
        *,
        is_secured: Callable[[], bool] = bool,
        page_only_reads: bool = False,
    ) -> None:
        """`token` may do everything, `read_token` only read. Without both, only loopback is
        served. `is_secured`: returns whether the broker asks its clients who they are; without it
        no broker does. `page_only_reads`: no page of a browser changes anything.
        """
        self._is_secured = is_secured
        self._page_only_reads = page_only_reads
        self._full = _header(token)
        self._reading = _header(read_token)

    def check(self, request: HttpRequest) -> None:
        """Raise HttpError if the caller may not ask this: 401 or 403."""
        if request.path.startswith(_OPEN_TO_ALL) or is_page(request):
            return
        is_full = self._is_full(request)
        if request.method != "GET":
            reason = self._why_not(request, is_full=is_full)
            if reason is not None:
                raise HttpError(HTTPStatus.FORBIDDEN, reason)

    def _is_full(self, request: HttpRequest) -> bool:
        """Return whether the caller has the full token, or needs none. Raises HttpError for one who
        may not even read.
        """
        if self._full is None and self._reading is None:
            _check_local(request)
            return True
        token = request.headers.get("authorization", "").encode()
        # Both are compared each time, so that the time tells nothing about either.
        is_full = self._full is not None and hmac.compare_digest(token, self._full)
        is_reading = self._reading is not None and hmac.compare_digest(token, self._reading)
        if not is_full and not is_reading:
            raise HttpError(
                HTTPStatus.UNAUTHORIZED,
                "the header Authorization has to be: Bearer TOKEN, the one of --control-token, or "
                "to read the one of --control-read-token",
                (("WWW-Authenticate", "Bearer"),),
            )
        return is_full

    def why_read_only(self, request: HttpRequest) -> str | None:
        """Return why a caller that may read cannot change anything, None if it can. Raises
        HttpError for one who may not read.
        """
        return self._why_not(request, is_full=self._is_full(request))

    def _why_not(self, request: HttpRequest, *, is_full: bool) -> str | None:
        if not is_full:
            act = "changing something" if request.method == "GET" else request.method
            missing = ", which is not set" if self._full is None else ""
            return f"this token only reads (GET): {act} needs the token of --control-token{missing}"
        if self._page_only_reads and _is_of_browser(request):
            return "this page only reads: minibroker was started with --console-read-only"
        if not self.has_token and self._is_secured():
            act = f"{request.method} {request.path:.100}"
            return _needs_token(
                "changing something" if request.method == "GET" else act, "--control-token"
            )
        return None

    @property
    def has_token(self) -> bool:
        """Return whether callers need a token."""
        return self._full is not None or self._reading is not None

    def may_read_data(self) -> bool:
        """Return whether those that may read get records, too."""
        return self.has_token or not self._is_secured()

    def check_data(self, request: HttpRequest) -> None:
        """Raise HttpError(403) where records of a secured broker would be read without a token."""
        if not self.may_read_data():
            act = f"{request.method} {request.path:.100}"
            raise HttpError(HTTPStatus.FORBIDDEN, _needs_token(act, "--control-read-token"))


def _header(token: str | None) -> bytes | None:
    return None if token is None else f"Bearer {token}".encode()


def _needs_token(act: str, option: str) -> str:
    return (
        f"{act} needs a token, because the broker has listeners or an authorizer that ask who a"
        f" client is: set one with {option} @FILE"
    )


def _is_of_browser(request: HttpRequest) -> bool:
    return "sec-fetch-site" in request.headers or "origin" in request.headers


def _check_local(request: HttpRequest) -> None:
    """Raise HttpError(403) for the page of another server, and for a name that is not this
    machine.
    """
    host = request.headers.get("host", "localhost")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.lower() not in LOOPBACK or _is_foreign(request, host):
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            "without a token only programs on this machine are served: neither pages of another "
            f"server nor Host {host:.100}; set one with --control-token @FILE",
        )


def _is_foreign(request: HttpRequest, host: str) -> bool:
    """Return whether the page of another server asks. A browser says where a request comes from;
    `none` is a user who typed the address, and changes nothing.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    if site != "same-origin" and not (site == "none" and request.method == "GET"):
        return True
    origin = request.headers.get("origin")
    return origin is not None and origin.lower().partition("://")[2] != host.lower()
