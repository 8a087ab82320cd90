"""`ExchangeEnd`: the most time that an exchange over a blocking socket may take.

Requests to identity providers have one: for tokens (`token_endpoint`), and for the keys that sign
them.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


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
