"""Producer state and Apache Kafka 3.9.1 judge the same walk of an idempotent producer's batches."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.broker.storage.producer_state import ProducerState
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records.batch import SEQUENCE_MAX, read_header
from tests.compat.dialogue import Dialogue
from tests.support.batches import batch

if TYPE_CHECKING:
    from tests.support.peers import KafkaPeer

STEPS = 400
SEED = 20_261_121
PRODUCERS = (7_000_001, 7_000_002)


class Send(NamedTuple):
    producer: int
    epoch: int
    sequence: int
    count: int
    timestamp: int


class Verdict(NamedTuple):
    code: ErrorCode
    base_offset: int
    append_time: int


def walk() -> list[Send]:
    """Mostly the next batch of a producer, often a repetition, sometimes anything; begins before
    the wrap."""
    choose = random.Random(SEED)
    history: dict[int, list[Send]] = {producer: [] for producer in PRODUCERS}
    steps = []
    for step in range(STEPS):
        producer = choose.choice(PRODUCERS)
        earlier = history[producer]
        last = earlier[-1] if earlier else Send(producer, 0, SEQUENCE_MAX - 40, 1, 0)
        following = (last.sequence + last.count) % (SEQUENCE_MAX + 1)
        kind = choose.choices(("next", "repeat", "gap", "epoch", "any"), (50, 30, 8, 4, 8))[0]
        count = choose.randint(1, 4)
        send = Send(producer, last.epoch, following, count, 1_000_000 + step)
        match kind:
            case "repeat" if earlier:
                send = choose.choice(earlier[-8:])._replace(timestamp=1_000_000 + step)
            case "gap":
                send = send._replace(sequence=(following + choose.randint(1, 3)) % 2**31)
            case "epoch":
                send = send._replace(epoch=last.epoch + 1, sequence=choose.choice((0, 0, 5)))
            case "any":
                send = send._replace(epoch=choose.randint(0, 5), sequence=choose.randint(0, 20))
            case _:
                pass
        is_expected = kind == "next" or (kind == "epoch" and send.sequence == 0)
        if is_expected:
            earlier.append(send)
        steps.append(send)
    return steps


@pytest.mark.java
def test_same_verdicts_as_kafka(kafka_39: KafkaPeer) -> None:
    state = ProducerState("topic-0")
    end_offset = 0
    counts: dict[str, int] = {}
    talk = Dialogue(kafka_39.host, kafka_39.port, scenario="producers", api="produce", version=7)
    with closing(talk):
        topic = talk.make_topic("idempotent")
        for step, send in enumerate(walk()):
            theirs = ask_kafka(talk, topic, send)
            ours, end_offset = judge(state, send, end_offset)
            assert ours == theirs, f"step {step}: {send}"
            kind = ours.code.name if ours.append_time < 0 else "repetition"
            counts[kind] = counts.get(kind, 0) + 1
    assert min(counts.get(kind, 0) for kind in ("NONE", "repetition")) > 50, counts
    assert counts["OUT_OF_ORDER_SEQUENCE_NUMBER"] > 10
    assert counts["INVALID_PRODUCER_EPOCH"] > 10


def as_batch(send: Send, base_offset: int) -> bytes:
    return batch(
        *[b"x"] * send.count,
        producer_id=send.producer,
        producer_epoch=send.epoch,
        sequence=send.sequence,
        timestamp_ms=send.timestamp,
        base_offset=base_offset,
    )


def ask_kafka(talk: Dialogue, topic: str, send: Send) -> Verdict:
    records = as_batch(send, 0)
    answer = talk.quietly(
        "produce",
        7,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[{"name": topic, "partition_data": [{"index": 0, "records": records}]}],
    )
    outcome = answer["responses"][0]["partition_responses"][0]
    return Verdict(
        ErrorCode(outcome["error_code"]), outcome["base_offset"], outcome["log_append_time_ms"]
    )


def judge(state: ProducerState, send: Send, end_offset: int) -> tuple[Verdict, int]:
    """(our answer, the log's end offset after it)."""
    header = read_header(as_batch(send, end_offset))
    try:
        repeated = state.append(header)
    except KafkaError as error:
        return Verdict(error.code, -1, -1), end_offset
    if repeated is not None:
        return Verdict(ErrorCode.NONE, repeated.first_offset, repeated.timestamp), end_offset
    return Verdict(ErrorCode.NONE, end_offset, -1), end_offset + send.count
