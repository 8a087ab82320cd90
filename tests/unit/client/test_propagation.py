"""Brokers that show a change of a topic later than its controller answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from minibroker.client.client import Client
from minibroker.client.patience import PAUSE_MAX_S, Patience
from minibroker.client.propagation import NewTopicState, wait_until_shown
from minibroker.client.settings import client_settings
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

OLD_ID, NEW_ID = b"o" * 16, b"n" * 16
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TopicAnswer(NamedTuple):
    """The topic in an answer of a broker."""

    leaders: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    topic_id: bytes = NEW_ID


MISSING = TopicAnswer(error=UNKNOWN)


class LateBrokers(Client):
    """Brokers 1, 2, … that answer as they are told, each its last answer for ever."""

    def __init__(self, *answers: list[TopicAnswer | Exception]) -> None:
        super().__init__(client_settings({"bootstrap.servers": "x:1"}))
        self.answers = dict(enumerate(answers, 1))
        self.questions: list[int] = []

    def _metadata(self, *topics: MetadataResponseTopic) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(node_id=node, host="x", port=node) for node in self.answers
        ]
        return MetadataResponse(brokers=brokers, cluster_id="c", topics=list(topics))

    def ask_any(self, request: Any, response: Any, versions: tuple[int, int]) -> MetadataResponse:
        return self._metadata()

    def ask(self, address: Any, request: Any, response: Any, versions: Any) -> MetadataResponse:
        node = address[1]
        self.questions.append(node)
        answers = self.answers[node]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        partitions = [
            MetadataResponsePartition(partition_index=number, leader_id=leader)
            for number, leader in enumerate(answer.leaders)
        ]
        topic = MetadataResponseTopic(
            name="t", error_code=answer.error, topic_id=answer.topic_id, partitions=partitions
        )
        return self._metadata(topic)


class Watch:
    """A clock that goes on during pauses alone."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.pauses: list[float] = []

    def patience(self, limit_s: float) -> Patience:
        return Patience(limit_s, lambda: self.now_s, self._pause)

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds


TWO = NewTopicState("t", NEW_ID, 2)
LED = TopicAnswer((1, 1))
DELETED = NewTopicState("t", NEW_ID, 0)


@pytest.mark.parametrize(
    ("state", "late", "done"),
    [
        (TWO, MISSING, LED),
        (TWO, TopicAnswer(error=ErrorCode.LEADER_NOT_AVAILABLE), LED),
        (TWO, TopicAnswer((1,)), LED),
        (TWO, TopicAnswer((1, -1)), LED),
        (TWO, TopicAnswer((1, 7)), LED),
        (TWO, TopicAnswer((1, 1), topic_id=OLD_ID), LED),
        (TWO, MISSING, TopicAnswer((1, 1), topic_id=ZERO_TOPIC_ID)),
        (TWO, MISSING, TopicAnswer(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)),
        (
            NewTopicState("t", ZERO_TOPIC_ID, 3, first_new=2),
            TopicAnswer((-1, 1)),
            TopicAnswer((-1, 1, 1)),
        ),
        (DELETED, LED, MISSING),
        (DELETED, TopicAnswer((-2, -2)), TopicAnswer((1,), topic_id=OLD_ID)),
    ],
)
def test_each_broker_is_asked_until_it_shows_the_change(
    state: NewTopicState, late: TopicAnswer, done: TopicAnswer
) -> None:
    brokers = LateBrokers([done], [late, late, done], [late, done])
    watch = Watch()
    wait_until_shown(brokers, state, watch.patience(30))
    assert brokers.questions == [1, 2, 3, 2, 3, 2]
    assert watch.pauses == [0.01, 0.02]


def test_a_broker_that_stays_behind_is_named_when_the_time_is_over() -> None:
    brokers = LateBrokers([LED], [MISSING])
    watch = Watch()
    with pytest.raises(TimeoutError) as failure:
        wait_until_shown(brokers, TWO, watch.patience(5))
    assert str(failure.value).startswith(
        "topic t has 2 partitions, but the broker at x:2 does not show that after 5 s"
    )
    assert watch.now_s == pytest.approx(105.0)
    assert max(watch.pauses) <= PAUSE_MAX_S


def test_a_broker_that_does_not_answer_is_not_waited_for() -> None:
    brokers = LateBrokers([ConnectionRefusedError("nobody")], [MISSING, LED])
    wait_until_shown(brokers, TWO, Watch().patience(5))
    assert brokers.questions == [1, 2, 2]
