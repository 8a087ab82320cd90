"""The cluster of a verb: its address and settings, from options and from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.cli.connection import ConnectionOptions, merged_settings
from minibroker.cli.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return the path of a file as Kafka's tools take it."""
    path = tmp_path / "client.properties"
    path.write_text(
        "# a comment\nsecurity.protocol = SSL\nkafka.client.id: me\nbootstrap.servers=a:1\n"
    )
    return str(path)


def test_a_file_is_read_as_kafkas_tools_read_it(file: str) -> None:
    expected = {"security.protocol": "SSL", "client.id": "me"}
    assert merged_settings(None, file, {}) == ("a:1", expected)


def test_an_option_wins_over_the_file(file: str) -> None:
    address, settings = merged_settings("b:2", file, {"kafka.client.id": "you"})
    assert (address, settings["client.id"]) == ("b:2", "you")


def test_a_file_that_cannot_be_read_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--kafka-config: cannot read .*none\.properties"):
        merged_settings(None, str(tmp_path / "none.properties"), {})


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({"metadata.broker.list": "c:3"}, "c:3"),
        ({"metadata.broker.list": "c:3", "bootstrap.servers": "d:4"}, "d:4"),
        ({}, None),
    ],
)
def test_the_address_may_have_the_name_of_librdkafka(
    settings: dict[str, str], address: str | None
) -> None:
    assert merged_settings(None, None, settings) == (address, {})


def test_without_an_address_it_is_the_default_one() -> None:
    assert ConnectionOptions().settings() == {"bootstrap.servers": "127.0.0.1:9092"}
    assert ConnectionOptions("h:1", {"a": "b"}).settings() == {"bootstrap.servers": "h:1", "a": "b"}
