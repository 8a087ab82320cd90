"""CRC-32C, and that its package is not imported as a whole."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package
import pytest

from minibroker.kafka.records import crc


def test_check_value_of_the_standard() -> None:
    assert crc.crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 100])
def test_every_kind_of_buffer(data: bytes) -> None:
    expected = package.crc32c(data)
    assert crc.crc32c(data) == expected
    assert crc.crc32c(bytearray(data)) == expected
    assert crc.crc32c(memoryview(data)) == expected


def test_the_package_itself_is_not_imported() -> None:
    """Its `__init__` reads package metadata, which a start of 120 ms has no room for."""
    code = "import sys, minibroker.kafka.records.crc; print('importlib.metadata' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_package_is_imported_where_its_extension_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert crc._import_package()(b"123456789") == 0xE3069283
    monkeypatch.setattr(crc.PathFinder, "find_spec", lambda *_: None)
    assert crc._load_extension() is None
