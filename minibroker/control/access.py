"""Access to the control API: who may ask what. First station of a request behind `server`.

| token | `/health` | GET | POST, DELETE |
|---|---|---|---|
| the full one | yes | yes | yes |
| the one that reads | yes | yes | 403 |
| none, or a wrong one | yes | 401 | 401 |

Where no token is set, only programs on this machine are served. A page in a browser can reach
loopback too; it sends `Origin` or a foreign `Host`, and is refused. If the broker asks its clients
who they are, these programs may only look, and read no records: a reset, a fault or a later clock
may destroy data, and records are what a login is for.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control.messages import HttpError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.control.messages import HttpRequest

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_OPEN_TO_ALL: Final = "/health/"


class Access:
    """The tokens of one control API. Constant."""

    __slots__ = ("_full", "_is_secured", "_reading")

    def __init__(
        self,
        token: str | None = None,
        read_token: str | None = None,
        *,
        is_secured: Callable[[], bool] = bool,
    ) -> None:
        """`token` may do everything, `read_token` only read. Without both, only loopback is
        served. `is_secured`: returns whether the broker asks its clients who they are; without it
        no broker does.
        """
        self._is_secured = is_secured
        self._full = _header(token)
        self._reading = _header(read_token)

    def check(self, request: HttpRequest) -> None:
        """Raise HttpError if the caller may not ask this: 401 or 403."""
        if request.path.startswith(_OPEN_TO_ALL):
            return
        if self._full is None and self._reading is None:
            _check_local(request)
            if request.method != "GET" and self._is_secured():
                raise HttpError(
                    HTTPStatus.FORBIDDEN,
                    f"{request.method} {request.path:.100} needs a token, because the broker has"
                    " listeners or an authorizer that ask who a client is: set one with"
                    " --control-token @FILE",
                )
            return
        token = request.headers.get("authorization", "").encode()
        # Both are compared each time, so that the time tells nothing about either.
        is_full = self._full is not None and hmac.compare_digest(token, self._full)
        is_reading = self._reading is not None and hmac.compare_digest(token, self._reading)
        if is_full:
            return
        if not is_reading:
            raise HttpError(
                HTTPStatus.UNAUTHORIZED,
                "the header Authorization has to be: Bearer TOKEN, the one of --control-token, or "
                "to read the one of --control-read-token",
                (("WWW-Authenticate", "Bearer"),),
            )
        if request.method != "GET":
            missing = ", which is not set" if self._full is None else ""
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                f"this token only reads (GET): {request.method} needs the token of --control-token"
                f"{missing}",
            )

    def check_data(self, request: HttpRequest) -> None:
        """Raise HttpError(403) where records of a secured broker would be read without a token."""
        if self._full is None and self._reading is None and self._is_secured():
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                f"{request.method} {request.path:.100} needs a token, because the broker has"
                " listeners or an authorizer that ask who a client is: set one with"
                " --control-read-token @FILE",
            )


def _header(token: str | None) -> bytes | None:
    return None if token is None else f"Bearer {token}".encode()


def _check_local(request: HttpRequest) -> None:
    """Raise HttpError(403) for a page of a browser, and for a name that is not this machine."""
    host = request.headers.get("host", "localhost")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if "origin" in request.headers or name.lower() not in LOOPBACK:
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            "without a token only programs on this machine are served: neither pages of a "
            f"browser nor Host {host:.100}; set one with --control-token @FILE",
        )
