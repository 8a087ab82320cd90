"""meta.properties: Java's format, dates, identity."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import (
    MetaProperties,
    check_properties,
    decode_properties,
    encode_properties,
    java_date,
    read_properties,
    stored_broker_id,
    write_properties,
)
from minibroker.kafka.errors import CorruptionError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

MINE = MetaProperties(3, "eefzwkngRlefhjYRimzJ9g")


def test_the_bytes_are_kafka_s() -> None:
    assert encode_properties(MINE, 1_795_225_152_000) == (
        b"#\n#Sat Nov 21 01:39:12 UTC 2026\n"
        b"broker.id=3\nversion=0\ncluster.id=eefzwkngRlefhjYRimzJ9g\n"
    )


@given(st.integers(0, 253_402_300_799))
def test_dates_are_java_s(seconds: int) -> None:
    expected = datetime.fromtimestamp(seconds, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    assert java_date(seconds * 1000 + 999) == expected


def test_a_written_file_is_read_back(tmp_path: Path) -> None:
    assert read_properties(REAL_FILES, str(tmp_path)) is None
    given_id = MetaProperties(0, "c", "d")
    write_properties(REAL_FILES, str(tmp_path), given_id, 0)
    assert read_properties(REAL_FILES, str(tmp_path)) == given_id


def test_java_s_other_spellings_are_read() -> None:
    content = b"! comment\r\n broker.id : 5\ncluster.id = a\\=b\\:\\u0063\n\nunknown=1\n"
    assert decode_properties(content, "path") == MetaProperties(5, "a=b:c")
    assert decode_properties(b"version=1\nnode.id=7\n", "path") == MetaProperties(7, None)


@pytest.mark.parametrize(
    "content", [b"version=2\n", b"version=0\nbroker.id=zero\n", b"cluster.id=\\u12\n"]
)
def test_a_damaged_file_is_named(content: bytes) -> None:
    with pytest.raises(CorruptionError, match="the/path"):
        decode_properties(content, "the/path")


def test_identity_is_compared() -> None:
    check_properties(MINE, broker_id=3, cluster_id=MINE.cluster_id, directory="d")
    check_properties(MetaProperties(None, None), broker_id=3, cluster_id="x", directory="d")
    with pytest.raises(StorageError, match="belongs to cluster eefz"):
        check_properties(MINE, broker_id=3, cluster_id="x", directory="d")
    with pytest.raises(StorageError, match=r"set broker\.id=3"):
        check_properties(MINE, broker_id=4, cluster_id=MINE.cluster_id, directory="d")


def test_the_first_directory_with_an_id_says_whose_they_are(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    directories = [str(tmp_path / name) for name in ("none", "a", "b", "c")]
    assert stored_broker_id(REAL_FILES, directories) is None
    (tmp_path / "a" / "meta.properties").write_text("version=9\n")
    write_properties(REAL_FILES, directories[2], MetaProperties(None, "cluster"), 0)
    write_properties(REAL_FILES, directories[3], MetaProperties(1001, "cluster"), 0)
    assert stored_broker_id(REAL_FILES, directories) == 1001
