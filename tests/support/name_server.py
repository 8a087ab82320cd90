"""A name server that answers when a test says so."""

from __future__ import annotations

import socket
import threading
from typing import Any, Final

from minibroker.broker.resolver import is_address

TIMEOUT_S: Final = 60


class SlowNameServer:
    """Stands for `socket.getaddrinfo`: a name has to wait for `may_answer`, an address does not."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """Those that were asked for, oldest first."""
        self.may_answer = threading.Event()
        self._real_answer = socket.getaddrinfo

    def __call__(self, name: str | bytes, *rest: Any, **options: Any) -> list[Any]:
        """Return an answer as `socket.getaddrinfo` does. Raises OSError for `nowhere`."""
        text = name.decode() if isinstance(name, bytes) else name
        if is_address(text):
            return self._real_answer(name, *rest, **options)
        self.names.append(text)
        assert self.may_answer.wait(TIMEOUT_S)
        if text == "nowhere":
            raise socket.gaierror("not known")
        return [
            (socket.AF_INET6, None, None, "", ("::1", 0, 0, 0)),
            (socket.AF_INET, None, None, "", ("127.0.0.1", 0)),
        ]
