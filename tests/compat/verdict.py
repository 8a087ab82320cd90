"""The verdict on the answers of one case: the differences, and the known ones among them.

A known difference is exact: a place in the decoded answers, the value that minibroker gives there
and the values of both Kafkas. All of them are compared, so a change on any side shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NEWEST = 99

MINIBROKER = "minibroker"
KAFKA_39 = "3.9.1"
KAFKA_44 = "4.4.0"

ABSENT = "absent"
"""The value at a place that an answer does not have."""

AS_OURS = "as minibroker"
"""The value of a Kafka that answers as minibroker does."""

Values = dict[str, Any]
"""Broker → its value at one place."""


class Difference(NamedTuple):
    """Places where a Kafka answers differently from minibroker, in versions `since` … `until`.

    One line names several places when the reason and all values are the same.
    """

    scenario: str
    places: tuple[str, ...]
    """Places in the transcript, as `dialogue.flatten` writes them: `second.topics[0].name:`."""
    reason: str
    ours: Any
    kafka_39: Any = AS_OURS
    kafka_44: Any = AS_OURS
    since: int = 0
    until: int = NEWEST

    def covers(self, place: str) -> bool:
        """Return whether this line is about `place`."""
        return place in self.places

    def fault_of(self, values: Values) -> str | None:
        """Return how `values` contradict this line, None if they do not."""
        stated = {MINIBROKER: self.ours, KAFKA_39: self.kafka_39, KAFKA_44: self.kafka_44}
        expected = {
            broker: self.ours if stated[broker] == AS_OURS else stated[broker] for broker in values
        }
        return None if expected == values else f"the known difference is {_worded(expected)}"


class Lacking(NamedTuple):
    """Structs that one Kafka's answer lacks entirely, in versions `since` … `until`.

    minibroker's answer equals that of the Kafka that it follows, leaf for leaf.
    """

    scenario: str
    places: tuple[str, ...]
    """Paths of the structs in the transcript: `all.results[0].configs.retention.ms`."""
    reason: str
    lacked_by: str
    followed: str
    since: int = 0
    until: int = NEWEST

    def covers(self, place: str) -> bool:
        """Return whether `place` is inside one of the structs."""
        return any(place.startswith((f"{struct}.", f"{struct}[")) for struct in self.places)

    def fault_of(self, values: Values) -> str | None:
        """Return how `values` contradict this line, None if they do not."""
        if values[self.lacked_by] != ABSENT:
            return f"known to be absent at {self.lacked_by}"
        if values[MINIBROKER] != values[self.followed]:
            return f"known to be as at {self.followed}"
        return None


KnownDifference = Difference | Lacking


def complaints_about(
    answers: Mapping[str, Mapping[str, Any]], differences: Sequence[KnownDifference]
) -> list[str]:
    """Return a sentence for each place that no line explains, and for each line that is stale.

    `answers` is broker → place → value; `differences` are the lines of this scenario and version.
    """
    differing = differences_in(answers)
    sentences = []
    for place, values in differing.items():
        lines = [line for line in differences if line.covers(place)]
        fault: str | None = f"{len(lines)} known differences are about it"
        if len(lines) == 1:
            fault = lines[0].fault_of(values)
        if fault is not None:
            sentences.append(f"{place} {_worded(values)}; {fault}")
    sentences += [
        f"{place} is the same everywhere: the known difference is gone"
        for line in differences
        for place in line.places
        if not any(line._replace(places=(place,)).covers(differs) for differs in differing)
    ]
    return sentences


def differences_in(answers: Mapping[str, Mapping[str, Any]]) -> dict[str, Values]:
    """Return place → values of the places where the brokers do not agree."""
    values_of = {}
    places = dict.fromkeys(place for answer in answers.values() for place in answer)
    for place in places:
        values = {broker: answer.get(place, ABSENT) for broker, answer in answers.items()}
        if any(value != values[MINIBROKER] for value in values.values()):
            values_of[place] = values
    return values_of


def _worded(values: Values) -> str:
    return ", ".join(f"{broker} {value!r}" for broker, value in values.items())
