"""Every codec both ways, its framing, and that nothing unfolds beyond its limit."""

from __future__ import annotations

import gzip
import random
import struct
import sys
import tracemalloc
import zlib
from itertools import product
from typing import Any

import cramjam
import lz4.frame
import pytest
from lz4 import frame

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records import compression
from minibroker.kafka.records.compression import (
    CODEC_IDS,
    CODEC_NAMES,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)
from minibroker.kafka.records.legacy_lz4 import to_broken, to_sound, xxh32_of_few

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
LIMIT = 10_000_000
TEXT = b"Call me Ishmael. " * 20_000
NOISE = random.Random(1).randbytes(100_000)


def test_names_and_numbers() -> None:
    assert CODEC_NAMES == ("none", "gzip", "snappy", "lz4", "zstd")
    assert CODEC_IDS["zstd"] == ZSTD == 4


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["empty", "x", "text", "noise"])
def test_data_comes_back(codec: int, data: bytes) -> None:
    packed = compress(codec, data)
    assert decompress(codec, packed, LIMIT) == data
    assert decompress(codec, memoryview(packed), LIMIT) == data
    assert compress(codec, bytearray(data)) == packed


@pytest.mark.parametrize(("codec", "level"), [(GZIP, 9), (LZ4, 9), (ZSTD, 10), (SNAPPY, 3)])
def test_levels(codec: int, level: int) -> None:
    packed = compress(codec, TEXT, level)
    assert len(packed) < len(TEXT) // 10
    assert decompress(codec, packed, LIMIT) == TEXT


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_is_exact(codec: int) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    for limit in (len(TEXT) - 1, 1, 0):
        with pytest.raises(CorruptionError, match=f"more than {limit} bytes"):
            decompress(codec, packed, limit)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
@pytest.mark.parametrize("data", [TEXT, NOISE], ids=["text", "noise"])
def test_cut_data_is_corrupt(codec: int, data: bytes) -> None:
    packed = compress(codec, data)
    for cut in (1, 10, len(packed) // 2, len(packed) - 1):
        with pytest.raises(CorruptionError):
            decompress(codec, packed[:cut], LIMIT)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_foreign_bytes_are_corrupt(codec: int) -> None:
    with pytest.raises(CorruptionError):
        decompress(codec, b"\xffnothing that any codec writes", LIMIT)


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_unknown_codecs(codec: int) -> None:
    with pytest.raises(ValueError, match=f"codec id {codec} is unknown"):
        compress(codec, b"")
    with pytest.raises(CorruptionError, match=f"codec id {codec} is unknown"):
        decompress(codec, b"", LIMIT)


def test_gzip_members_in_a_row_are_one_stream() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    assert decompress(GZIP, packed, 7) == b"one two"
    with pytest.raises(CorruptionError, match="more than 6 bytes"):
        decompress(GZIP, packed, 6)
    assert gzip.decompress(compress(GZIP, TEXT)) == TEXT


def test_snappy_is_framed_as_xerial_does() -> None:
    packed = compress(SNAPPY, TEXT)
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    (length,) = struct.unpack_from(">i", packed, 16)
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + length])) == TEXT[: 32 * 1024]


def test_snappy_without_a_frame_and_two_streams_in_a_row() -> None:
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), LIMIT) == TEXT
    assert decompress(SNAPPY, compress(SNAPPY, b"one ") + compress(SNAPPY, b"two"), 7) == b"one two"


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (b"\x00\x00", "cut in a block size at byte 16"),
        (b"\xff\xff\xff\xff", "declares -1 bytes"),
        (b"\x00\x00\x00\x09x", "declares 9 bytes, 1 are left"),
        (b"\x00\x00\x00\x01\xff", "malformed"),
    ],
)
def test_broken_snappy_blocks(tail: bytes, message: str) -> None:
    with pytest.raises(CorruptionError, match=message):
        decompress(SNAPPY, compress(SNAPPY, b"") + tail, LIMIT)


def test_snappy_that_declares_gigabytes_takes_no_memory() -> None:
    with pytest.raises(CorruptionError, match="more than 1000 bytes"):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\x00", 1000)


def test_lz4_frames_are_ones_that_kafka_reads() -> None:
    packed = compress(LZ4, TEXT)
    info = frame.get_frame_info(packed)
    assert info["block_size"] == 65_536
    assert not info["block_linked"]
    assert info["content_size"] == 0
    linked = frame.compress(TEXT, block_linked=True, content_checksum=True, block_checksum=True)
    assert decompress(LZ4, linked, LIMIT) == TEXT


def test_lz4_takes_memory_for_what_there_is() -> None:
    packed = compress(LZ4, TEXT)
    tracemalloc.start()
    try:
        assert decompress(LZ4, packed, 1 << 30) == TEXT
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_lz4_that_unfolds_to_far_more_than_the_first_guess() -> None:
    data = bytes(5_000_000)
    packed = compress(LZ4, data)
    assert decompress(LZ4, packed, len(data)) == data
    with pytest.raises(CorruptionError, match="more than 4999999 bytes"):
        decompress(LZ4, packed, len(data) - 1)
    with pytest.raises(CorruptionError, match="ends early"):
        decompress(LZ4, packed[:-4], len(data))


@pytest.mark.parametrize("level", [None, 1, 3, 9, 17])
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, TEXT + NOISE])
def test_lz4_frames_are_those_of_the_reference_library(data: bytes, level: int | None) -> None:
    expected = frame.compress(
        data,
        compression_level=level or 0,
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    assert compress(LZ4, data, level) == expected


def test_lz4_is_one_frame_and_the_rest_is_passed_by() -> None:
    """As Kafka: its input stream ends with the frame."""
    packed = compress(LZ4, TEXT)
    assert decompress(LZ4, packed + compress(LZ4, b"another"), LIMIT) == TEXT
    assert decompress(LZ4, packed + b"no frame", LIMIT) == TEXT


def test_lz4_that_is_damaged_is_refused_where_the_reference_library_refuses_it() -> None:
    """Frames of every kind with bits turned, bytes cut off or added."""
    chance = random.Random(3)
    frames = [
        frame.compress(
            data,
            block_size=size,
            block_linked=is_linked,
            store_size=has_size,
            content_checksum=has_sum,
            block_checksum=has_sums,
        )
        for data in (b"", TEXT[:3000], NOISE[:3000], TEXT)
        for size in (frame.BLOCKSIZE_MAX64KB, frame.BLOCKSIZE_MAX4MB)
        for is_linked, has_size, has_sum, has_sums in product((True, False), repeat=4)
    ]
    for _ in range(5_000):
        packed = bytearray(chance.choice(frames))
        kind = chance.randrange(3)
        if kind == 0:
            packed[chance.randrange(min(len(packed), 40))] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del packed[chance.randrange(len(packed)) :]
        else:
            packed += b"more"
        assert _outcome(bytes(packed)) == _reference_outcome(bytes(packed)), packed.hex()


def _outcome(packed: bytes) -> bytes | None:
    try:
        return decompress(LZ4, packed, LIMIT)
    except CorruptionError:
        return None


def _reference_outcome(packed: bytes) -> bytes | None:
    unpacker = frame.LZ4FrameDecompressor()
    try:
        unpacked: bytes = unpacker.decompress(packed)
    except RuntimeError:
        return None
    return unpacked if unpacker.eof else None


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD])
def test_without_the_library_a_codec_is_refused_by_its_name(
    codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = compress(codec, TEXT)
    monkeypatch.setitem(sys.modules, "cramjam", None)
    sentence = f"{CODEC_NAMES[codec]} needs the package cramjam, which is not installed here"
    for call in (lambda: compress(codec, TEXT), lambda: decompress(codec, packed, LIMIT)):
        with pytest.raises(KafkaError, match=sentence) as raised:
            call()
        assert raised.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_zstd_without_content_size_grows_its_buffer() -> None:
    """A stream, as the Java client writes it, that unfolds to far more than the first guess."""
    data = bytes(5_000_000)
    stream = cramjam.zstd.Compressor()
    stream.compress(data)
    packed = bytes(stream.finish())
    assert decompress(ZSTD, packed, len(data)) == data
    with pytest.raises(CorruptionError, match="more than 4999999 bytes"):
        decompress(ZSTD, packed, len(data) - 1)


def test_zstd_frames_in_a_row_are_one_stream() -> None:
    packed = compress(ZSTD, TEXT) + compress(ZSTD, b"end")
    assert decompress(ZSTD, packed, LIMIT) == TEXT + b"end"


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_791, 65_792, 300_000])
def test_zstd_content_sizes_of_every_width(size: int) -> None:
    data = NOISE * 4
    packed = compress(ZSTD, data[:size])
    assert decompress(ZSTD, packed, size) == data[:size]


def test_zstd_that_declares_terabytes_takes_no_memory() -> None:
    packed = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 2**42) + b"\x01\x00\x00"
    with pytest.raises(CorruptionError, match="too much memory"):
        decompress(ZSTD, packed, 1000)


def test_gzip_members_that_cross_pieces_are_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    members = b"".join(gzip.compress(bytes([n]) * n, mtime=0) for n in range(50))
    plain = b"".join(bytes([n]) * n for n in range(50))
    for piece in (1, 2, 7, 18, 19, 100):
        monkeypatch.setattr(compression, "_GZIP_PIECE_BYTES", piece)
        assert decompress(GZIP, members, 10_000) == plain
        assert decompress(GZIP, members + b"what follows", 10_000) == plain
        with pytest.raises(CorruptionError, match="ends early"):
            decompress(GZIP, members[:-1], 10_000)
        with pytest.raises(CorruptionError, match="unfolds to more"):
            decompress(GZIP, members, len(plain) - 1)


def test_many_empty_gzip_members_cost_no_more_than_their_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = 0
    new = zlib.decompressobj

    class Unpacker:
        """A zlib object that counts the bytes that it is given."""

        def __init__(self, window_bits: int) -> None:
            self._object = new(window_bits)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._object, name)

        def decompress(self, data: memoryview, size_bytes_max: int) -> bytes:
            nonlocal size
            size += len(data)
            return self._object.decompress(data, size_bytes_max)

    monkeypatch.setattr(zlib, "decompressobj", Unpacker)
    count = 20_000
    packed = gzip.compress(b"", mtime=0) * count
    assert decompress(GZIP, packed, 10) == b""
    assert size <= count * compression._GZIP_PIECE_BYTES + len(packed)


DATA = b"the same again " * 100


def legacy_frame(*, with_size: bool) -> bytes:
    packed: bytes = lz4.frame.compress(DATA, block_linked=False, store_size=with_size)
    return packed


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"\x60\x40", 0x82 << 8),
        (b"\x04\x22\x4d\x18\x60\x40", 0x1A << 8),
    ],
)
def test_the_hash_of_few_bytes(data: bytes, value: int) -> None:
    """Published values, and the two bytes that Kafka 3.9.1 writes."""
    digest = xxh32_of_few(data)
    assert digest & 0xFF00 == value & 0xFF00
    if value > 0xFFFF:
        assert digest == value


def test_more_bytes_are_another_algorithm() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        xxh32_of_few(bytes(16))


@pytest.mark.parametrize("with_size", [False, True])
def test_a_frame_goes_there_and_back(with_size: bool) -> None:
    sound = legacy_frame(with_size=with_size)
    broken = to_broken(sound)
    assert broken != sound
    assert len(broken) == len(sound)
    with pytest.raises(RuntimeError, match="headerChecksum"):
        lz4.frame.decompress(broken)
    assert to_sound(broken) == to_sound(sound) == sound


@pytest.mark.parametrize(
    "data", [b"", b"\x04\x22\x4d", b"not a frame", legacy_frame(with_size=True)[:12]]
)
def test_malformed_frames(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="frame header"):
        to_sound(data)
