"""A blocking exchange over HTTP: the connection to a URL, and the most time that it may take.

Requests to identity providers are such: for tokens (`token_endpoint`), and for the keys that sign
them.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.client import HTTP_PORT, HTTPS_PORT, HTTPConnection, HTTPSConnection
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl


def connection_to(url: str, connect_s: float, tls: ssl.SSLContext | None) -> HTTPConnection:
    """Return a connection to the host of an http or https URL, which is not made yet; it takes
    `connect_s` at most. Raises ValueError for a port that is none.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    # Without a port http.client takes the end of an IPv6 address for it.
    if parts.scheme.lower() == "https":
        return HTTPSConnection(host, parts.port or HTTPS_PORT, timeout=connect_s, context=tls)
    return HTTPConnection(host, parts.port or HTTP_PORT, timeout=connect_s)


class ExchangeEnd:
    """The end of a connection that lasts too long: a time-out of the socket begins anew with each
    byte. A thread waits for it.
    """

    def __init__(self, stream: socket.socket, after_s: float) -> None:
        self._stream = stream
        self._timer = threading.Timer(after_s, self._end)
        self._timer.daemon = True
        self.is_over = False

    def _end(self) -> None:
        self.is_over = True
        with suppress(OSError):  # the provider has ended it
            # Not the stream's own `shutdown`: that of TLS gives up the encryption first, and what
            # the other thread sends in between would leave as plain text.
            socket.socket.shutdown(self._stream, socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
