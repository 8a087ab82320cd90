"""The start of a TLS connection in a capture: the name of the server that the client asks for.

A trace cannot read what follows, so it says which connections these are.

Source: RFC 8446, RFC 6066.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Final

_RECORD: Final = Struct(">BBBH")
_HANDSHAKE: Final = 0x16
_APPLICATION_DATA: Final = 0x17
_MAJOR: Final = 3
_MINOR_MAX: Final = 4
_RECORD_BYTES_MAX: Final = (1 << 14) + 2_048
_SESSION_ID_AT: Final = 5 + 4 + 2 + 32
"""Behind the head of the record, that of the handshake, the version and the random bytes."""
_UINT16: Final = Struct(">H")
_EXTENSION: Final = Struct(">HH")
_SERVER_NAME: Final = 0
_EXTENSIONS_MAX: Final = 64
_NAME: Final = Struct(">HBH")
_NAME_MAX: Final = 255


def is_tls_start(data: bytes) -> bool:
    """Return whether bytes begin with a record of a handshake."""
    return _is_record(data, _HANDSHAKE)


def is_tls_data(data: bytes) -> bool:
    """Return whether bytes begin with a record of encrypted data, as in a connection that began
    before the capture.
    """
    return _is_record(data, _APPLICATION_DATA)


def _is_record(data: bytes, kind_of_record: int) -> bool:
    if len(data) < _RECORD.size:
        return False
    kind, major, minor, size_bytes = map(int, _RECORD.unpack_from(data))
    is_record = kind == kind_of_record and major == _MAJOR and minor <= _MINOR_MAX
    return is_record and 0 < size_bytes <= _RECORD_BYTES_MAX


def server_name(data: bytes) -> str:
    """Return the server's name in the client's first bytes, nothing where they have none."""
    try:
        at = _SESSION_ID_AT
        at += 1 + data[at]
        at += 2 + int(_UINT16.unpack_from(data, at)[0])
        at += 1 + data[at] + 2
        for _ in range(_EXTENSIONS_MAX):
            kind, size_bytes = _EXTENSION.unpack_from(data, at)
            at += _EXTENSION.size
            if kind == _SERVER_NAME:
                _, _, name_bytes = _NAME.unpack_from(data, at)
                start = at + _NAME.size
                return data[start : start + min(name_bytes, _NAME_MAX)].decode("ascii", "replace")
            at += size_bytes
    except (IndexError, struct_error):
        return ""
    return ""
