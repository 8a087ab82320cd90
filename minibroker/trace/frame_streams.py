"""Frames of one direction of a connection: a length of four bytes, and so many bytes.

Third station of a capture, behind `tcp_streams`. A hole inside a frame cuts that frame; a hole over
a frame's end, and a capture that begins in the middle, leave no place where a frame begins. Then
`looks_right` finds the next one at the start of a segment: brokers and clients send whole frames.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from minibroker.kafka.protocol.api_keys import APIS
from minibroker.trace.decode import read_head, read_request

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from minibroker.trace.decode import Frame
    from minibroker.trace.tcp_streams import StreamPiece

FRAME_BYTES_MAX: Final = 200 << 20
"""A larger length is no length: brokers take 100 MB, and answer a fetch with somewhat more."""
CLIENT_ID_MAX: Final = 1_000
_LENGTH: Final = Struct(">i")
_REQUEST_START: Final = Struct(">ihhih")
REQUEST_START_BYTES: Final = _REQUEST_START.size
"""Bytes by which a request can be recognized: length, API, version, ids."""
_CORRELATION: Final = Struct(">ii")


class FrameStream:
    """The frames of one direction."""

    __slots__ = ("_buffer", "_is_lost", "_looks_right", "_skipped_bytes", "lost_bytes")

    def __init__(self, looks_right: Callable[[bytes], bool], *, is_lost: bool) -> None:
        """Take the test for the start of a frame; `is_lost`: the first byte may begin none."""
        self._looks_right = looks_right
        self._is_lost = is_lost
        self._buffer = bytearray()
        self._skipped_bytes = 0
        """Bytes up to the end of a frame that a hole has cut."""
        self.lost_bytes = 0
        """Bytes that were passed over, or never captured."""

    def add(self, piece: StreamPiece) -> list[Frame]:
        """Return the frames that end in a piece, without their lengths."""
        if piece.hole_bytes:
            return self._add_hole(piece.hole_bytes)
        return self._add_bytes(piece.data, is_start=piece.is_start)

    def add_segment(self, packet: bytes, start: int, end: int) -> list[Frame]:
        """Return the frames that end in the next segment of a stream, which is in a packet.

        Most often a segment is a frame.
        """
        if self._is_next_start and end - start >= _LENGTH.size:
            (size_bytes,) = _LENGTH.unpack_from(packet, start)
            start_of_frame = start + _LENGTH.size
            if size_bytes == end - start_of_frame:
                return [packet[start_of_frame:end]]
        return self._add_bytes(packet[start:end], is_start=True)

    @property
    def _is_next_start(self) -> bool:
        """Return whether a frame begins with the next byte."""
        return not (self._buffer or self._is_lost or self._skipped_bytes)

    def _add_bytes(self, data: bytes, *, is_start: bool) -> list[Frame]:
        """Return the frames that end in bytes; `is_start`: a segment begins with them."""
        if self._is_lost:
            if not (is_start and self._looks_right(data)):
                self.lost_bytes += len(data)
                return []
            self._is_lost = False
        if self._skipped_bytes:
            skipped = min(self._skipped_bytes, len(data))
            self._skipped_bytes -= skipped
            self.lost_bytes += skipped
            data = data[skipped:]
        self._buffer += data
        return self._frames()

    def _add_hole(self, hole_bytes: int) -> list[Frame]:
        """Return the frame that the hole cuts; outside of a frame the place is lost."""
        self.lost_bytes += hole_bytes
        if self._is_lost:
            return []
        if self._skipped_bytes >= hole_bytes:
            self._skipped_bytes -= hole_bytes
            return []
        buffer = self._buffer
        if self._skipped_bytes or len(buffer) < _LENGTH.size:
            self._lose()
            return []
        missing = _LENGTH.size + _LENGTH.unpack_from(buffer)[0] - len(buffer)
        if hole_bytes > missing:
            self._lose()
            return []
        self._buffer = bytearray()
        self._skipped_bytes = missing - hole_bytes
        return [memoryview(buffer)[_LENGTH.size :]]

    def _frames(self) -> list[Frame]:
        """Take the whole frames out of the buffer; one that is all of it is not copied."""
        frames: list[Frame] = []
        buffer, at = self._buffer, 0
        while len(buffer) - at >= _LENGTH.size:
            size_bytes: int = _LENGTH.unpack_from(buffer, at)[0]
            if not 0 <= size_bytes <= FRAME_BYTES_MAX:
                self._lose()
                return frames
            start = at + _LENGTH.size
            end = start + size_bytes
            if len(buffer) < end:
                break
            if at == 0 and len(buffer) == end:
                self._buffer = bytearray()
                return [memoryview(buffer)[start:]]
            with memoryview(buffer) as view:
                frames.append(bytes(view[start:end]))
            at = end
        if at:
            del buffer[:at]
        return frames

    def _lose(self) -> None:
        self.lost_bytes += len(self._buffer)
        self._buffer = bytearray()
        self._skipped_bytes = 0
        self._is_lost = True


def looks_like_request(data: bytes) -> bool:
    """Return whether bytes begin with a request that Kafka has.

    An answer may have the numbers of a request's header by chance: the correlation id 1 is Produce
    version 1. So a whole request has to be readable, and one that is cut has to have a client id.
    """
    if len(data) < REQUEST_START_BYTES:
        return False
    size_bytes, api_key, version, _, client_id_bytes = _REQUEST_START.unpack_from(data)
    api = APIS.get(api_key)
    if api is None or not api.min_version <= version <= api.max_version:
        return False
    if not _REQUEST_START.size - _LENGTH.size <= size_bytes <= FRAME_BYTES_MAX:
        return False
    end = _LENGTH.size + size_bytes
    if len(data) >= end:
        frame = data[_LENGTH.size : end]
        head = read_head(frame)
        return head.is_known and read_request(head, frame)[1] == ""
    client_id = data[
        REQUEST_START_BYTES : REQUEST_START_BYTES + min(client_id_bytes, CLIENT_ID_MAX)
    ]
    is_inside = 0 < client_id_bytes <= size_bytes
    return is_inside and client_id.decode("utf-8", "ignore").isprintable()


def looks_like_answer(data: bytes, pending: Container[int]) -> bool:
    """Return whether bytes begin with the length and the correlation id of an open request."""
    if len(data) < _CORRELATION.size:
        return False
    size_bytes, correlation_id = _CORRELATION.unpack_from(data)
    return 4 <= size_bytes <= FRAME_BYTES_MAX and correlation_id in pending
