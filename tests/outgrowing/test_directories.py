"""Several log directories of one broker, and several brokers of one process, change sides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.outgrowing.administration import Administration
from tests.outgrowing.settings import REPLICATED
from tests.outgrowing.view import differences, view_of
from tests.outgrowing.work import Work
from tests.support.processes import StartError
from tests.support.taking_over import METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.outgrowing.sides import OneCluster

pytestmark = pytest.mark.java

DIRECTORIES = ("first", "second", "third")
PROTOCOLS = ("classic", "consumer")
NODES = 3


def alternate(
    cluster: OneCluster, leave: str, *, lives: bool = True
) -> Mapping[str, Mapping[object, object]]:
    """Let both sides serve in turns, minibroker first and last; return the last view.

    `leave`: `stop` or `kill`. `lives`: whether clients live across the switches.
    """
    cluster.serve()
    work = Work(cluster.clients(), PROTOCOLS, lives=lives)
    administration = Administration(cluster.clients(), None, [])
    for phase, (change, start) in enumerate(
        ((cluster.hand_over, cluster.kafka), (cluster.take_back, cluster.serve))
    ):
        work.work(phase)
        administration.change(phase)
        first_view = view_of(cluster.address)
        getattr(cluster, leave)()
        change()
        start()
        after = view_of(cluster.address)
        assert differences(first_view, after) == []
        work.check()
    work.work(2)
    work.check()
    work.close()
    return after


@pytest.mark.parametrize("leave", ["stop", "kill"])
def test_each_log_directory_keeps_its_partitions(
    leave: str, new_cluster: Callable[..., OneCluster]
) -> None:
    cluster = new_cluster("4.4", directories=DIRECTORIES)
    view = alternate(cluster, leave)
    assert set(view["directories"].values()) == {str(cluster.root / name) for name in DIRECTORIES}


@pytest.mark.parametrize("leave", ["stop", "kill"])
def test_three_brokers_become_three_nodes(
    leave: str, new_cluster: Callable[..., OneCluster]
) -> None:
    """Nodes that are killed give no answer. Those that stop together name no broker (`sides`), and
    then a client that lives on may be stuck for good: librdkafka 2.16 plans to begin with its
    bootstrap servers, and takes the plan back with the answer that made it necessary.
    """
    cluster = new_cluster("4.4", settings=REPLICATED, brokers=NODES)
    view = alternate(cluster, leave, lives=leave == "kill")
    assert view["cluster"]["nodes"] == list(range(NODES))


def test_kafka_does_not_start_on_what_was_taken_back(
    new_cluster: Callable[..., OneCluster],
) -> None:
    """Kafka would begin an empty cluster there, and delete all logs."""
    cluster = new_cluster("4.4")
    cluster.serve()
    Work(cluster.clients(), PROTOCOLS).work(0)
    first_view = view_of(cluster.address)
    cluster.stop()
    properties = Path(cluster.minibroker.data_dir, "meta.properties")
    own_properties = properties.read_text()
    cluster.hand_over()
    cluster.take_back()
    with pytest.raises(StartError, match=METADATA):
        cluster.kafka()
    cluster.kill()
    # The same for a directory that was never handed over.
    properties.write_text(own_properties)
    Path(cluster.minibroker.data_dir, METADATA).unlink()
    cluster.serve()
    cluster.stop()
    with pytest.raises(StartError, match=METADATA):
        cluster.kafka()
    cluster.kill()
    cluster.serve()
    assert differences(first_view, view_of(cluster.address)) == []
