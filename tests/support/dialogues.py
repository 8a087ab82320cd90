"""A raw client: requests of any version on one connection, and their answers, byte by byte."""

from __future__ import annotations

from struct import pack
from typing import Any, Self

from minibroker.kafka.protocol.api_keys import load_messages
from minibroker.kafka.protocol.header import response_header_version
from minibroker.kafka.protocol.primitives import Reader
from tests.support.connection import FrameConnection
from tests.support.message_bytes import request_bytes

TIMEOUT_S = 20.0


def answer_of(request: Any, version: int, frame: bytes) -> Any:
    """Return the answer in a frame without its size."""
    _, response_class = load_messages(request.API_KEY)
    reader = Reader(frame, 4)
    if response_header_version(request.API_KEY, version):
        reader.skip_tagged_fields()
    return response_class.read(reader, version)


class RawClient(FrameConnection):
    """One connection that sends requests and reads their answers in order."""

    def __init__(self, address: str, client_id: str | None = "raw") -> None:
        host, _, port = address.rpartition(":")
        super().__init__(host, int(port), timeout_s=TIMEOUT_S)
        self._client_id = client_id
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def send(self, request: Any, version: int) -> int:
        """Send a request; return its correlation id."""
        self._number += 1
        frame = request_bytes(request, version, self._number, self._client_id)
        self.send_bytes(pack(">i", len(frame)) + frame)
        return self._number

    def ask(self, request: Any, version: int) -> Any:
        """Return the answer to a request."""
        self.send(request, version)
        return answer_of(request, version, self.receive_frame())
