"""A raw client: any request at any version, or any bytes at all, over one blocking socket.

Headers are written out here by hand; only the bodies go through a codec. Requests are named by
their spec (`create_topics`) and given as plain values: nested structs are mappings, a missing field
has the protocol's default. Answers have the same form.
"""

from __future__ import annotations

import struct
from typing import Any

from tests.support.codec import ApiCodec, codec_of
from tests.support.connection import FrameConnection

TIMEOUT_SECONDS = 180.0
API_VERSIONS_KEY = 18

Answer = dict[str, Any]


class WireClient(FrameConnection):
    """One connection, not for several threads."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str | None = "wire",
        timeout_s: float = TIMEOUT_SECONDS,
        source: str | None = None,
    ) -> None:
        super().__init__(host, port, timeout_s=timeout_s, source=source)
        self.client_id = client_id
        self.correlation_id = 0

    def call(self, api: str, version: int, /, **fields: Any) -> Answer:
        """Send one request and wait for its answer.

        Raises:
            ConnectionError: the broker closed instead of answering.
            TimeoutError: neither within the time-out.
        """
        codec = codec_of(api)
        correlation_id = self.send(api, version, **fields)
        return self.receive(codec, version, correlation_id)

    def send(self, api: str, version: int, /, **fields: Any) -> int:
        """Send one request without waiting; return its correlation id."""
        codec = codec_of(api)
        self.correlation_id += 1
        header = request_header(
            codec.api_key, version, self.correlation_id, self.client_id, codec.is_flexible(version)
        )
        self.send_frame(header + codec.encode_request(version, fields))
        return self.correlation_id

    def receive(self, codec: ApiCodec, version: int, correlation_id: int) -> Answer:
        """Return the next answer on the connection, which must carry `correlation_id`."""
        frame = self.receive_frame()
        (answered_id,) = struct.unpack_from(">i", frame)
        assert answered_id == correlation_id, (
            f"answer to {answered_id} came instead of {correlation_id}"
        )
        position = 4
        if codec.is_flexible(version) and codec.api_key != API_VERSIONS_KEY:
            assert frame[position] == 0, "unexpected tagged fields in a response header"
            position += 1
        return codec.decode_response(version, frame[position:])

    def send_frame(self, body: bytes) -> None:
        """Send `body` with its length in front."""
        self.send_bytes(struct.pack(">i", len(body)) + body)

    def is_closed_by_peer(self) -> bool:
        """Wait for the end of the stream or for bytes; return True for the end."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def request_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None, is_flexible: bool
) -> bytes:
    """Return request header 1, or 2 (with empty tagged fields) when `is_flexible`."""
    name = b"" if client_id is None else client_id.encode()
    head = struct.pack(
        ">hhih", api_key, version, correlation_id, -1 if client_id is None else len(name)
    )
    return head + name + (b"\x00" if is_flexible else b"")
