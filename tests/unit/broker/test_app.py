"""The composition root: start, stop, start again, and what a failed start leaves behind."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.app import TREE_FILE, Broker
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.options import TopicToCreate
from minibroker.kafka.errors import ConfigError, MinibrokerError, StorageError
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.in_process import InProcessBroker, batch_of
from tests.support.record_requests import asking, first, offsets_in, part, produce

if TYPE_CHECKING:
    from tests.support.in_process import RawClient


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


# Start and stop.


async def test_records_survive_a_stop(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t")
        cluster_id = running.broker.cluster.image.cluster_id
        async with await running.connect() as client:
            await client.call(produce(batch_of(b"kept")), 9)
    async with InProcessBroker(tmp_path) as running:
        assert running.broker.cluster.image.cluster_id == cluster_id
        async with await running.connect() as client:
            found = first(await client.call(asking(part()), 11))
            assert offsets_in(found.records) == [0]
            answer = await client.call(produce(batch_of(b"next")), 9)
            assert answer.responses[0].partition_responses[0].base_offset == 1


async def test_a_clean_stop_leaves_marker_and_checkpoints_and_no_lock(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t")
        data = Path(running.settings["log.dirs"])
        assert ".kafka_cleanshutdown" not in files_in(data)
    found = files_in(data)
    assert {".kafka_cleanshutdown", "meta.properties", TREE_FILE, "t-0"} <= found
    assert "recovery-point-offset-checkpoint" in found
    async with InProcessBroker(tmp_path) as running:
        running.partitions.get("t", 0)


async def test_topic_and_broker_configurations_are_there_after_a_start(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t", max_message_bytes="500")
        await running.broker.cluster.alter_config("brokers", "<default>", {"log.retention.ms": "7"})
        await running.broker.cluster.alter_config("brokers", "0", {"message.max.bytes": "900"})
        assert running.broker.dynamic.broker.message_max_bytes == 900
    async with InProcessBroker(tmp_path) as running:
        assert running.partitions.get("t", 0).log.config.max_message_bytes == 500
        assert running.broker.dynamic.broker.message_max_bytes == 900
        assert running.broker.dynamic.broker.log_retention_ms == 7


async def test_advertised_listeners_change_while_it_runs(tmp_path: Path) -> None:
    """Clients are told the other address at once, and again after a start."""

    async def advertised(client: RawClient) -> str:
        answer = await client.call(MetadataRequest(topics=[]), 9)
        return f"{answer.brokers[0].host}:{answer.brokers[0].port}"

    async with InProcessBroker(tmp_path) as running, await running.connect() as client:
        cluster = running.broker.cluster
        before = await advertised(client)
        other = {"advertised.listeners": "PLAINTEXT://kafka.example:19092"}
        await cluster.alter_config("brokers", "0", other)
        await asyncio.gather(*running.broker._tasks)
        assert await advertised(client) == "kafka.example:19092"
        data, _ = await cluster.tree.get("/brokers/ids/0")
        assert b"PLAINTEXT://kafka.example:19092" in data
    async with InProcessBroker(tmp_path) as running:
        assert running.address == ("kafka.example", 19092)
        running.broker.address = ("127.0.0.1", running.broker.ports["PLAINTEXT"])
        client = await running.connect()
        cluster = running.broker.cluster
        assert await advertised(client) == "kafka.example:19092"
        await cluster.alter_config("brokers", "0", {"advertised.listeners": None})
        await asyncio.gather(*running.broker._tasks)
        assert (await advertised(client)).startswith("127.0.0.1:")
        assert before.startswith("127.0.0.1:")
        await client.close()


async def test_several_brokers_live_in_one_process(tmp_path: Path) -> None:
    async with (
        InProcessBroker(tmp_path / "1") as first,
        InProcessBroker(tmp_path / "2") as second,
    ):
        assert first.address != second.address
        for running in (first, second):
            async with await running.connect() as client:
                await client.call(MetadataRequest(topics=[]), 9)


# A start that fails.


def config(directory: Path, **settings: str) -> BrokerConfig:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    listeners = "PLAINTEXT://127.0.0.1:0"
    return BrokerConfig({"listeners": listeners, "log.dirs": str(directory), **named})


async def test_a_directory_in_use_is_one_sentence_and_stays_usable(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        other = Broker(config(Path(running.settings["log.dirs"])))
        with pytest.raises(MinibrokerError, match=str(tmp_path)):
            await other.start()
        async with await running.connect() as client:
            await client.call(MetadataRequest(topics=[]), 9)


async def test_a_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        data = Path(running.settings["log.dirs"])
    with pytest.raises(MinibrokerError, match=r"broker\.id|node\.id"):
        await Broker(config(data, broker_id="5")).start()
    async with InProcessBroker(tmp_path):
        pass


async def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StorageError, match="file"):
        await Broker(config(tmp_path / "file" / "data")).start()


async def test_a_start_that_fails_leaves_no_timer(tmp_path: Path) -> None:
    """The topic of an earlier run has its retention watched by the time the start fails."""
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t")
    broker = Broker(config(tmp_path / "data"))
    with pytest.raises(ConfigError):
        await broker.start([TopicToCreate("a", 0, {})])
    assert len(broker.timers) == 0


async def test_a_start_that_fails_gives_its_directories_back_when_its_work_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next broker must not meet a worker that still removes files of an earlier run."""
    broker = Broker(config(tmp_path / "data"))
    steps: list[str] = []
    for owner, step in (
        (broker.worker, "close"),
        (broker.directory_workers, "close"),
        (broker.flush_workers, "close"),
        (broker.logs, "release"),
    ):
        call = getattr(owner, step)
        monkeypatch.setattr(owner, step, lambda step=step, call=call: [steps.append(step), call()])
    with pytest.raises(ConfigError):
        await broker.start([TopicToCreate("a", 0, {})])
    assert steps == ["close", "close", "close", "release"]


def test_a_release_that_never_was_is_one_sentence() -> None:
    settings = {"minibroker.advertised.kafka.version": "9.9"}
    with pytest.raises(ConfigError, match=r"minibroker\.advertised\.kafka\.version=9\.9"):
        Broker(BrokerConfig(settings))


async def test_a_new_cluster_has_the_id_that_it_was_given_and_keeps_it(tmp_path: Path) -> None:
    for given in ("4L6g3nShT-eMCtK--X86sw", "another-one"):
        broker = Broker(config(tmp_path / "data").with_overrides({"minibroker.cluster.id": given}))
        await broker.start()
        assert broker.cluster.image.cluster_id == "4L6g3nShT-eMCtK--X86sw"
        await broker.stop()
