"""Damaged and hostile bytes through the proxy: nothing raises, and what it cannot read passes."""

from __future__ import annotations

import random

import pytest

from minibroker.kafka.protocol.api_keys import APIS, Api
from minibroker.proxy.desk import Desk
from minibroker.proxy.limits import PENDING_MAX
from minibroker.rig.faults import Fault
from minibroker.trace.decode import has_answer, read_head
from minibroker.trace.line import to_line
from tests.fuzz.damage import damaged
from tests.support.proxy_wire import Conversation, framed
from tests.support.trace_frames import random_frames, recorded_frames

SEEDS = range(2)
RULES = (
    {"error": "NOT_COORDINATOR"},
    {"error": "NOT_LEADER_OR_FOLLOWER", "topic": "topic-a"},
    {"error": "REQUEST_TIMED_OUT", "partition": 1},
    {"drop": "before", "probability": 0.01},
    {"twice": True},
    {"truncate_bytes": 5, "probability": 0.01},
    {"delay_ms": 5},
    {"bytes_per_s": 1000},
)


def pieces(chance: random.Random, data: bytes) -> list[bytes]:
    """Return the bytes in pieces of any size."""
    result = []
    while data:
        size = chance.choice((1, 7, 100, 5000))
        result.append(data[:size])
        data = data[size:]
    return result


def watched() -> Desk:
    """Return a desk that somebody looks at."""
    desk = Desk()
    desk.onlookers.append(to_line)  # type: ignore[arg-type]  # the line is not needed
    return desk


@pytest.mark.parametrize("is_watched", [False, True])
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_damaged_frames_pass_as_they_are(api: Api, is_watched: bool) -> None:
    for seed in SEEDS:
        chance = random.Random(seed)
        conversation = Conversation(watched() if is_watched else None)
        data = b"".join(
            framed(damaged(chance, bytes(frames.request))) for frames in random_frames(api, seed)
        )
        for piece in pieces(chance, data):
            conversation.client_sends(piece)
        assert conversation.received == data
        for frames in random_frames(api, seed):
            conversation.kafka_sends(framed(damaged(chance, bytes(frames.answer or b"1234"))))


def test_random_bytes_pass_in_both_ways() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        conversation = Conversation(watched() if seed % 2 else None)
        data = chance.randbytes(chance.randrange(300))
        for piece in pieces(chance, data):
            conversation.client_sends(piece)
        conversation.requests.cutter.flush()
        assert conversation.received == data
        answer = chance.randbytes(chance.randrange(300))
        for piece in pieces(chance, answer):
            conversation.kafka_sends(piece)
        conversation.answers.cutter.flush()
        assert conversation.answered == answer


@pytest.mark.parametrize("broker", ["3.9.1", "4.4.0"])
@pytest.mark.parametrize("is_watched", [False, True])
def test_recorded_conversations_pass(broker: str, is_watched: bool) -> None:
    """But for their addresses. Each request gets its answer, in order."""
    for seed in SEEDS:
        chance = random.Random(seed)
        conversation = Conversation(watched() if is_watched else None)
        requests = answers = b""
        for frames in recorded_frames(broker):
            requests += framed(frames.request)
            if frames.answer is not None:
                answers += framed(frames.answer)
        for piece in pieces(chance, requests):
            conversation.client_sends(piece)
        assert conversation.received == requests
        for piece in pieces(chance, answers):
            conversation.kafka_sends(piece)
        assert not conversation.answers.queue
        assert conversation.answers.cutter.rest_bytes == 0


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_rules_on_damaged_frames_do_not_raise(api: Api, rule: dict[str, object]) -> None:
    for seed in SEEDS:
        chance = random.Random(seed)
        desk = watched()
        desk.faults.add(Fault(seed=seed, **rule))  # type: ignore[arg-type]
        conversation = Conversation(desk)
        for frames in random_frames(api, seed):
            request = bytes(frames.request)
            if chance.random() < 0.5:
                request = damaged(chance, request)
            conversation.client_sends(framed(request))
            conversation.run_due()
            answer = bytes(frames.answer or b"1234")
            if conversation.answers.queue and not conversation.end_reason:
                if chance.random() < 0.5:
                    answer = damaged(chance, answer)
                conversation.kafka_sends(framed(answer))
                while conversation.later_calls:
                    conversation.run_due()


def test_a_client_that_sends_without_end_is_not_read() -> None:
    conversation = Conversation()
    (frames, *_) = random_frames(APIS[18], 1)
    assert has_answer(read_head(frames.request), frames.request)
    count = 0
    while conversation.is_client_read:
        conversation.client_sends(framed(frames.request))
        count += 1
    assert count == PENDING_MAX
