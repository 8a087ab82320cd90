"""minibroker and Apache Kafka serve the same data in turns, while clients work.

After each switch an administrator sees what was there before it, and clients go on: a producer with
its next sequence, a transaction that was begun on the other side, groups where they were.

`make outgrow` runs more rounds, and older releases. The oracle is the other side's own answer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.outgrowing.administration import Administration
from tests.outgrowing.sides import OneCluster
from tests.outgrowing.view import Omission, View, differences, topic_of, view_of
from tests.outgrowing.work import HOT, Work

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.java

ROUNDS = int(os.environ.get("MINIBROKER_OUTGROW_ROUNDS", "2"))
"""How often Kafka takes over and gives back; with more than usual, older releases do, too."""
USUAL_ROUNDS = 2
RELEASES = ["4.4", "4.0", "3.9"] if ROUNDS > USUAL_ROUNDS else ["4.4"]
PROTOCOLS = {"3.9": ("classic",)}
"""Release → protocols of groups that it has, if not both."""
WITH_SHARE_GROUPS = frozenset({"4.4"})
IN_FLIGHT = [
    Omission(section, lambda name: topic_of(name) == HOT, "a producer sends while the sides switch")
    for section in ("offsets", "producers")
]


class Alternation:
    """Phases of a cluster, numbered from 0, each with the view of its end."""

    def __init__(self, cluster: OneCluster, protocols: tuple[str, ...]) -> None:
        cluster.serve()
        self._cluster = cluster
        self.work = Work(cluster.clients(), protocols)
        groups = [f"{protocol}-new" for protocol in protocols if protocol == "consumer"]
        self._administration = Administration(cluster.clients(), cluster.login, groups)
        self._phase = 0
        self._view: View = {}

    def live(self, *, is_shared: bool = False) -> None:
        """Work for a phase, with a share group or without, and keep the view of its end."""
        self.work.work(self._phase)
        self._administration.change(self._phase)
        if self._cluster.login is None:
            self.work.use_libraries(self._phase)
        if is_shared:
            self.work.share()
        self._view = view_of(self._cluster.address, self._cluster.login)
        self._phase += 1

    def switch(self, leave: Callable[[], None], change: Callable[[], object]) -> None:
        """End this side while a producer sends, and hand the data to the other side, not started
        yet.
        """
        self.work.hot.send()
        leave()
        change()

    def compare(self) -> None:
        """Check that the side that serves now shows what the last one showed."""
        view = view_of(self._cluster.address, self._cluster.login)
        changes = differences(self._view, view, IN_FLIGHT)
        assert not changes, "\n".join(changes)
        self.work.hot.finish()
        self.work.check()


@pytest.mark.parametrize("release", RELEASES)
def test_both_sides_go_on_where_the_other_stopped(
    release: str, new_cluster: Callable[..., OneCluster]
) -> None:
    """The sides stop in the even rounds, and are killed in the odd ones."""
    cluster = new_cluster(release)
    phases = Alternation(cluster, PROTOCOLS.get(release, ("classic", "consumer")))
    phases.live()
    for number in range(ROUNDS):
        leave = cluster.kill if number % 2 else cluster.stop
        phases.switch(leave, cluster.hand_over)
        cluster.kafka()
        phases.compare()
        phases.live(is_shared=release in WITH_SHARE_GROUPS)
        phases.switch(leave, cluster.take_back)
        cluster.serve()
        phases.compare()
        phases.live()
    phases.work.close()
