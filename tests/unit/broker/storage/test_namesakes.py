"""Two logs of one name in two log directories: the topic's id decides, the other one is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId
from tests.support.logs import DEFAULTS, TOPIC_ID, abandon, append, open_manager, values_of

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.storage.log_manager import LogManager

OTHER_ID = TopicId(bytes(15) + b"\1")
IDS = {"a": TOPIC_ID, "b": OTHER_ID}


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """Log directories `a` and `b` with a log of t-0 each; its record names the directory."""
    for name, topic_id in IDS.items():
        manager = open_manager(str(tmp_path / name))
        append(manager.create_log("t", 0, topic_id, DEFAULTS), name.encode())
        manager.close()
    return tmp_path


def open_both(path: Path) -> LogManager:
    return open_manager(str(path / "a"), str(path / "b"))


@pytest.mark.parametrize("name", IDS)
def test_the_log_of_the_topic_is_served_and_the_other_one_kept(twice: Path, name: str) -> None:
    manager = open_both(twice)
    log = manager.create_log("t", 0, IDS[name], DEFAULTS)
    assert values_of(log) == [name.encode()]
    append(log, b"more")
    manager.close()
    (stray,) = twice.glob("?/t-0.*-stray")
    assert stray.parent.name != name
    assert stray.parent.name.encode() in (stray / "00000000000000000000.log").read_bytes()
    manager = open_both(twice)
    assert values_of(manager.create_log("t", 0, IDS[name], DEFAULTS)) == [name.encode(), b"more"]
    manager.close()


def test_both_are_kept_where_a_third_topic_has_the_name(twice: Path) -> None:
    manager = open_both(twice)
    third = TopicId(bytes(15) + b"\3")
    assert values_of(manager.create_log("t", 0, third, DEFAULTS)) == []
    manager.close()
    assert len(list(twice.glob("?/t-0.*-stray"))) == 2


def test_without_an_id_of_the_topic_nothing_is_decided(twice: Path) -> None:
    manager = open_both(twice)
    manager.create_log("t", 0, ZERO_TOPIC_ID, DEFAULTS)
    assert list(twice.glob("?/t-0.*-stray")) == []
    assert values_of(manager.create_log("t", 0, OTHER_ID, DEFAULTS)) == [b"b"]
    manager.close()


@pytest.mark.parametrize("content", [None, b"damaged"])
def test_a_second_log_that_does_not_say_whose_it_is_is_refused(
    twice: Path, content: bytes | None
) -> None:
    for metadata in twice.glob("?/t-0/partition.metadata"):
        metadata.unlink()
        if content is not None:
            metadata.write_bytes(content)
    with pytest.raises(StorageError, match=r"t-0"):
        open_both(twice)


def test_a_start_that_decides_nothing_leaves_both(twice: Path) -> None:
    for _ in range(2):
        abandon(open_both(twice))
    assert len(list(twice.glob("?/t-0"))) == 2
