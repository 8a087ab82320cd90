"""Plays situations on one cluster: those with the same faults together.

Between two faults the situations run in several threads; each has topics and connections of its
own. A situation that fails is left out from then on, the others go on.
"""

from __future__ import annotations

import json
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tests.compat_cluster.scene import Scene, creation
from tests.compat_cluster.situations import FIRST_CONTROLLER
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.compat_cluster.situations import Fault, Situation, Steps
    from tests.compat_cluster.three_brokers import ThreeBrokers

THREADS = 4

Record = dict[str, Any]
"""Label → value, as JSON gives them back."""

INTERNAL_TOPICS = {"__consumer_offsets": (1, 0, 2), "__transaction_state": (1, 0, 2)}
"""The internal topics and their replicas; the first is the coordinator of everything."""


class Actor:
    """One situation on its way."""

    def __init__(self, situation: Situation, brokers: ThreeBrokers) -> None:
        self.situation = situation
        self.scene = Scene(situation.name, brokers)
        self.error: BaseException | None = None
        self._steps: Steps = situation.play(self.scene)

    def go_on(self) -> None:
        """Run to the next fault, or to the end."""
        if self.error is not None:
            return
        try:
            next(self._steps)
        except StopIteration:
            return
        except Exception as error:
            self.error = error

    @property
    def record(self) -> Record:
        """Return the record; raise what ended the situation."""
        if self.error is not None:
            raise self.error
        record: Record = {}
        for label, value in self.scene.transcript:
            assert label not in record, f"{self.situation.name}: two notes are called {label!r}"
            record[label] = value
        plain: Record = json.loads(json.dumps(record))
        return plain


def make_internal_topics(brokers: ThreeBrokers) -> None:
    """Make the coordinators' topics with known leaders: placed by a broker, they are anywhere."""
    for name, replicas in INTERNAL_TOPICS.items():
        with WireClient(*brokers.address(brokers.tree.controller or 0)) as client:
            answer = client.call(
                "create_topics",
                5,
                timeout_ms=60_000,
                topics=[creation(name, replicas, cleanup_policy="compact")],
            )
        assert answer["topics"][0]["error_code"] == 0, answer


class Stage:
    """One cluster, and what was played on it: each episode once, when it is first asked for.

    An episode is all situations with the same faults.
    """

    def __init__(self, situations: Iterable[Situation], brokers: ThreeBrokers) -> None:
        self.brokers = brokers
        self._episodes: dict[tuple[Fault, ...], list[Situation]] = defaultdict(list)
        for situation in situations:
            self._episodes[situation.faults].append(situation)
        self._played: dict[str, Actor] = {}

    def record_of(self, situation: Situation) -> Record:
        """Return the record of a situation; raise what ended it."""
        if situation.name not in self._played:
            _prepare(self.brokers)
            actors = [Actor(other, self.brokers) for other in self._episodes[situation.faults]]
            self._played |= {actor.situation.name: actor for actor in actors}
            _play_episode(situation.faults, actors, self.brokers)
        return self._played[situation.name].record


def stage_of(situations: Iterable[Situation], brokers: ThreeBrokers) -> Iterator[Stage]:
    """Start the brokers, yield their stage, and kill them."""
    try:
        brokers.start_all()
        make_internal_topics(brokers)
        yield Stage(situations, brokers)
    finally:
        brokers.kill_all()


def _prepare(brokers: ThreeBrokers) -> None:
    """Give the coordinators' topics their first replica as leader, the cluster its controller."""
    brokers.make_controller(FIRST_CONTROLLER)
    brokers.wait_until_ready()
    scene = Scene("internal", brokers)
    topics = [{"topic": name, "partitions": [0]} for name in INTERNAL_TOPICS]
    for name, replicas in INTERNAL_TOPICS.items():
        leader = (brokers.tree.state(name, 0) or {}).get("leader", replicas[0])
        scene.until(name, leader, replicas)
    scene.quietly(FIRST_CONTROLLER, "elect_leaders", 2, topic_partitions=topics, timeout_ms=60_000)
    for name, replicas in INTERNAL_TOPICS.items():
        scene.until(name, replicas[0], replicas)
    scene.close()


def _play_episode(faults: tuple[Fault, ...], actors: list[Actor], brokers: ThreeBrokers) -> None:
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(Actor.go_on, actors))
        for fault in faults:
            fault.happen(brokers)
            list(threads.map(Actor.go_on, actors))
    for actor in actors:
        actor.scene.close()
