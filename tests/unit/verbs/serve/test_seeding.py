"""`serve --seed`: a seed is loaded once, whole, and before the broker says that it is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.seeds.errors import SeedError
from minibroker.testing import Broker
from minibroker.verbs.serve.seeding import UNFINISHED, load_seeds

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = '{"create": "orders", "partitions": 2}\n{"topic": "orders", "value": "a"}\n'
MORE_ORDERS = '{"topic": "orders", "value": "b", "partition": 1}\n'
OFFSETS = '{"group": "g", "topic": "orders", "partition": 0, "offset": 1}\n'


def start(data: Path, seeds: dict[str, str]) -> Broker:
    """Return a broker that runs on a directory, and has loaded seeds: name → content."""
    broker = Broker(data_dir=data)
    broker.start()
    try:
        for name, content in seeds.items():
            (data.parent / name).write_text(content)
        paths = [str(data.parent / name) for name in seeds]
        broker._await(load_seeds(paths, broker._app_brokers(), data))
    except BaseException:
        broker.stop()
        raise
    return broker


def test_a_seed_is_loaded_at_the_first_start_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seeds = {"orders.jsonl": ORDERS, "more.jsonl": MORE_ORDERS, "offsets.jsonl": OFFSETS}
    for _ in range(2):
        broker = start(data, seeds)
        try:
            assert [record.value for record in broker.records("orders")] == [b"a", b"b"]
            assert broker.committed("g") == {("orders", 0): 1}
            assert not (data / UNFINISHED).exists()
        finally:
            broker.stop()


def test_offsets_that_a_group_has_moved_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    start(data, {"orders.jsonl": ORDERS, "offsets.jsonl": OFFSETS}).stop()
    caplog.set_level("INFO", "minibroker.verbs.serve.seeding")
    moved = OFFSETS.replace('"offset": 1', '"offset": 0')
    broker = start(data, {"moved.jsonl": moved})
    try:
        assert broker.committed("g") == {("orders", 0): 1}
    finally:
        broker.stop()
    assert "moved.jsonl is not loaded: group g has offsets" in caplog.text


def test_a_topic_whose_records_were_deleted_is_not_filled_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    broker = start(data, {"orders.jsonl": ORDERS})
    broker.call(lambda: broker._app_brokers()[0].partitions.get("orders", 0).delete_records(1))
    broker.stop()
    caplog.set_level("INFO", "minibroker.verbs.serve.seeding")
    broker = start(data, {"orders.jsonl": ORDERS})
    assert broker.records("orders") == []
    broker.stop()
    assert "orders.jsonl is not loaded: topic orders has records, or had some" in caplog.text


def test_a_seed_that_was_loaded_does_not_judge_the_topic_of_today(tmp_path: Path) -> None:
    data = tmp_path / "data"
    broker = start(data, {"orders.jsonl": ORDERS})
    broker._await(broker._app_brokers()[0].cluster.topics.add_partitions("orders", 3))
    broker.stop()
    broker = start(data, {"orders.jsonl": ORDERS})
    assert broker.topics == {"orders": 3}
    assert [record.value for record in broker.records("orders")] == [b"a"]
    broker.stop()
    with pytest.raises(SeedError, match="partitions: 2: topic orders exists with 3"):
        start(data, {"declared.jsonl": ORDERS.splitlines()[0]})


def test_a_seed_that_was_loaded_is_read_up_to_its_first_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    start(data, {"orders.jsonl": ORDERS}).stop()
    caplog.set_level("INFO", "minibroker.verbs.serve.seeding")
    start(data, {"orders.jsonl": ORDERS + "this line is not read"}).stop()
    assert "orders.jsonl is not loaded: topic orders has records" in caplog.text


def test_half_a_seed_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    compacted = '{"create": "c", "configs": {"cleanup.policy": "compact"}}\n'
    refused = compacted + '{"topic": "c", "value": "no key"}\n'
    with pytest.raises(SeedError, match=r"--seed .*refused\.jsonl:4: c-0 refused the record"):
        start(data, {"refused.jsonl": ORDERS + refused})
    with pytest.raises(SeedError, match=f"a start was ended while it loaded.*{UNFINISHED}"):
        start(data, {"orders.jsonl": ORDERS})


def test_a_wrong_seed_leaves_nothing_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with pytest.raises(SeedError, match=r"--seed .*wrong\.jsonl:3: it is no JSON"):
        start(data, {"wrong.jsonl": ORDERS + "x"})
    broker = start(data, {"orders.jsonl": ORDERS})
    assert len(broker.records("orders")) == 1
    broker.stop()
