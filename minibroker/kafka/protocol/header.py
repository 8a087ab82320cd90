"""Headers: the bytes between a frame's length and its message.

| header     | layout                                                                            |
|------------|-----------------------------------------------------------------------------------|
| request 0  | int16 api key, int16 api version, int32 correlation id                            |
| request 1  | the same, then nullable string client id                                          |
| request 2  | the same, then tagged fields; the client id keeps its int16 length (KIP-482)      |
| response 0 | int32 correlation id                                                              |
| response 1 | int32 correlation id, tagged fields                                               |

The flexible versions of an API use request header 2 and response header 1. One exception: an
answer to ApiVersions always has response header 0, so that a client can read it before it knows
which versions the broker speaks (KIP-511). Only ControlledShutdown version 0 has request header 0.
"""

from struct import Struct
from struct import error as struct_error

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS, CONTROLLED_SHUTDOWN
from minibroker.kafka.protocol.primitives import Reader, Writer

_START = Struct(">hhih")
_CORRELATION_ID = Struct(">i")

_END_OF_HEADER_0 = 8

_NEVER = 1 << 15  # larger than every int16

_FLEXIBLE_FROM = {
    key: _NEVER if api.flexible_from is None else api.flexible_from for key, api in APIS.items()
}
_RESPONSE_HEADER_1_FROM = {**_FLEXIBLE_FROM, API_VERSIONS: _NEVER}


def parse_request_header(frame: memoryview | bytes) -> tuple[int, int, int, str | None, int]:
    """Read the header of a request frame, which begins after the frame's length.

    Returns:
        (api key, api version, correlation id, client id or None, position of the body in bytes).

    Raises:
        ProtocolError: the frame is too short, or no API has this key. The version is not checked:
        the dispatcher answers an unsupported version.
    """
    try:
        api_key, version, correlation_id, size_bytes = _START.unpack_from(frame)
    except struct_error:
        raise ProtocolError(f"a frame of {len(frame)} bytes holds no request header") from None
    if api_key == CONTROLLED_SHUTDOWN and not version:
        return api_key, version, correlation_id, None, _END_OF_HEADER_0
    position = _START.size
    client_id = None
    if size_bytes >= 0:
        end = position + size_bytes
        if end > len(frame):
            raise ProtocolError(f"client id of {size_bytes} bytes in a frame of {len(frame)}")
        client_id = str(frame[position:end], "utf-8", "replace")
        position = end
    flexible_from = _FLEXIBLE_FROM.get(api_key)
    if flexible_from is None:
        raise ProtocolError(f"no API has key {api_key} (version {version} was asked for)")
    if version >= flexible_from:
        if position < len(frame) and not frame[position]:
            return api_key, version, correlation_id, client_id, position + 1
        reader = Reader(frame, position)
        reader.skip_tagged_fields()
        position = reader.position
    return api_key, version, correlation_id, client_id, position


class RepeatedHeader:
    """A request header that came twice in a row: most often the next request of its client has the
    same, but for the correlation id.
    """

    __slots__ = ("_behind", "_key_and_version", "_unpack", "api_key", "client_id", "end", "version")

    def __init__(
        self, frame: memoryview, api_key: int, version: int, client_id: str | None, end: int
    ) -> None:
        """Take what `parse_request_header` gives for `frame`."""
        self._unpack = Struct(f">4si{end - _END_OF_HEADER_0}s").unpack_from
        self._key_and_version, _, self._behind = self._unpack(frame)
        self.api_key = api_key
        self.version = version
        self.client_id = client_id
        self.end = end
        """The position of the body in bytes."""

    def correlation_id_of(self, frame: memoryview) -> int | None:
        """Return the correlation id of a frame that has this header; None: it has another one."""
        try:
            key_and_version, correlation_id, behind = self._unpack(frame)
        except struct_error:
            return None
        if key_and_version != self._key_and_version or behind != self._behind:
            return None
        return correlation_id  # type: ignore[no-any-return]


def response_header_version(api_key: int, version: int) -> int:
    """Return 0 or 1. Raises KeyError for a key that no API has."""
    return 1 if version >= _RESPONSE_HEADER_1_FROM[api_key] else 0


def response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """Return the header of a response, 4 or 5 bytes; it never has tagged fields."""
    correlation = _CORRELATION_ID.pack(correlation_id)
    return correlation + b"\x00" if version >= _RESPONSE_HEADER_1_FROM[api_key] else correlation


def write_request_header(
    writer: Writer, api_key: int, version: int, correlation_id: int, client_id: str | None
) -> None:
    """Write the header of a request; for tests, tools and requests to other brokers."""
    writer.int16(api_key)
    writer.int16(version)
    writer.int32(correlation_id)
    if api_key == CONTROLLED_SHUTDOWN and not version:
        return
    writer.nullable_string(client_id)
    if version >= _FLEXIBLE_FROM[api_key]:
        writer.uvarint(0)
