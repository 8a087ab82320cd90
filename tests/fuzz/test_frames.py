"""Frames of every served API and version against a live broker, good, at every edge and damaged.

Each is answered or ends its connection within a bound, memory stays flat, nothing is made that no
frame asked for, and the broker's log has no traceback. Every run makes the same frames; `make fuzz`
makes new ones, as many as MINIBROKER_FUZZ_FRAMES says, and prints the seed: MINIBROKER_FUZZ_SEED
brings them back.
"""

from __future__ import annotations

import sys
import time
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers.registry import (
    BETWEEN_BROKERS,
    HANDLERS,
    ONLY_WITH_ZOOKEEPER,
    supported_versions,
)
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import load_messages
from minibroker.kafka.protocol.header import parse_request_header
from minibroker.kafka.protocol.primitives import Reader
from tests.fuzz.exploring import FRAMES, IS_EXPLORING, SEED
from tests.fuzz.feeding import Feeder
from tests.fuzz.frames import CREATE_PARTITIONS, CREATE_TOPICS, TOPIC, Frame, FrameMaker
from tests.support.broker import Minibroker
from tests.support.probe import answers_metadata
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator

BOUND_S = 2.0 if IS_EXPLORING else 60.0
"""Bound in a usual run, where the machine may be busy: then only a standstill counts."""
GROWTH_BYTES_MAX = 120_000_000
PARTITIONS_MAX = 40
"""Requests for more partitions than this take their time, as in Kafka."""
QUESTIONS = frozenset(
    {
        *(1, 2, 3, 9, 10, 15, 16, 18, 23, 29, 32, 35, 41, 46),
        *(48, 50, 55, 60, 61, 65, 66, 69, 74, 75),
    }
)
"""APIs that only read: none of their names makes anything."""
INTERNAL = {"__consumer_offsets", "__transaction_state"}
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


class Fuzzed:
    """A broker of its own, so that only the fuzzing makes it grow."""

    def __init__(self, directory: Path) -> None:
        self.broker = Minibroker(
            directory / "data", directory / "broker.log", topics=[f"{TOPIC}:2"], settings=SETTINGS
        )
        self.broker.start()
        with self.client() as client:
            for key_type in (0, 1):
                client.call("find_coordinator", 1, key="x", key_type=key_type)
            answer = client.call("metadata", 12, topics=[{"name": TOPIC}])
        self.topic_id: bytes = answer["topics"][0]["topic_id"]
        self.allowed_topics = {TOPIC, *INTERNAL}
        """Topics that frames may have created, and those of the start."""

    def client(self) -> WireClient:
        return WireClient(self.broker.host, self.broker.port)

    @property
    def address(self) -> tuple[str, int]:
        return self.broker.host, self.broker.port

    def memory_bytes(self) -> int:
        """Return the memory that is the process's own: no pages of files."""
        for line in Path(f"/proc/{self.broker.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the kernel does not tell what a process holds")

    def topics(self) -> set[str]:
        with self.client() as client:
            answer = client.call("metadata", 8, topics=None)
        return {topic["name"] for topic in answer["topics"]}

    def groups(self) -> set[str]:
        with self.client() as client:
            return {group["group_id"] for group in client.call("list_groups", 4)["groups"]}

    def topics_on_disk(self) -> set[str]:
        """Return the topics that have directories; a deleted one's carries a mark for a minute."""
        directories = {path.name for path in self.broker.data_dir.iterdir() if path.is_dir()}
        return {name.rpartition("-")[0] for name in directories if not name.endswith("-delete")}


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    new_fuzzed = Fuzzed(tmp_path_factory.mktemp("fuzz"))
    yield new_fuzzed
    new_fuzzed.broker.stop()


def read_creation(frame: Frame) -> Any:
    """Return the CreateTopics or CreatePartitions request of a frame, None for another API."""
    view = memoryview(frame.raw)[4:]
    try:
        api_key, version, _, _, position = parse_request_header(view)
        oldest, newest = supported_versions().get(api_key, (1, 0))
        if api_key not in (CREATE_TOPICS, CREATE_PARTITIONS) or not oldest <= version <= newest:
            return None
        return load_messages(api_key)[0].read(Reader(view, position), version)
    except ProtocolError:
        return None


def asks_for_much(request: Any) -> bool:
    """Return whether a request asks for so many partitions that it may take its time."""
    if request.validate_only:
        return False
    if request.API_KEY == CREATE_PARTITIONS:
        counts = [topic.count for topic in request.topics]
    else:
        counts = [len(topic.assignments) or topic.num_partitions for topic in request.topics]
    return any(PARTITIONS_MAX < count < 11_000 for count in counts)


def watched(frames: Iterator[Frame], questions: set[str]) -> Iterator[Frame]:
    """Yield the frames, and add to `asked` the topics that they may create."""
    for frame in frames:
        if frame.api_key in (CREATE_TOPICS, CREATE_PARTITIONS) or frame.correlation_id is None:
            request = read_creation(frame)
            if request is not None:
                if asks_for_much(request):
                    continue
                if request.API_KEY == CREATE_TOPICS and not request.validate_only:
                    questions.update(topic.name for topic in request.topics)
        yield frame


def endless(maker: FrameMaker) -> Iterator[Frame]:
    while True:
        yield maker.any()


def test_no_served_api_is_left_out() -> None:
    maker = FrameMaker(Random(0), bytes(16))
    everything = {
        (key, version)
        for key, (oldest, newest) in supported_versions().items()
        for version in range(oldest, newest + 1)
    }
    assert set(maker.served) == everything
    # A broker alone serves no other broker.
    assert {key for key, _ in everything} == HANDLERS.keys() - ONLY_WITH_ZOOKEEPER - BETWEEN_BROKERS
    pairs = {(frame.api_key, frame.version) for frame in islice(endless(maker), 8_000)}
    assert pairs == everything


def test_questions_make_nothing(fuzzed: Fuzzed) -> None:
    """Questions about unknown topics, groups and transactions make none of them."""
    first_state = fuzzed.topics(), fuzzed.groups(), fuzzed.topics_on_disk()
    maker = FrameMaker(Random(1), fuzzed.topic_id)
    maker.served = [(key, version) for key, version in maker.served if key in QUESTIONS]
    feeder = Feeder(fuzzed.address, bound_s=BOUND_S)
    try:
        feeder.feed(frame for frame in islice(endless(maker), 2_000) if frame.correlation_id)
    finally:
        feeder.close()
    assert {key for key, _ in feeder.answered} == QUESTIONS
    assert (fuzzed.topics(), fuzzed.groups(), fuzzed.topics_on_disk()) == first_state


def test_the_good_frames_are_good(fuzzed: Fuzzed) -> None:
    """Every undamaged frame is answered: otherwise the damage would show nothing."""
    maker = FrameMaker(Random(0), fuzzed.topic_id)
    feeder = Feeder(fuzzed.address, bound_s=60.0, quiet_s=60.0)
    try:
        feeder.feed(maker.good(key, version) for key, version in maker.served)
    finally:
        feeder.close()
    assert not feeder.closed
    assert set(feeder.answered) == set(maker.served)


def test_every_frame_ends_and_leaves_nothing(
    fuzzed: Fuzzed, capsys: pytest.CaptureFixture[str]
) -> None:
    seed, count = (SEED, FRAMES) if IS_EXPLORING else (0, 12_000)
    maker = FrameMaker(Random(seed), fuzzed.topic_id)
    feeder = Feeder(fuzzed.address, bound_s=BOUND_S)
    warm_up = islice(watched(endless(maker), fuzzed.allowed_topics), count // 10)
    frames = islice(watched(endless(maker), fuzzed.allowed_topics), count - count // 10)
    started_s = time.monotonic()
    with capsys.disabled():
        if IS_EXPLORING:
            sys.stderr.write(f"\n{count:,} frames, MINIBROKER_FUZZ_SEED={seed}\n")
    try:
        feeder.feed(warm_up)
        first_bytes = fuzzed.memory_bytes()
        feeder.feed(frames)
    finally:
        feeder.close()
    after = fuzzed.memory_bytes()
    with capsys.disabled():
        if IS_EXPLORING:
            took_s = time.monotonic() - started_s
            sys.stderr.write(
                f"{feeder.fed:,} frames in {took_s:.0f} s: {feeder.answered.total():,} answered, "
                f"{feeder.closed.total():,} closed; slowest {feeder.slowest_s:.3f} s; "
                f"memory {first_bytes >> 20} MiB after a tenth, {after >> 20} MiB at the end\n"
            )
    assert after - first_bytes < GROWTH_BYTES_MAX
    assert fuzzed.topics() <= fuzzed.allowed_topics
    assert fuzzed.topics_on_disk() <= fuzzed.allowed_topics


def test_the_fuzzed_broker_is_as_good_as_new(fuzzed: Fuzzed) -> None:
    """Afterwards the broker answers, and its log has no traceback."""
    assert answers_metadata(*fuzzed.address)
    log = fuzzed.broker.log_path.read_text(errors="replace")
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:5_000]
