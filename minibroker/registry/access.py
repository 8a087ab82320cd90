"""Access to the registry: HTTP basic authentication, as Confluent's `authentication.method=BASIC`.

Without users everybody who reaches the address is served. On loopback those are programs of this
machine; a page in a browser reaches loopback too, sends `Origin` or a foreign `Host`, and is
refused.
"""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control.messages import LOOPBACK
from minibroker.registry.errors import RegistryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.control.messages import HttpRequest

_REALM: Final = (("WWW-Authenticate", 'Basic realm="minibroker"'),)


class RegistryAccess:
    """The users of one registry. Constant."""

    __slots__ = ("_is_local", "_login", "_passwords")

    def __init__(self, users: Mapping[str, str], *, is_local: bool) -> None:
        """`users`: name → password. `is_local`: the address is one of loopback."""
        self._passwords = {name.encode(): password.encode() for name, password in users.items()}
        self._is_local = is_local
        first = next(iter(users.items()), None)
        self._login = None if first is None else _basic(*first)

    def check(self, request: HttpRequest) -> None:
        """Raise RegistryError if the caller may not ask: 401 or 403."""
        if not self._passwords:
            if self._is_local:
                _check_no_page(request)
            return
        name, password = _credentials(request.headers.get("authorization", ""))
        from hmac import compare_digest  # noqa: PLC0415  with OpenSSL, half a MB: only for users

        expected = self._passwords.get(name)
        # A comparison each time, so that the time does not tell which names there are.
        is_right = compare_digest(password, password if expected is None else expected)
        if expected is None or not is_right:
            raise RegistryError(HTTPStatus.UNAUTHORIZED, "Unauthorized", _REALM)

    def signed(self, request: HttpRequest) -> HttpRequest:
        """Return the request of a caller that another API of this process has let in, as one of the
        first user: the registries of other brokers let it in, too.
        """
        if self._login is None:
            return request
        return request._replace(headers={**request.headers, "authorization": self._login})


def _basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def _credentials(header: str) -> tuple[bytes, bytes]:
    """Return name and password of a header; both are empty if it has none."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        return b"", b""
    try:
        name, _, password = base64.b64decode(text, validate=True).partition(b":")
    except ValueError:  # no base 64, or no ASCII
        return b"", b""
    return name, password


def _check_no_page(request: HttpRequest) -> None:
    """Raise RegistryError(403) for a page of a browser, and for a name that is not this machine."""
    host = request.headers.get("host", "localhost")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if "origin" in request.headers or name.lower() not in LOOPBACK:
        raise RegistryError(
            HTTPStatus.FORBIDDEN,
            "without users only programs on this machine are served: neither pages of a browser"
            f" nor Host {host:.100}; add users with --registry-user @FILE",
        )
