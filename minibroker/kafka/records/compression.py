"""The codecs of record batches: none, gzip, snappy, lz4, zstd.

A compressed batch is unfolded when it is appended: its header counts only once its records were
read (`contents`). It is stored as it came. Bytes never unfold to more than the caller allows. The
libraries are imported with the first use. Where the package cramjam is missing, because a system
has no wheel of it, everything but gzip is refused as UNSUPPORTED_COMPRESSION_TYPE.

Framing on the wire, each as the Java client writes it and with what else is accepted:

| id | name   | framing                                                                    |
|----|--------|----------------------------------------------------------------------------|
| 1  | gzip   | RFC 1952; several members in a row are one stream, what follows is passed by |
| 2  | snappy | xerial: 16-byte header, (int32 size, raw block)*; a bare raw block is read   |
| 3  | lz4    | frame with independent blocks of 64 KiB (Kafka reads no linked ones)        |
| 4  | zstd   | frames, content size present or not                                         |

Source: Kafka CompressionType, Lz4BlockInputStream; xerial snappy-java's SnappyOutputStream; RFC
8878.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codec id → name, as `compression.type` spells it."""
CODEC_IDS: Final = {name: codec for codec, name in enumerate(CODEC_NAMES)}

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_INT32: Final = Struct(">i")

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW_BITS: Final = 31  # 15 bits of window, +16: with the gzip header and trailer
_GZIP_PIECE_BYTES: Final = 8 << 10
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_LEVEL: Final = 3
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_HEADER: Final = _LZ4_MAGIC + b"\x60\x40\x82"  # independent blocks of 64 KiB
_LZ4_BLOCK_SIZE: Final = Struct("<I")
_LZ4_PLAIN_BLOCK: Final = 1 << 31  # set in the size of a block that is stored as it is
_LZ4_SUM_BYTES: Final = 4
_LZ4_END: Final = bytes(4)
_LZ4_FAST_LEVEL: Final = 1
_LZ4_RATIO_MAX: Final = 256  # a byte of a block unfolds to at most 255
_GROWTH: Final = 8
_FIRST_GUESS_BYTES: Final = 4 * 1024
"""The first buffer for a codec that does not tell the unfolded size has at least so much."""

Data = bytes | bytearray | memoryview


class UnfoldsTooFarError(CorruptionError):
    """The bytes unfold to more than the caller takes."""


def compress(codec: int, data: Data, level: int | None = None) -> bytes:
    """Return `data` in the framing of codec id 0-4; `level` is the codec's own, None its default.

    Raises ValueError for any other id; KafkaError UNSUPPORTED_COMPRESSION_TYPE where the package
    for it is missing.
    """
    if codec == NONE:
        return bytes(data)
    function = _COMPRESSORS.get(codec)
    if function is None:
        raise ValueError(f"codec id {codec} is unknown, expected 0 to {ZSTD}")
    return function(data, level)


def decompress(codec: int, data: Data, size_bytes_max: int) -> bytes:
    """Return the bytes that `data` unfolds to, at most `size_bytes_max`.

    Raises CorruptionError where the codec does not write such data, where `data` ends early, or for
    a codec id above 4; UnfoldsTooFarError where it unfolds to more; KafkaError
    UNSUPPORTED_COMPRESSION_TYPE where the package for it is missing.
    """
    if codec == NONE:
        if len(data) > size_bytes_max:
            raise _too_large("none", size_bytes_max)
        return bytes(data)
    function = _DECOMPRESSORS.get(codec)
    if function is None:
        raise CorruptionError(f"codec id {codec} is unknown, expected 0 to {ZSTD}")
    return function(data, size_bytes_max)


def _too_large(codec: str, size_bytes_max: int) -> UnfoldsTooFarError:
    return UnfoldsTooFarError(f"{codec} data unfolds to more than {size_bytes_max} bytes")


def _library(name: str) -> Any:
    """Return cramjam's module of this name. Raises KafkaError UNSUPPORTED_COMPRESSION_TYPE."""
    try:
        import cramjam  # noqa: PLC0415
    except ModuleNotFoundError:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"{name} needs the package cramjam, which is not installed here: pip install cramjam",
        ) from None
    return getattr(cramjam, name)


def _unfold_into(
    name: str, function: Callable[[Data, bytearray], int], packed: Data, guess: int, limit: int
) -> bytes:
    """Return what `packed` unfolds to, in a buffer that begins with `guess` bytes and grows up to
    `limit`. Raises CorruptionError, UnfoldsTooFarError.
    """
    from cramjam import DecompressionError  # noqa: PLC0415

    while True:
        capacity = min(guess, limit)
        unpacked = bytearray(capacity)
        try:
            size_bytes = function(packed, unpacked)
        except DecompressionError as error:
            # The library has one exception for everything; this text is its "output is full".
            if "failed to write whole buffer" not in str(error):
                raise CorruptionError(f"{name} data is malformed: {error}") from error
            if capacity == limit:
                raise _too_large(name, limit) from error
            guess = _GROWTH * max(capacity, _FIRST_GUESS_BYTES)
        else:
            return bytes(memoryview(unpacked)[:size_bytes])


def _gzip_compress(data: Data, level: int | None) -> bytes:
    import zlib  # noqa: PLC0415

    packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
    return packer.compress(data) + packer.flush()


def _gzip_decompress(data: Data, size_bytes_max: int) -> bytes:
    import zlib  # noqa: PLC0415

    parts: list[bytes] = []
    size_bytes = position = 0
    view = memoryview(data)
    unpacker = zlib.decompressobj(_GZIP_WINDOW_BITS)
    # In pieces, because a member's end hands back a copy of all that is left of its input.
    while True:
        piece = view[position : position + _GZIP_PIECE_BYTES]
        try:
            part = unpacker.decompress(piece, size_bytes_max - size_bytes + 1)
        except zlib.error as error:
            raise CorruptionError(f"gzip data is malformed: {error}") from error
        size_bytes += len(part)
        if size_bytes > size_bytes_max:
            raise _too_large("gzip", size_bytes_max)
        parts.append(part)
        position += len(piece) - len(unpacker.unused_data)
        if unpacker.eof:
            if bytes(view[position : position + len(_GZIP_MAGIC)]) != _GZIP_MAGIC:
                return b"".join(parts)
            unpacker = zlib.decompressobj(_GZIP_WINDOW_BITS)
        elif not piece:
            raise CorruptionError(f"gzip data ends early, after {size_bytes} unfolded bytes")


def _snappy_compress(data: Data, level: int | None) -> bytes:
    snappy = _library("snappy")
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _snappy_decompress(data: Data, size_bytes_max: int) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _snappy_block(view, size_bytes_max, 0)
    parts: list[bytes] = []
    size_bytes = 0
    position = len(_XERIAL_HEADER)
    while position < len(view):
        # Two streams written one behind the other are one: a header may stand where a block could.
        if bytes(view[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        if len(view) - position < _INT32.size:
            raise CorruptionError(f"snappy data is cut in a block size at byte {position}")
        length: int = _INT32.unpack_from(view, position)[0]
        position += _INT32.size
        if not 0 <= length <= len(view) - position:
            raise CorruptionError(
                f"snappy block at byte {position} declares {length} bytes, "
                f"{len(view) - position} are left"
            )
        part = _snappy_block(view[position : position + length], size_bytes_max, size_bytes)
        parts.append(part)
        size_bytes += len(part)
        position += length
    return b"".join(parts)


def _snappy_block(block: memoryview, size_bytes_max: int, size_bytes_before: int) -> bytes:
    """Return what one raw snappy block of a stream unfolds to. Its first bytes tell the unfolded
    size; the blocks before it unfolded to `size_bytes_before`."""
    snappy = _library("snappy")
    from cramjam import DecompressionError  # noqa: PLC0415

    try:
        if size_bytes_before + snappy.decompress_raw_len(block) > size_bytes_max:
            raise _too_large("snappy", size_bytes_max)
        return bytes(snappy.decompress_raw(block))
    except DecompressionError as error:
        raise CorruptionError(f"snappy block is malformed: {error}") from error


def _lz4_compress(data: Data, level: int | None) -> bytes:
    """Return a frame as Kafka's Lz4BlockOutputStream writes it. The library adds a checksum to each
    block; it is left out here.
    """
    packer = _library("lz4").Compressor(
        level=_LZ4_FAST_LEVEL if level is None else level,
        content_checksum=False,
        block_linked=False,
    )
    packer.compress(bytes(data))
    packed = bytes(packer.finish())
    parts = [_LZ4_HEADER]
    position = len(_LZ4_HEADER)
    while word := _LZ4_BLOCK_SIZE.unpack_from(packed, position)[0]:
        end = position + _LZ4_BLOCK_SIZE.size + (word & ~_LZ4_PLAIN_BLOCK)
        parts.append(packed[position:end])
        position = end + _LZ4_SUM_BYTES
    parts.append(_LZ4_END)
    return b"".join(parts)


def _lz4_decompress(data: Data, size_bytes_max: int) -> bytes:
    """Unfold the first frame, as Kafka does; the library would read on behind it."""
    packed = bytes(data)
    end, unfolded_bytes_max = _lz4_sizes(packed)
    guess = min(unfolded_bytes_max, max(_FIRST_GUESS_BYTES, _GROWTH * end))
    function = _library("lz4").decompress_into
    return _unfold_into("lz4", function, packed[:end], guess, size_bytes_max)


def _lz4_sizes(packed: bytes) -> tuple[int, int]:
    """Return the size of the frame at the begin, and the most bytes that its blocks can unfold to.

    Raises CorruptionError where there is no frame, or a part of one.
    """
    if packed[:4] != _LZ4_MAGIC or len(packed) < len(_LZ4_HEADER):
        raise CorruptionError(f"lz4 data is malformed: no frame begins with {packed[:7].hex()}")
    flags, block_size_code = packed[4], packed[5] >> 4 & 7
    block_bytes_max = 1 << 8 + 2 * block_size_code
    sum_bytes = _LZ4_SUM_BYTES if flags & 0x10 else 0
    position = len(_LZ4_HEADER) + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    unfolded_bytes_max = 0
    while position + _LZ4_BLOCK_SIZE.size <= len(packed):
        word: int = _LZ4_BLOCK_SIZE.unpack_from(packed, position)[0]
        size_bytes = word & ~_LZ4_PLAIN_BLOCK
        position += _LZ4_BLOCK_SIZE.size
        if word == 0:  # the mark of the end
            position += _LZ4_SUM_BYTES if flags & 0x04 else 0
            if position > len(packed):
                break
            return position, unfolded_bytes_max
        position += size_bytes + sum_bytes
        is_plain = word & _LZ4_PLAIN_BLOCK
        unfolded_bytes_max += (
            size_bytes if is_plain else min(_LZ4_RATIO_MAX * size_bytes, block_bytes_max)
        )
    raise CorruptionError(f"lz4 data ends early, at byte {len(packed)} of a frame")


def _zstd_compress(data: Data, level: int | None) -> bytes:
    return bytes(_library("zstd").compress(data, _ZSTD_LEVEL if level is None else level))


def _zstd_decompress(data: Data, size_bytes_max: int) -> bytes:
    """Unfold into a buffer of the size that the frame declares. The buffer grows where the frame
    declares no size, or a wrong one."""
    packed = bytes(data)
    if not packed:
        return b""  # no frame at all, which the library takes for a cut one
    guess = _zstd_content_size(packed) or max(_FIRST_GUESS_BYTES, _GROWTH * len(packed))
    function = _library("zstd").decompress_into
    return _unfold_into("zstd", function, packed, guess, size_bytes_max)


def _zstd_content_size(packed: bytes) -> int:
    """Return the unfolded size in the header of the first zstd frame, 0 where it has none."""
    if packed[:4] != _ZSTD_MAGIC or len(packed) < 5:
        return 0
    descriptor = packed[4]
    is_single_segment = descriptor >> 5 & 1
    size_length = (is_single_segment, 2, 4, 8)[descriptor >> 6]
    start = 5 + (1 - is_single_segment) + (0, 1, 2, 4)[descriptor & 3]
    field = packed[start : start + size_length]
    value = int.from_bytes(field, "little")
    return value + 256 if size_length == 2 else value


_COMPRESSORS: Final[dict[int, Callable[[Data, int | None], bytes]]] = {
    GZIP: _gzip_compress,
    SNAPPY: _snappy_compress,
    LZ4: _lz4_compress,
    ZSTD: _zstd_compress,
}
_DECOMPRESSORS: Final[dict[int, Callable[[Data, int], bytes]]] = {
    GZIP: _gzip_decompress,
    SNAPPY: _snappy_decompress,
    LZ4: _lz4_decompress,
    ZSTD: _zstd_decompress,
}
