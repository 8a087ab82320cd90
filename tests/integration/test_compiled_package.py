"""The compiled wheel beside the pure package: what it is, and that it answers as the pure one does.

The wheel is compiled here, without optimisation, because that builds sooner; `make compiled-test`
runs many more tests on the one that is released. Both brokers are processes, and both start empty.
"""

from __future__ import annotations

import tomllib
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.compat.dialogue import transcript_of
from tests.compat.scenarios import load_all
from tests.fuzz.hostile_batches import hostile_batch
from tests.support.broker import Minibroker
from tests.support.build_files import required
from tests.support.compiled import build_wheel, missing_compiler
from tests.support.container import WHEELS
from tests.support.installed import BASE_BYTES_MAX, install, installed_size
from tests.support.peers import ONE_NODE
from tests.support.readme import ROOT
from tests.support.shell import run_command
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MISSING: Final = missing_compiler()

NO_OPTIMISATION: Final = "0"
BUILD_SECONDS: Final = 900
"""Patience with a slow machine; it takes 40 s of a core."""
pytestmark = [
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    pytest.mark.timeout(BUILD_SECONDS),
]
SECONDS: Final = 60.0
COUNT: Final = 500
HOSTILE_BATCHES: Final = 400
VERSIONS: Final = {"produce": (0, 2, 3, 8, 9), "fetch": (0, 4, 11, 12), "list_offsets": (1, 7)}
"""The API → those of its versions whose scenarios both brokers get."""
PRODUCE_VERSIONS: Final = (3, 8, 9, 12)
"""Versions of the hostile requests, in turns."""
CLOSED: Final = "closed"
CLIENTS_TOPIC: Final = "of-a-client"
HOSTILE_TOPIC: Final = "hostile"
SETTINGS: Final = {**ONE_NODE, "log.retention.ms": "-1"}
"""Records are of 2023, and stay."""
TOPICS: Final = (f"{CLIENTS_TOPIC}:1", f"{HOSTILE_TOPIC}:1")


class Pair(NamedTuple):
    """A broker of each package; they have got the same requests."""

    pure: Minibroker
    compiled: Minibroker


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the programs of an environment with the compiled wheel."""
    required(WHEELS / ".done")
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"), NO_OPTIMISATION)
    environment = tmp_path_factory.mktemp("compiled") / "environment"
    offline = ("--no-compile", "--no-index", "--find-links", str(WHEELS))
    return install(str(wheel), environment, *offline)


@pytest.fixture(scope="module")
def pair(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Yield a broker of this checkout and one of the compiled wheel."""
    directory = tmp_path_factory.mktemp("brokers")
    packages = {
        "pure": {},
        "compiled": {"program": [str(programs / "minibroker")], "environment": {"PYTHONPATH": ""}},
    }
    brokers = Pair(
        *(
            Minibroker(
                directory / name,
                directory / f"{name}.log",
                settings=ONE_NODE,
                topics=TOPICS,
                **options,
            )
            for name, options in packages.items()
        )
    )
    for broker in brokers:
        broker.start()
    yield brokers
    for broker in brokers:
        broker.stop()


def test_the_wheel_is_compiled_and_the_checkout_stays_pure(programs: Path, tmp_path: Path) -> None:
    assert run_command("minibroker version", tmp_path, programs).endswith(" (compiled)\n")
    assert list((ROOT / "minibroker").rglob("*.so")) == []
    assert list((ROOT / "minibroker").rglob("*.c")) == []


def test_the_compiler_of_a_release_is_the_one_that_tests_have() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    assert set(hook["dependencies"]) <= set(project["project"]["optional-dependencies"]["test"])


def test_a_compiled_base_install_is_small(programs: Path) -> None:
    assert installed_size(programs.parent).wheels <= BASE_BYTES_MAX


def test_a_client_writes_and_reads_through_the_compiled_broker(pair: Pair) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": pair.compiled.address, "enable.idempotence": True})
    for number in range(COUNT):
        producer.produce(CLIENTS_TOPIC, str(number), on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(SECONDS) == 0
    assert errors == [None] * COUNT
    consumer = Consumer({"bootstrap.servers": pair.compiled.address, "group.id": "g"})
    consumer.assign([TopicPartition(CLIENTS_TOPIC, 0, 0)])
    records = consumer.consume(COUNT, SECONDS)
    consumer.close()
    assert [record.value() for record in records] == [b"%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("api", VERSIONS)
def test_scenarios_have_the_same_answers(api: str, pair: Pair) -> None:
    cases = [
        (scenario, version)
        for scenario in load_all()
        for version in VERSIONS[api]
        if scenario.api == api and scenario.min_version <= version <= scenario.max_version
    ]
    assert len(cases) >= 5
    for scenario, version in cases:
        with ThreadPoolExecutor(len(pair)) as sides:
            talks = [sides.submit(transcript_of, broker, scenario, version) for broker in pair]
        pure, compiled = (talk.result() for talk in talks)
        assert compiled == pure, f"{scenario.name}, version {version}"


def test_hostile_batches_have_the_same_answers_and_leave_the_same_log(pair: Pair) -> None:
    chance = Random("hostile batches of the compiled package")
    batches = [hostile_batch(chance) for _ in range(HOSTILE_BATCHES)]
    pure, compiled = (answers_to(broker, HOSTILE_TOPIC, batches) for broker in pair)
    for batch, pure_answer, compiled_answer in zip(batches, pure, compiled, strict=True):
        assert compiled_answer == pure_answer, batch.hex()
    codes = {answer if isinstance(answer, str) else answer["error_code"] for answer in pure}
    assert len(codes) >= 4, codes
    assert log_of(pair.compiled, HOSTILE_TOPIC) == log_of(pair.pure, HOSTILE_TOPIC) != b""


def answers_to(broker: Minibroker, topic: str, batches: list[bytes]) -> list[Any]:
    """Return the answer to each batch, in a Produce of its own; "closed" where there was none."""
    answers: list[Any] = []
    client = WireClient(broker.host, broker.port)
    try:
        for number, batch in enumerate(batches):
            if answers and answers[-1] == CLOSED:
                client.close()
                client = WireClient(broker.host, broker.port)
            try:
                answer = client.call(
                    "produce",
                    PRODUCE_VERSIONS[number % len(PRODUCE_VERSIONS)],
                    acks=-1,
                    timeout_ms=60_000,
                    topic_data=[
                        {"name": topic, "partition_data": [{"index": 0, "records": batch}]}
                    ],
                )
                answers.append(answer["responses"][0]["partition_responses"][0])
            except ConnectionError:
                answers.append(CLOSED)
    finally:
        client.close()
    return answers


def log_of(broker: Minibroker, topic: str) -> bytes:
    """Return the bytes of the topic's segments, in their order."""
    segments = sorted((broker.data_dir / f"{topic}-0").glob("*.log"))
    return b"".join(segment.read_bytes() for segment in segments)
