"""Apache Kafka 3.9.1 on our files: its tools read them, its broker goes on with them; and the
reverse.

Both brokers use one ZooKeeper chroot and one log directory, one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.check import broken_things
from tests.support.clients import CLIENTS, CODECS, expected
from tests.support.peers import KafkaPeer
from tests.support.taking_over import SETTINGS, assert_dump_is_clean, wait_until_unregistered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.broker import Minibroker
    from tests.support.peers import ZooKeeper

pytestmark = pytest.mark.java

COUNT = 1000

confluent, kafka_python = CLIENTS[0], CLIENTS[1]


def write_everything(address: str, prefix: str) -> dict[str, list[str]]:
    """Write a topic per codec; return topic → values."""
    values_of = {}
    for codec in CODECS:
        topic = f"files-{codec}"
        confluent.produce(address, topic, codec, prefix, COUNT)
        values_of[topic] = expected(prefix, COUNT)
    return values_of


@pytest.fixture
def kafka_settings() -> dict[str, str]:
    """Return settings for `new_kafka`."""
    return SETTINGS


def test_kafkas_dump_reads_every_file(new_broker: Callable[..., Minibroker]) -> None:
    """Rolled segments and live ones, after a clean stop and after recovery from a kill."""
    broker = new_broker(settings=SETTINGS)
    write_everything(broker.address, "first-")
    broker.stop()
    assert broken_things(broker.data_dir) == []
    assert_dump_is_clean(broker.data_dir)
    broker.start()
    write_everything(broker.address, "second-")
    broker.kill()
    broker.start()
    write_everything(broker.address, "third-")
    broker.stop()
    assert broken_things(broker.data_dir) == []
    assert_dump_is_clean(broker.data_dir)
    rolled = list((broker.data_dir / "files-none-0").glob("*.log"))
    assert len(rolled) > 2


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_kafka_goes_on_where_minibroker_stopped(
    stop: str,
    zookeeper: ZooKeeper,
    new_broker: Callable[..., Minibroker],
    new_kafka: Callable[[str, Path], KafkaPeer],
) -> None:
    """Kafka serves the same records, adds its own, and minibroker serves both afterwards."""
    chroot = f"ours-first-{stop}"
    broker = new_broker(zookeeper=f"{zookeeper.connect}/{chroot}", settings=SETTINGS)
    values_of = write_everything(broker.address, "ours-")
    getattr(broker, stop)()
    assert broken_things(broker.data_dir, is_strict=stop == "stop") == []
    wait_until_unregistered(zookeeper, chroot)

    kafka = new_kafka(chroot, broker.data_dir)
    for topic, values in values_of.items():
        assert confluent.consume(kafka.address, topic, len(values)) == values
    for topic, values in write_everything(kafka.address, "kafkas-").items():
        values_of[topic] += values
    getattr(kafka, stop)()
    assert broken_things(broker.data_dir, is_strict=stop == "stop") == []
    wait_until_unregistered(zookeeper, chroot)

    broker.start()
    for topic, values in values_of.items():
        assert kafka_python.consume(broker.address, topic, len(values)) == values
    broker.stop()
    assert broken_things(broker.data_dir) == []
    assert_dump_is_clean(broker.data_dir)


def test_minibroker_goes_on_where_kafka_stopped(
    zookeeper: ZooKeeper,
    new_broker: Callable[..., Minibroker],
    new_kafka: Callable[[str, Path], KafkaPeer],
    tmp_path: Path,
) -> None:
    """The reverse: directories and znodes are Kafka's own, minibroker adds to them, Kafka reads."""
    kafka = new_kafka("kafka-first", tmp_path / "data")
    values_of = write_everything(kafka.address, "kafkas-")
    kafka.stop()
    assert broken_things(tmp_path / "data") == []

    broker = new_broker("data", zookeeper=f"{zookeeper.connect}/kafka-first", settings=SETTINGS)
    for topic, values in values_of.items():
        assert confluent.consume(broker.address, topic, len(values)) == values
    for topic, values in write_everything(broker.address, "ours-").items():
        values_of[topic] += values
    broker.stop()

    kafka.start()
    for topic, values in values_of.items():
        assert kafka_python.consume(kafka.address, topic, len(values)) == values
