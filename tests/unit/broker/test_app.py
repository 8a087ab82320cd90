"""The composition root: start, stop, start again, and what a failed start leaves behind."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.app import TREE_FILE, Broker
from minibroker.broker.cluster.leadership import Leadership
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.topic_option import TopicToCreate
from minibroker.broker.config_follower import ConfigFollower
from minibroker.broker.storage import gathered
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.partition_metadata import read_metadata
from minibroker.kafka.errors import ConfigError, CoordinationError, MinibrokerError, StorageError
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.evidence import MARKED
from tests.support.in_process import InProcessBroker, ManualClock, batch_of
from tests.support.record_requests import asking, first, offsets_in, part, produce
from tests.support.waiting import eventually

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
            partition = first(await client.call(asking(part()), 11))
            assert offsets_in(partition.records) == [0]
            answer = await client.call(produce(batch_of(b"next")), 9)
            assert answer.responses[0].partition_responses[0].base_offset == 1


async def test_a_clean_stop_leaves_marker_and_checkpoints_and_no_lock(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t")
        data = Path(running.settings["log.dirs"])
        assert ".kafka_cleanshutdown" not in files_in(data)
    names = files_in(data)
    assert {".kafka_cleanshutdown", "meta.properties", TREE_FILE, "t-0"} <= names
    assert "recovery-point-offset-checkpoint" in names
    async with InProcessBroker(tmp_path) as running:
        running.partitions.get("t", 0)


async def test_a_clean_stop_leaves_the_topic_id_of_each_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written a moment behind the answer: a stop does not wait for that moment."""
    monkeypatch.setattr(gathered, "GATHER_S", 3600.0)
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t", 2)
        topic_id = running.broker.cluster.image.topics["t"].topic_id
        data = running.settings["log.dirs"]
        assert read_metadata(REAL_FILES, f"{data}/t-1") is None
    assert read_metadata(REAL_FILES, f"{data}/t-0") == topic_id
    assert read_metadata(REAL_FILES, f"{data}/t-1") == topic_id


async def test_topic_and_broker_configurations_are_there_after_a_start(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t", max_message_bytes="500")
        await running.broker.cluster.alter_config("brokers", "<default>", {"log.retention.ms": "7"})
        await running.broker.cluster.alter_config("brokers", "0", {"message.max.bytes": "900"})
        assert running.broker.dynamic.broker.get("message.max.bytes") == 900
    async with InProcessBroker(tmp_path) as running:
        assert running.partitions.get("t", 0).log.config.max_message_bytes == 500
        assert running.broker.dynamic.broker.get("message.max.bytes") == 900
        assert running.broker.dynamic.broker.log_retention_ms == 7


async def test_advertised_listeners_change_while_it_runs(tmp_path: Path) -> None:
    """Clients are told the other address at once, and again after a start."""

    async def advertised(client: RawClient) -> str:
        answer = await client.call(MetadataRequest(topics=[]), 9)
        return f"{answer.brokers[0].host}:{answer.brokers[0].port}"

    async with InProcessBroker(tmp_path) as running, await running.connect() as client:
        cluster = running.broker.cluster
        old_address = await advertised(client)
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
        assert old_address.startswith("127.0.0.1:")
        await client.close()


async def test_several_brokers_live_in_one_process(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path / "1") as first, InProcessBroker(tmp_path / "2") as second:
        assert first.address != second.address
        for running in (first, second):
            async with await running.connect() as client:
                await client.call(MetadataRequest(topics=[]), 9)


# A start that fails.


def config(directory: Path, **settings: str) -> BrokerConfig:
    properties = {key.replace("_", "."): value for key, value in settings.items()}
    listeners = "PLAINTEXT://127.0.0.1:0"
    return BrokerConfig({"listeners": listeners, "log.dirs": str(directory), **properties})


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
        (broker.workers, "close"),
        (broker.logs, "release"),
    ):
        call = getattr(type(owner), step)
        monkeypatch.setattr(
            type(owner), step, lambda self, step=step, call=call: [steps.append(step), call(self)]
        )
    with pytest.raises(ConfigError):
        await broker.start([TopicToCreate("a", 0, {})])
    assert steps == ["close", "release"]


async def test_work_beside_requests_that_fails_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_leadership: Leadership, _topic: str | None) -> None:
        raise CoordinationError("the tree is gone")

    monkeypatch.setattr(Leadership, "allow_unclean", fail)
    async with InProcessBroker(tmp_path, {"unclean.leader.election.enable": "true"}) as running:
        running.broker.on_topic_config(None)
        await eventually(lambda: "could not elect leaders out of sync: the tree" in caplog.text)


def test_a_release_that_never_was_is_one_sentence() -> None:
    settings = {"minibroker.advertised.kafka.version": "9.9"}
    with pytest.raises(ConfigError, match=r"minibroker\.advertised\.kafka\.version=9\.9"):
        Broker(BrokerConfig(settings))


async def test_a_new_cluster_has_the_id_that_it_was_given_and_keeps_it(tmp_path: Path) -> None:
    for cluster_id in ("4L6g3nShT-eMCtK--X86sw", "another-one"):
        broker = Broker(
            config(tmp_path / "data").with_overrides({"minibroker.cluster.id": cluster_id})
        )
        await broker.start()
        assert broker.cluster.image.cluster_id == "4L6g3nShT-eMCtK--X86sw"
        await broker.stop()


# Users, tokens and logins of a broker, as its settings ask for them.


LISTENER = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
}
USERS = {"minibroker.users": 'alice="secret"'}


async def test_a_broker_without_such_settings_has_none_of_it(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path) as running:
        access = running.broker.access
        assert (access.authorizer, access.tokens) == (None, None)
        assert running.broker.cluster.peer_logins is None
        assert running.broker.cluster.peer_contexts is None


async def test_users_of_the_settings_have_credentials_after_the_start(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, {**LISTENER, **USERS}) as running:
        assert "SCRAM-SHA-256" in running.broker.cluster.config_of("users", "alice")
        login_of = running.broker.cluster.peer_logins
        assert login_of is not None
        assert login_of("SASL_PLAINTEXT").name == "alice"


async def test_a_start_is_refused_where_others_could_not_be_logged_in_at(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, LISTENER):
        pass  # no other broker may come, so there is nothing to log in at
    tree = SharedTree(tmp_path / "tree", ManualClock())
    await tree.open()
    with pytest.raises(ConfigError, match="has no logins"):
        await Broker(
            BrokerConfig({**LISTENER, "log.dirs": str(tmp_path / "of-two")}), tree=tree.session()
        ).start()
    await tree.close()


# The coordinators are made when they are needed, and resumed where there is something to do.


SMALL = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


async def test_a_broker_without_groups_makes_none(tmp_path: Path) -> None:
    async with InProcessBroker(tmp_path, SMALL) as running:
        coordinators = running.broker.coordinators
        coordinators.resume()
        assert coordinators._groups is None
        assert coordinators._transactions is None
        coordinators.release_waiting()
        await coordinators.close()


async def test_the_first_request_makes_a_coordinator_and_the_next_start_resumes_it(
    tmp_path: Path,
) -> None:
    for key_type, name in ((0, "_groups"), (1, "_transactions")):
        directory = tmp_path / name
        directory.mkdir()
        async with InProcessBroker(directory, SMALL) as running, await running.connect() as client:
            request = FindCoordinatorRequest(key="x", key_type=key_type)
            assert (await client.call(request, 1)).error_code == 0
        async with InProcessBroker(directory, SMALL) as running:
            coordinators = running.broker.coordinators
            coordinators.resume()
            assert getattr(coordinators, name) is not None
            assert coordinators.groups is coordinators.groups
            assert coordinators.transactions is coordinators.transactions


async def test_a_later_leader_resumes_them(tmp_path: Path) -> None:
    """A broker that led nothing of the journals when it started, in a cluster say."""
    async with InProcessBroker(tmp_path, SMALL) as running:
        coordinators = running.broker.coordinators
        await asyncio.sleep(0)  # `start` comes right after the broker's
        for topic, name in (
            ("__consumer_offsets", "_groups"),
            ("__transaction_state", "_transactions"),
        ):
            assert getattr(coordinators, name) is None
            await running.create_topic(topic)
            assert getattr(coordinators, name).journal.active_indexes() == [0]


# Each kind of configuration reaches the part that goes by it.


class Recorder:
    """Stands for all of them; writes down what it is told."""

    broker_id = 3

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def config_of(self, entity_type: str, name: str) -> dict[str, str]:
        return {"of": f"{entity_type}/{name}"}

    def __call__(self) -> Recorder:
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


@pytest.mark.parametrize(
    ("entity_type", "name", "call"),
    [
        ("topics", "t", ("set_topic", "t")),
        ("brokers", "<default>", ("set_cluster_default",)),
        ("brokers", "3", ("set_broker",)),
        ("users", "u", ("on_config_changed", "users", "u")),
        ("clients", "c", ("on_config_changed", "clients", "c")),
    ],
)
def test_a_change_goes_where_it_belongs(entity_type: str, name: str, call: tuple[str, ...]) -> None:
    recorder = Recorder()
    follower = ConfigFollower(recorder, recorder, recorder, recorder, recorder)  # type: ignore[arg-type]
    follower.on_config_changed(entity_type, name)
    assert recorder.calls == [(*call, {"of": f"{entity_type}/{name}"})]


def test_another_brokers_settings_are_not_ours() -> None:
    recorder = Recorder()
    ConfigFollower(recorder, recorder, recorder, recorder, recorder).on_config_changed(
        "brokers", "4"
    )  # type: ignore[arg-type]
    assert [call[0] for call in recorder.calls] == ["on_config_changed"]


def test_a_topic_comes_with_its_configuration_and_goes_without() -> None:
    recorder = Recorder()
    follower = ConfigFollower(recorder, recorder, recorder, recorder, recorder)  # type: ignore[arg-type]
    topic: Any = SimpleNamespace(name="t")
    follower.on_topic_created(topic)
    follower.on_topic_deleted(topic, MARKED)
    assert recorder.calls == [("set_topic", "t", {"of": "topics/t"}), ("set_topic", "t", {})]
