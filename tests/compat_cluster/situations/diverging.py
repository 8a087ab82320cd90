"""Brokers 1 and 2 lead by turns without each other: their logs part in two epochs (KIP-279)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.compat_cluster.situations import kill, situation, start

if TYPE_CHECKING:
    from tests.compat_cluster.scene import Scene
    from tests.compat_cluster.situations import Steps

BY_TURNS = (kill(2), kill(1), start(2), kill(2), start(1), start(2))


@situation(*BY_TURNS)
def logs_part_in_two_epochs(on: Scene) -> Steps:
    topic = on.topic([1, 2], unclean_leader_election_enable="true")
    on.produce("on both", topic, "a", "b", at=1)
    yield
    on.until(topic, 1, [1])
    on.produce("first alone", topic, "c1", "d1", at=1)
    yield
    on.until(topic, -1, [1])
    yield
    on.until(topic, 2, [2])
    on.produce("second alone", topic, "c2", at=2)
    on.state("second alone", topic)
    yield
    on.until(topic, -1, [2])
    yield
    on.until(topic, 1, [1])
    on.produce("first alone again", topic, "e1", at=1)
    on.state("first alone again", topic)
    yield
    on.until(topic, 1, [1, 2])
    on.state("both", topic)
    on.logs("log", topic, on=[1, 2])
    on.fetched("all", topic, at=1)


@situation(*BY_TURNS)
def an_empty_epoch_between_two_others(on: Scene) -> Steps:
    """The second broker leads and takes nothing: its epoch is not in the logs."""
    topic = on.topic([1, 2], unclean_leader_election_enable="true")
    on.produce("on both", topic, "a", at=1)
    yield
    on.until(topic, 1, [1])
    on.produce("first alone", topic, "b1", at=1)
    yield
    on.until(topic, -1, [1])
    yield
    on.until(topic, 2, [2])
    yield
    on.until(topic, -1, [2])
    yield
    on.until(topic, 1, [1])
    on.produce("first alone again", topic, "c1", at=1)
    yield
    on.until(topic, 1, [1, 2])
    on.state("both", topic)
    on.logs("log", topic, on=[1, 2])
