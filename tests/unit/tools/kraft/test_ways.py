"""`hand-over` and `take-back` on the directories of a broker: who owns them after each step.

No Kafka starts here.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.security.acl_entries import Acl, Entry, Pattern
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import (
    MetaProperties,
    read_properties,
    write_properties,
)
from minibroker.kafka.errors import StorageError
from minibroker.testing import Broker, Cluster
from minibroker.tools.kraft import hand_over as hand_over_module
from minibroker.tools.kraft.hand_over import reasons_against as reasons_to_keep
from minibroker.tools.kraft.levels import LEVELS
from minibroker.tools.kraft.log_directory import (
    SnapshotId,
    write_metadata_directory,
)
from minibroker.tools.kraft.log_reading import read_metadata_directory
from minibroker.tools.kraft.metadata import ConfigEntity, ConfigKind, Metadata
from minibroker.tools.kraft.nodes import read_home
from minibroker.tools.kraft.records import records_of
from minibroker.tools.kraft.take_back import reasons_against
from minibroker.verbs import hand_over, take_back
from minibroker.verbs.hand_over import RELEASES, HandOverPlan
from minibroker.verbs.stopped_broker import StoppedBroker
from minibroker.verbs.take_back import TakeBackPlan
from tests.support.kraft_metadata import full_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(verb: Any, plan: Any) -> str:
    """Run a verb that succeeds; return what it says."""
    out, errors = io.StringIO(), io.StringIO()
    assert verb.run(plan, out, errors) == 0, errors.getvalue()
    return out.getvalue()


def failure(verb: Any, plan: Any) -> str:
    """Run a verb that fails; return its sentence."""
    out, errors = io.StringIO(), io.StringIO()
    assert verb.run(plan, out, errors) == 1, out.getvalue()
    assert not out.getvalue()
    return errors.getvalue()


def of(*directories: Path | str) -> StoppedBroker:
    return StoppedBroker(tuple(map(str, directories)))


def files_below(directory: Path) -> dict[str, bytes]:
    """Return path → content, without the metadata tree, whose pages SQLite may reorder."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.name.startswith(("minibroker-", names.LOCK))
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return the directory of a broker that is stopped, with two topics."""
    directory = tmp_path / "data"
    with Broker(data_dir=directory) as broker:
        broker.create_topic("orders", partitions=3, config={"retention.ms": "60000"})
        broker.produce("orders", ["a", "b"], partition=0)
        broker.create_topic("empty")
    return directory


def test_the_directory_is_kafkas_and_then_ours_again(data: Path) -> None:
    first_files = files_below(data)
    output = run(hand_over, HandOverPlan(of(data), release="4.0"))
    assert output.startswith(
        "2 topics with 4 partitions, 1 resource with settings is handed over to Apache Kafka 4.0\n"
    )
    properties = read_properties(REAL_FILES, str(data))
    assert properties is not None
    assert (properties.version, properties.broker_id) == (1, 0)
    stored = read_metadata_directory(REAL_FILES, str(data))
    assert stored.metadata.features == {**LEVELS["4.0"]}
    assert stored.metadata.topics["orders"].partitions[0].leader == -1
    with pytest.raises(StorageError, match=f"belongs to Apache Kafka.*take-back {data}`"):
        Broker(data_dir=data).start()
    assert (data / names.CLEAN_SHUTDOWN).exists()  # the refusal leaves the mark of a clean stop

    assert "is taken back\nminibroker serve --data-dir" in run(take_back, TakeBackPlan(of(data)))
    after = files_below(data)
    assert {name for name in first_files if first_files[name] != after.pop(name, None)} <= {
        names.META_PROPERTIES,
        names.CLEAN_SHUTDOWN,
    }
    assert names.KRAFT_LOG in first_files  # a file, which keeps Kafka from starting there
    assert not after
    with Broker(data_dir=data) as broker:
        assert broker.topics == {"orders": 3, "empty": 1}
        assert [record.value for record in broker.records("orders")] == [b"a", b"b"]
        broker.produce("orders", "c")


def test_a_dry_run_writes_nothing(data: Path) -> None:
    first_files = files_below(data)
    assert "would be handed over" in run(hand_over, HandOverPlan(of(data), dry_run=True))
    assert files_below(data) == first_files
    run(hand_over, HandOverPlan(of(data)))
    first_files = files_below(data)
    assert "would be taken back" in run(take_back, TakeBackPlan(of(data), dry_run=True))
    assert files_below(data) == first_files


def test_a_hand_over_is_done_again_until_kafka_has_started(data: Path) -> None:
    run(hand_over, HandOverPlan(of(data), release="3.9"))
    first = read_properties(REAL_FILES, str(data))
    run(hand_over, HandOverPlan(of(data), release="4.4"))
    assert read_properties(REAL_FILES, str(data)) == first  # the ids of directories stay
    features = dict(LEVELS["4.4"])
    del features["eligible.leader.replicas.version"]  # nobody asked for it
    assert read_metadata_directory(REAL_FILES, str(data)).metadata.features == features
    (data / names.QUORUM_STATE).write_text("{}")
    assert "served by Kafka since then" in failure(hand_over, HandOverPlan(of(data)))


def test_a_directory_that_kafka_has_served_is_not_served_here_whatever_its_version(
    data: Path,
) -> None:
    run(hand_over, HandOverPlan(of(data)))
    (data / names.QUORUM_STATE).write_text("{}")
    properties = read_properties(REAL_FILES, str(data))
    assert properties is not None
    path = data / names.META_PROPERTIES
    path.write_text(
        path.read_text().replace("version=1", "version=0").replace("node.id", "broker.id")
    )
    with pytest.raises(StorageError, match="belongs to Apache Kafka"):
        Broker(data_dir=data).start()
    run(take_back, TakeBackPlan(of(data)))
    with Broker(data_dir=data) as broker:
        assert broker.topics == {"orders": 3, "empty": 1}


def test_a_stop_that_was_not_clean_is_recovered_first(data: Path) -> None:
    (data / names.CLEAN_SHUTDOWN).unlink()
    log = next((data / "orders-0").glob("*.log"))
    log.write_bytes(log.read_bytes() + b"\0" * 40)  # a write that a power cut tore
    run(hand_over, HandOverPlan(of(data)))
    assert log.stat().st_size % 40 != 0 or not log.read_bytes().endswith(b"\0" * 40)


def test_a_directory_that_is_served_is_neither_handed_over_nor_taken_back(data: Path) -> None:
    with Broker(data_dir=data):
        assert "is in use by another process" in failure(hand_over, HandOverPlan(of(data)))
    assert "is minibroker's" in failure(take_back, TakeBackPlan(of(data)))
    assert "is no data directory" in failure(hand_over, HandOverPlan(of(data / "orders-0")))


def test_a_hand_over_that_fails_before_its_last_step_has_not_happened(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError(28, "No space left on device", str(data / names.META_PROPERTIES))

    monkeypatch.setattr(hand_over_module, "write_properties", fail)
    assert "No space left on device" in failure(hand_over, HandOverPlan(of(data)))
    monkeypatch.undo()
    with Broker(data_dir=data) as broker:
        assert broker.topics == {"orders": 3, "empty": 1}
    run(hand_over, HandOverPlan(of(data)))


def test_each_log_directory_has_an_id_and_each_replica_the_id_of_its_directory(
    tmp_path: Path,
) -> None:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    with Broker(config={"log.dirs": ",".join(paths)}) as broker:
        broker.create_topic("t", partitions=4)
    run(hand_over, HandOverPlan(of(*paths)))
    partitions = read_metadata_directory(REAL_FILES, paths[0]).metadata.topics["t"].partitions
    ids = set()
    for index, partition in enumerate(partitions):
        (directory,) = partition.directories
        ids.add(directory)
        (path,) = [path for path in paths if Path(path, f"t-{index}").exists()]
        properties = read_properties(REAL_FILES, path)
        assert properties is not None
    assert len(ids) == 2
    assert not Path(paths[1], "__cluster_metadata-0").exists()
    run(take_back, TakeBackPlan(of(*paths)))


def test_a_log_directory_that_is_not_named_is_missed(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    with Broker(config={"log.dirs": ",".join(paths)}) as broker:
        broker.create_topic("t", partitions=4)
    assert f"in {paths[0]}: name all log directories" in failure(
        hand_over, HandOverPlan(of(paths[0]))
    )
    run(hand_over, HandOverPlan(of(*paths)))
    output = failure(take_back, TakeBackPlan(of(paths[0])))
    assert f"node 0 has 1 more log directory than {paths[0]}: name all" in output
    run(take_back, TakeBackPlan(of(*paths)))


def test_a_directory_that_kafka_made_is_taken_back(tmp_path: Path) -> None:
    data = tmp_path / "kafkas"
    data.mkdir()
    properties = MetaProperties(5, "a-cluster-of-Apache-Ka", "A" * 22, version=1)
    write_properties(REAL_FILES, str(data), properties, 0)
    metadata = full_metadata("4.4", bytes(16))
    for name, topic in metadata.topics.items():
        replicas = [
            partition._replace(replicas=(5,), isr=(5,), leader=5) for partition in topic.partitions
        ]
        metadata.topics[name] = topic._replace(partitions=tuple(replicas))
    records = list(records_of(metadata))
    write_metadata_directory(REAL_FILES, str(data), records, SnapshotId(len(records), 1), 0)
    output = run(take_back, TakeBackPlan(of(data)))
    assert output.endswith(f"minibroker serve --data-dir {data} --set broker.id=5\n")
    with Broker(config={"broker.id": 5}, data_dir=data) as broker:
        assert broker.topics.keys() == metadata.topics.keys()


def test_the_tree_of_another_cluster_is_not_overwritten(data: Path) -> None:
    run(hand_over, HandOverPlan(of(data)))
    properties = read_properties(REAL_FILES, str(data))
    assert properties is not None
    foreign = properties._replace(cluster_id="another-cluster")
    write_properties(REAL_FILES, str(data), foreign, 0)
    assert "but the directories are of cluster another-cluster" in failure(
        take_back, TakeBackPlan(of(data))
    )


def test_an_id_of_a_directory_that_is_none_is_named(data: Path) -> None:
    properties = read_properties(REAL_FILES, str(data))
    assert properties is not None
    for text in ("no id", "A"):
        damaged = properties._replace(directory_id=text)
        write_properties(REAL_FILES, str(data), damaged, 0)
        assert f"directory.id={text}: expected the 22 characters" in failure(
            hand_over, HandOverPlan(of(data))
        )


def test_each_release_of_hand_over_has_levels() -> None:
    assert tuple(reversed(LEVELS)) == RELEASES


def test_a_cluster_of_one_process(tmp_path: Path) -> None:
    with Cluster(3, data_dir=tmp_path / "c") as cluster:
        cluster.create_topic("t", partitions=3)
        cluster.wait_until_in_sync()
    properties = tmp_path / "server.properties"
    output = run(hand_over, HandOverPlan(of(tmp_path / "c"), properties=str(properties)))
    assert output.count("kafka-server-start.sh") == 3
    for number in range(3):
        path = Path(f"{properties}.{number}")
        assert path.stat().st_mode & 0o777 == 0o600
        assert f"node.id={number}\n" in path.read_text()
        assert path.read_text().count("@127.0.0.1:") == 3
    home = read_home([str(tmp_path / "c")])
    assert [node.id for node in home.nodes] == [0, 1, 2]
    with pytest.raises(StorageError, match="belongs to Apache Kafka"):
        Cluster(3, data_dir=tmp_path / "c").start()
    with pytest.raises(StorageError, match="one broker of several: name"):
        read_home([str(tmp_path / "c" / "broker-1")])
    run(take_back, TakeBackPlan(of(tmp_path / "c")))
    with Cluster(3, data_dir=tmp_path / "c") as cluster:
        cluster.wait_until_in_sync()


def reasons(metadata: Metadata, node_ids: Sequence[int] = (0, 1, 2)) -> str:
    return "; ".join(reasons_against(metadata, node_ids))


def test_things_that_cannot_be_taken_back_are_named() -> None:
    assert reasons(full_metadata("4.4", bytes(16))) == ""
    assert "topics with replicas on other nodes than 7: orders" in reasons(
        full_metadata("4.4", bytes(16)), [7]
    )
    tiered = full_metadata("4.4", bytes(16))
    name = next(iter(tiered.topics))
    entity = ConfigEntity(ConfigKind.TOPIC, name)
    tiered.configs[entity] = {"remote.storage.enable": "true"}
    assert f"topics with remote.storage.enable=true: {name}: " in reasons(tiered)
    newer = full_metadata("4.4", bytes(16))
    newer.features["metadata.version"] = 99
    assert "feature metadata.version is at level 99" in reasons(newer)


def test_an_acl_that_an_older_release_takes_for_another_one_is_not_handed_over() -> None:
    metadata = Metadata()
    pattern = Pattern(ResourceType.TOPIC, "t", PatternType.LITERAL)
    metadata.acls[Acl(pattern, Entry("User:a", "10.0.0.0/8", Operation.READ, Permission.DENY))] = (
        b""
    )
    (reason,) = reasons_to_keep(metadata, "4.3")
    assert "Kafka 4.3 takes the network 10.0.0.0/8 for the name of a host" in reason
    assert not list(reasons_to_keep(metadata, "4.4"))
    pattern = Pattern(ResourceType.TRANSACTIONAL_ID, "t", PatternType.LITERAL)
    entry = Entry("User:a", "*", Operation.TWO_PHASE_COMMIT, Permission.ALLOW)
    metadata.acls = {Acl(pattern, entry): b""}
    assert "has no operation TWO_PHASE_COMMIT" in next(reasons_to_keep(metadata, "4.0"))
    assert not list(reasons_to_keep(metadata, "4.1"))
