"""Config nodes over both homes: changed, announced, cleaned up; kinds that only KRaft knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.cluster import Cluster
from minibroker.broker.cluster.codecs import decode_config, encode_config
from minibroker.broker.cluster.consumer_offsets import get_offset, set_offset
from minibroker.broker.cluster.image import Endpoint
from minibroker.clock import SystemClock
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.cluster.tree import Operation, Tree
    from tests.support.cluster import Recorder


def make_cluster(tree: Tree) -> Cluster:
    endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]
    return Cluster(broker_id=0, tree=tree, clock=SystemClock(), endpoints=endpoints)


async def test_groups_and_client_metrics_are_there_again_after_a_restart(
    new_tree: Callable[[], Tree],
) -> None:
    cluster = make_cluster(new_tree())
    await cluster.start()
    await cluster.alter_config("client-metrics", "all%20apps", {"interval.ms": "1000"})
    await cluster.alter_config("groups", "g", {"share.auto.offset.reset": "earliest"})
    await cluster.close()
    again = make_cluster(new_tree())
    await again.start()
    assert again.config_of("client-metrics", "all%20apps") == {"interval.ms": "1000"}
    assert again.config_of("groups", "g") == {"share.auto.offset.reset": "earliest"}
    await again.close()


async def test_kafka_3_9_is_not_told_of_kinds_it_does_not_know(
    new_tree: Callable[[], Tree],
) -> None:
    """Kafka's ZkConfigManager throws at such a notification, and so at all that follow it."""
    tree = new_tree()
    cluster = make_cluster(tree)
    await cluster.start()
    await cluster.alter_config("client-metrics", "m", {"interval.ms": "1000"})
    assert await tree.children("/config/changes") == []
    await cluster.alter_config("client-metrics", "m", {"interval.ms": None})
    assert await tree.children("/config/client-metrics") == []
    await cluster.close()


async def test_a_config_is_changed_and_replaced(
    cluster: Cluster, cluster_tree: Tree, heard: Recorder
) -> None:
    heard.take()
    await cluster.alter_config("brokers", "0", {"a": "1", "b": "2"})
    assert await cluster.alter_config("brokers", "0", {"a": None, "c": "ü"}) == {"b": "2", "c": "ü"}
    assert cluster.config_of("brokers", "0") == {"b": "2", "c": "ü"}
    data, stat = await cluster_tree.get("/config/brokers/0")
    assert data == '{"version":1,"config":{"b":"2","c":"ü"}}'.encode()
    assert stat.version == 1
    assert await cluster.edit_config("brokers", "0", lambda _: {"d": "4"}) == {"d": "4"}
    assert heard.take() == [("config", "brokers", "0")] * 3
    await cluster.edit_config("brokers", "0", lambda _: {})
    assert (await cluster_tree.get("/config/brokers/0"))[0] == b'{"version":1,"config":{}}'


async def test_an_edit_starts_from_what_the_tree_has(cluster: Cluster, cluster_tree: Tree) -> None:
    """Another process wrote a value that this broker has not heard of yet."""
    await cluster.alter_config("brokers", "0", {"a": "1"})
    await cluster_tree.set("/config/brokers/0", encode_config({"a": "1,2"}))

    def append(config: dict[str, str]) -> dict[str, str]:
        return {"a": f"{config['a']},3"}

    assert await cluster.edit_config("brokers", "0", append, validate_only=True) == {"a": "1,2,3"}
    assert (await cluster_tree.get("/config/brokers/0"))[1].version == 1
    assert await cluster.edit_config("brokers", "0", append) == {"a": "1,2,3"}
    assert cluster.config_of("brokers", "0") == {"a": "1,2,3"}


async def test_an_edit_starts_again_when_another_process_is_faster(
    cluster: Cluster, cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.alter_config("brokers", "0", {"a": "1"})
    write = cluster_tree.multi

    async def after_another(operations: Sequence[Operation]) -> list[str | int]:
        monkeypatch.undo()
        await cluster_tree.set("/config/brokers/0", encode_config({"a": "1,2"}))
        return await write(operations)

    monkeypatch.setattr(cluster_tree, "multi", after_another)
    config = await cluster.edit_config("brokers", "0", lambda config: {"a": config["a"] + ",3"})
    assert config == {"a": "1,2,3"}
    assert decode_config("", (await cluster_tree.get("/config/brokers/0"))[0]) == config


async def test_an_edit_that_changes_nothing_is_not_written(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    await cluster.alter_config("brokers", "0", {"a": "1"})
    await cluster.alter_config("brokers", "0", {"a": "1"})
    assert (await cluster_tree.get("/config/brokers/0"))[1].version == 0


async def test_changes_are_announced_where_others_listen(
    cluster: Cluster, cluster_tree: Tree
) -> None:
    await cluster.alter_config("clients", "<default>", {"producer_byte_rate": "1"})
    names = await cluster_tree.children("/config/changes")
    if not cluster_tree.is_shared:
        assert names == []
        return
    assert names == ["config_change_0000000000"]
    data, _ = await cluster_tree.get(f"/config/changes/{names[0]}")
    assert data == b'{"version":2,"entity_path":"clients/<default>"}'


@pytest.mark.parametrize("entity", ["0", "1"], ids=["changed", "new"])
async def test_a_change_and_its_announcement_are_written_at_once(
    cluster: Cluster, cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch, entity: str
) -> None:
    """A broker that was killed between the two would leave the others with the old config."""
    await cluster.alter_config("brokers", "0", {"a": "1"})
    written_paths: list[list[str]] = []
    write = cluster_tree.multi

    async def note(operations: Sequence[Operation]) -> list[str | int]:
        written_paths.append([operation.path for operation in operations])
        return await write(operations)

    monkeypatch.setattr(cluster_tree, "multi", note)
    await cluster.alter_config("brokers", entity, {"a": "2"})
    announced = ["/config/changes/config_change_"] if cluster_tree.is_shared else []
    assert written_paths[-1] == [f"/config/brokers/{entity}", *announced]


async def test_empty_quota_nodes_go_away(cluster: Cluster, cluster_tree: Tree) -> None:
    """Kafka's rule: an empty (user, client) node takes its empty parents with it."""
    await cluster.alter_config("users", "u/clients/c", {"producer_byte_rate": "1"})
    await cluster.alter_config("users", "v/clients/c", {"producer_byte_rate": "1"})
    await cluster.alter_config("users", "v", {"request_percentage": "1"})
    await cluster.alter_config("users", "u/clients/c", {"producer_byte_rate": None})
    await cluster.alter_config("users", "v/clients/c", {"producer_byte_rate": None})
    assert await cluster_tree.children("/config/users") == ["v"]
    assert await cluster_tree.children("/config/users/v") == []
    assert cluster.image.configs["users"] == {"v": {"request_percentage": "1"}}


# Offsets that old consumers commit with version 0, in both homes of the tree.


async def test_a_quota_that_is_removed_ends_though_its_node_stays(
    cluster: Cluster, cluster_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree goes away between the write and the removal of the empty node."""
    await cluster.alter_config("users", "u", {"producer_byte_rate": "1"})

    async def refuse(*_: object) -> None:
        raise CoordinationError("away")

    monkeypatch.setattr(cluster_tree, "delete", refuse)
    with pytest.raises(CoordinationError):
        await cluster.alter_config("users", "u", {"producer_byte_rate": None})
    assert cluster.config_of("users", "u") == {}


async def test_an_offset_stands_where_kafka_kept_it(new_tree: Callable[[], Tree]) -> None:
    tree = new_tree()
    await tree.open()
    try:
        assert await get_offset(tree, "g", "t", 0) is None
        await set_offset(tree, "g", "t", 0, 41)
        await set_offset(tree, "g", "t", 0, 42)
        await set_offset(tree, "g", "t", 1, -1)
        assert await get_offset(tree, "g", "t", 0) == 42
        assert await get_offset(tree, "g", "t", 1) == -1
        data, _ = await tree.get("/consumers/g/offsets/t/0")
        assert data == b"42"
        await tree.set("/consumers/g/offsets/t/0", b"many")
        with pytest.raises(CoordinationError, match="'many', expected an offset"):
            await get_offset(tree, "g", "t", 0)
        for group_id in ("", "..", "a\0b"):
            with pytest.raises(ValueError, match="not a path"):
                await set_offset(tree, group_id, "t", 0, 1)
    finally:
        await tree.close()
