"""The places where three minibrokers and three Apache Kafka 3.9.1 end differently, with the reason;
and those of mixed clusters.

A line is checked in both directions, as in `tests/compat/known_differences`.
"""

from __future__ import annotations

from tests.compat.verdict import Difference
from tests.compat_cluster.mixed import (
    ONE_KAFKA_CONTROLS,
    ONE_KAFKA_UNDER_MINIBROKER,
    TWO_KAFKAS_ONE_CONTROLS,
    TWO_KAFKAS_UNDER_MINIBROKER,
)

_TAKEN_BACK = "a_move_is_taken_back_whose_new_replica_is_alone_in_sync"
_LOSES = (
    "Kafka 3.9 deletes the only log that has all committed records, and nobody leads; Kafka 4 and"
    " minibroker refuse"
)

LINES: list[Difference] = [
    Difference(
        "the_controller_that_leads_is_killed",
        (
            "dead: state.leader_epoch:",
            "dead: metadata of 2.partitions[0].leader_epoch:",
            "back: state.leader_epoch:",
            "log: epochs[1][0]:",
            "log: batches[1].leader_epoch:",
        ),
        "a new controller of Kafka writes a state without the dead leader, then one with the next"
        " leader; minibroker writes one",
        ours=1,
        kafka_39=2,
    ),
    Difference(
        "a_leaderless_partition_moves",
        ("both are back: state.leader_epoch:",),
        "when a broker of the target starts, Kafka begins the move again, with a new leader epoch",
        ours=6,
        kafka_39=7,
    ),
    *(
        Difference(_TAKEN_BACK, (place,), _LOSES, ours=ours, kafka_39=kafka)
        for place, ours, kafka in (
            ("take it back.responses[0].partitions[0].error_code:", 39, 0),
            ("take it back.responses[0].partitions[0].error_message:", "text", None),
            ("who leads:", 0, -1),
            ("the log that had everything is there:", True, False),
        )
    ),
]

NOT_YET: dict[str, str] = {}
"""Situations that only Kafka plays, with the reason."""


def differences_of(situation: str) -> list[Difference]:
    """Return the lines of one situation."""
    return [line for line in LINES if line.scenario == situation]


_EITHER = {
    "the_controller_that_leads_is_killed": "brokers 1 and 2 are of two kinds, and either may become"
    " the controller: minibroker writes one state where Kafka writes two"
}

_UNDER_MINIBROKER = [*differences_of("a_leaderless_partition_moves"), *differences_of(_TAKEN_BACK)]

MIXED_LINES: dict[str, list[Difference]] = {
    ONE_KAFKA_UNDER_MINIBROKER: _UNDER_MINIBROKER,
    ONE_KAFKA_CONTROLS: differences_of("the_controller_that_leads_is_killed"),
    TWO_KAFKAS_UNDER_MINIBROKER: _UNDER_MINIBROKER,
    TWO_KAFKAS_ONE_CONTROLS: [],
}
"""Kind of mixed cluster → the lines above that hold there."""

MIXED_NOT_YET: dict[str, dict[str, str]] = {
    ONE_KAFKA_UNDER_MINIBROKER: NOT_YET | _EITHER,
    ONE_KAFKA_CONTROLS: {},
    TWO_KAFKAS_UNDER_MINIBROKER: NOT_YET,
    TWO_KAFKAS_ONE_CONTROLS: _EITHER,
}
"""Kind of mixed cluster → situations that it does not play, with the reason."""
