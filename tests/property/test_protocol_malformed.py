"""Guard: reading any bytes gives a value or `ProtocolError`, and takes little memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.primitives import Reader
from tests.support.protocol_values import ValueMaker, class_of
from tests.support.reference_codec import MessageSpec, encode, load_specs

SPECS = load_specs()
SAMPLE_BYTES_MAX = 300
MEMORY_BYTES_MAX = 300_000
every_message = pytest.mark.parametrize("spec", SPECS, ids=str)


def sample(spec: MessageSpec, version: int) -> bytes:
    """Return a message of some variety that is short enough to cut at every byte."""
    encodings = [
        encode(spec, ValueMaker(spec, seed).message(version), version) for seed in range(8)
    ]
    short = [data for data in encodings if len(data) <= SAMPLE_BYTES_MAX]
    return max(short, key=len) if short else min(encodings, key=len)


def value_or_error(spec: MessageSpec, data: bytes, version: int) -> bool:
    """Return whether the bytes gave a value; any error but ProtocolError fails the test."""
    try:
        class_of(spec).read(Reader(data), version)
    except ProtocolError:
        return False
    return True


@every_message
def test_a_message_cut_anywhere_is_refused(spec: MessageSpec) -> None:
    for version in spec.versions:
        data = sample(spec, version)
        for length in range(min(len(data), SAMPLE_BYTES_MAX)):
            assert not value_or_error(spec, data[:length], version), (version, length)


@every_message
def test_a_flipped_bit_gives_a_value_or_a_protocol_error(spec: MessageSpec) -> None:
    rng = random.Random(str(spec))
    for version in spec.versions:
        data = bytearray(sample(spec, version))
        for position in range(min(len(data), SAMPLE_BYTES_MAX)):
            flipped = 1 << rng.randrange(8)
            data[position] ^= flipped
            value_or_error(spec, bytes(data), version)
            data[position] ^= flipped


@every_message
def test_a_huge_length_takes_no_memory(spec: MessageSpec) -> None:
    """The largest numbers of both encodings, put at every byte: no memory is allocated for them."""
    version = spec.last
    data = sample(spec, version)
    assert value_or_error(spec, data, version)  # the code itself, read from disk once, counts not
    tracemalloc.start()
    try:
        for huge in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f\xff"):
            for position in range(min(len(data), 100)):
                value_or_error(spec, data[:position] + huge + data[position + len(huge) :], version)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MEMORY_BYTES_MAX


def test_random_bytes_give_a_value_or_a_protocol_error() -> None:
    rng = random.Random(20261121)
    for spec in SPECS:
        for version in spec.versions:
            for size in (0, 3, 17, 60):
                value_or_error(spec, rng.randbytes(size), version)
