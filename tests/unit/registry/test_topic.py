"""The topic of a registry as one broker has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.partitions.partition import Partition
from minibroker.kafka.records.record import Record
from minibroker.registry.entries import SchemaText, VersionEntry, encode
from minibroker.registry.state import RegistryState
from minibroker.registry.topic import SchemasTopic
from minibroker.rig.node import Node
from minibroker.testing.broker import TEST_DEFAULTS

if TYPE_CHECKING:
    from pathlib import Path


def version(subject: str, schema_id: int) -> VersionEntry:
    return VersionEntry(subject, 1, schema_id, SchemaText("AVRO", f'"{subject}"'))


async def test_a_log_that_was_cut_and_has_grown_again_is_read_anew(tmp_path: Path) -> None:
    """An unclean election takes records away that were read, and others get their offsets."""
    node = Node(BrokerConfig({**TEST_DEFAULTS, "log.dirs": str(tmp_path)}))
    await node.start()
    topic = SchemasTopic(lambda: node.running_app)
    partition = await topic.leader()
    assert isinstance(partition, Partition)
    for entry in (version("a", 1), version("b", 2)):  # in a batch each
        await topic.write(partition, [entry])
    assert topic.state.names == ["a", "b"]
    partition.log.truncate_to(1)
    records = [Record(0, 1, *encode(entry)) for entry in (version("c", 2), version("d", 3))]
    await node.inspector.append(partition, records)
    state = await topic.read()
    assert isinstance(state, RegistryState)
    assert state.names == ["a", "c", "d"]
    assert state.id_of(".", SchemaText("AVRO", '"b"')) is None
    await node.stop()
