"""`hand-over` and `take-back` are killed before any step that they take on the disk.

Afterwards the data belong to one side, which serves them as if nothing was, or the verb has to go
on. The verb run again completes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.files import REAL_FILES
from minibroker.tools.kraft.log_reading import read_metadata_directory
from tests.outgrowing.administration import Administration
from tests.outgrowing.settings import REPLICATED, SETTINGS
from tests.outgrowing.sides import VERB_SECONDS, OneCluster, Outcome
from tests.outgrowing.view import View, differences, view_of
from tests.outgrowing.work import Work
from tests.support.processes import StartError
from tests.support.taking_over import METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.tools.kraft.metadata import Metadata

pytestmark = pytest.mark.java

USUAL_KILLS = 4
KILLS = int(os.environ.get("MINIBROKER_OUTGROW_KILLS", str(USUAL_KILLS)))
"""How many places of each verb, from its first step to its last."""
NODES = 3
KAFKA_STARTS = 2
"""How often Kafka has to start on what a kill left; each takes seconds."""


class KilledVerb:
    """A verb, with the data as they were before it."""

    def __init__(self, cluster: OneCluster, *words: str) -> None:
        self.cluster = cluster
        self.data = cluster.minibroker.data_dir
        self._saved = self.data.with_name("before")
        shutil.copytree(self.data, self._saved)
        self._words = words
        self.steps = int(self._run(0).stderr.split()[-1])

    def _run(self, limit: int) -> subprocess.CompletedProcess[str]:
        command = self.cluster.verb_command(*self._words)
        command[1:3] = ["-m", "tests.outgrowing.killed_at", str(limit)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=VERB_SECONDS
        )

    def kills(self) -> Iterator[int]:
        """Yield the numbers of steps; the data are those that a kill before this step left."""
        count = min(KILLS, self.steps)
        for number in range(count):
            limit = self.steps - number * self.steps // count
            self.restore()
            ended = self._run(limit)
            assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr
            yield limit

    def restore(self) -> None:
        """Put the data back as they were before the verb."""
        shutil.rmtree(self.data)
        shutil.copytree(self._saved, self.data)

    @contextmanager
    def copied(self) -> Iterator[None]:
        """Put the data back afterwards as they are now."""
        copy = self.data.with_name("copy")
        shutil.copytree(self.data, copy)
        yield
        shutil.rmtree(self.data)
        copy.rename(self.data)

    def has_all_metadata(self) -> bool:
        """Return whether each node has its metadata still. Else the verb has begun with that node,
        and only the verb goes on.
        """
        paths = list(self.data.glob(f"**/{METADATA}"))
        count = len(self.cluster.properties_files)
        return len(paths) == count and all(path.is_dir() for path in paths)

    def metadata(self) -> Metadata:
        """Return Kafka's metadata without what a second hand-over makes anew: epochs, the ids of
        ACLs, and of directories that had none.
        """
        path = next(self.data.glob(f"**/{METADATA}")).parent
        metadata = read_metadata_directory(REAL_FILES, str(path)).metadata
        metadata.epoch = 0
        metadata.acls = dict.fromkeys(metadata.acls, b"")
        metadata.topics = {
            name: topic._replace(
                partitions=tuple(
                    partition._replace(leader_epoch=0, partition_epoch=0, directories=())
                    for partition in topic.partitions
                )
            )
            for name, topic in metadata.topics.items()
        }
        return metadata

    def again(self) -> Outcome:
        """Run the verb to its end."""
        return self.cluster.run_verb(*self._words)


def serves(cluster: OneCluster) -> bool:
    """Return whether minibroker starts; if not, it has said that the data are Kafka's."""
    try:
        cluster.serve()
    except StartError as error:
        if "minibroker take-back" not in str(error):
            raise
        return False
    return True


def served_view(cluster: OneCluster) -> View:
    """Return the view of the side that serves, and kill that."""
    view = view_of(cluster.address)
    cluster.kill()
    return view


def work_on(cluster: OneCluster) -> None:
    """Let minibroker serve, and clients work; it serves on."""
    cluster.serve()
    work = Work(cluster.clients(), ["classic"])
    work.work(0)
    Administration(cluster.clients(), None, []).change(0)


@pytest.fixture(params=[1, NODES] if KILLS > USUAL_KILLS else [1])
def cluster(request: pytest.FixtureRequest, new_cluster: Callable[..., OneCluster]) -> OneCluster:
    """A cluster whose brokers work."""
    brokers = request.param
    settings = SETTINGS if brokers == 1 else REPLICATED
    cluster = new_cluster("4.4", settings=settings, brokers=brokers)
    work_on(cluster)
    return cluster


def test_a_killed_hand_over_is_done_or_has_not_begun(cluster: OneCluster) -> None:
    first_view = served_view(cluster)
    verb = KilledVerb(cluster, "hand-over", "--to", "4.4")
    expected = verb.metadata()
    for step in verb.kills():
        with verb.copied():
            if serves(cluster):
                assert differences(first_view, served_view(cluster)) == [], step
        outcome = verb.again()
        assert outcome.code == 0, (step, outcome.errors)
        assert verb.metadata() == expected, step
    cluster.hand_over()
    cluster.kafka()
    assert differences(first_view, served_view(cluster)) == []


def test_a_killed_take_back_is_done_or_has_not_begun(cluster: OneCluster) -> None:
    cluster.stop()
    cluster.hand_over()
    cluster.kafka()
    Administration(cluster.clients(), None, []).change(1)
    first_view = served_view(cluster)
    starts = 0
    verb = KilledVerb(cluster, "take-back")
    for step in verb.kills():
        with verb.copied():
            if serves(cluster):
                assert differences(first_view, served_view(cluster)) == [], step
            elif starts < KAFKA_STARTS and verb.has_all_metadata():
                starts += 1
                cluster.kafka()
                assert differences(first_view, served_view(cluster)) == [], step
        outcome = verb.again()
        assert outcome.code == 0 or "nothing to take back" in outcome.errors, (step, outcome.errors)
        assert serves(cluster), step
        assert differences(first_view, served_view(cluster)) == [], step
