"""Quotas beside Apache Kafka: the same limits and requests, the same delays.

Delays are compared, not waited for: an answer says at once how long its client has to wait.
"""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import pytest

from tests.support.broker import Minibroker
from tests.support.in_process import batch_of
from tests.support.peers import KafkaPeer
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Broker = KafkaPeer | Minibroker

pytestmark = [pytest.mark.java, pytest.mark.slow]

READY_SECONDS = 60.0
UNDISTURBED_SECONDS = 80.0
TOLERANCE = 0.15
USER = "ANONYMOUS"
TOPIC = "quotas"
NOW_MS = int(time.time() * 1000)  # older records go by the default retention
BURST = batch_of(b"x" * 100_000, timestamp=NOW_MS)
SMALL = batch_of(b"x" * 300, timestamp=NOW_MS)
CANARY_DELAY_MS = 300_000
SECOND_MS = 1_050
"""A window, and a little for the machine."""
KAFKA_LOOKS_MS = 500
"""Longest sleep of Kafka's acceptor, which closes due connections when it wakes."""
_numbers = itertools.count()


def new_id(word: str) -> str:
    """Return a client id that no broker has seen."""
    return f"{word}-{next(_numbers)}"


def produce(client: WireClient, records: bytes | bytearray, acks: int = 1) -> dict[str, Any]:
    """Return the fields of the answer to one Produce request at version 7."""
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": bytes(records)}]}]
    fields = {"acks": acks, "timeout_ms": 10_000, "topic_data": data}
    if not acks:
        client.send("produce", 7, **fields)
        return {}
    answer = client.call("produce", 7, **fields)
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer
    return answer


def produce_delay_ms(broker: Broker, client_id: str, records: bytes | bytearray) -> int:
    """Return `throttle_time_ms` of one request on a connection of its own."""
    with WireClient(broker.host, broker.port, client_id=client_id) as client:
        return int(produce(client, records)["throttle_time_ms"])


class Canary:
    """A client with a limit of its own in the strongest scope, so that no other limit applies to
    it.

    Brokers apply changes in order, so the canary's limit is changed last. By turns it delays the
    canary's next request for minutes or not at all: the delay shows when a broker has applied all
    changes. Before its first limit the canary may count for weaker scopes.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._client_id = new_id("canary")
        self._is_delayed = False
        self.entity: dict[str, str | None] = {"user": USER, "client-id": self._client_id}

    def next_limit(self) -> float:
        """Return its next limit."""
        self._is_delayed = not self._is_delayed
        return 1.0 if self._is_delayed else 1e12

    def wait(self) -> None:
        """Wait until the broker applies this limit."""
        deadline = time.monotonic() + READY_SECONDS
        while self._is_delayed != (
            produce_delay_ms(self._broker, self._client_id, SMALL) >= CANARY_DELAY_MS
        ):
            assert time.monotonic() < deadline, "the quotas are not applied"


_canaries: dict[Any, Canary] = {}
"""Broker → its canary."""


def alter(broker: Broker, *quotas: tuple[dict[str, str | None], str, float | None]) -> None:
    """Set (None: remove) quotas, and wait until the broker applies them."""
    canary = _canaries.get(broker)
    if canary is None:
        canary = _canaries[broker] = Canary(broker)
        alter(broker)  # it has a limit before anybody is measured
    set_quotas(broker, *quotas, (canary.entity, "producer_byte_rate", canary.next_limit()))
    canary.wait()


def set_quotas(broker: Broker, *quotas: tuple[dict[str, str | None], str, float | None]) -> None:
    """Make the broker store quotas, one after the other."""
    with WireClient(broker.host, broker.port, client_id="admin") as admin:
        for entity, key, value in quotas:
            entry = {
                "entity": [
                    {"entity_type": kind, "entity_name": name} for kind, name in entity.items()
                ],
                "ops": [{"key": key, "value": value or 0.0, "remove": value is None}],
            }
            answer = admin.call("alter_client_quotas", 1, entries=[entry], validate_only=False)
            assert answer["entries"][0]["error_code"] == 0, answer


@pytest.fixture(scope="module")
def brokers(
    kafka_39: KafkaPeer, kafka_44: KafkaPeer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Broker]]:
    """Yield both Kafkas and a minibroker of this module's own, each with the topic."""
    directory = tmp_path_factory.mktemp("quotas")
    ours = Minibroker(directory / "data", directory / "broker.log").start()
    found: dict[str, Broker] = {"3.9.1": kafka_39, "4.4.0": kafka_44, "minibroker": ours}
    for broker in found.values():
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        with WireClient(broker.host, broker.port) as client:
            client.call("create_topics", 4, topics=[topic], timeout_ms=30_000)
            deadline = time.monotonic() + READY_SECONDS
            while True:
                answer = client.call(
                    "metadata", 8, topics=[{"name": TOPIC}], allow_auto_topic_creation=False
                )
                if answer["topics"][0]["partitions"]:
                    break
                assert time.monotonic() < deadline, "the topic has no leader"
    yield found
    for broker in found.values():
        canary = _canaries.pop(broker, None)
        if canary is not None:
            set_quotas(broker, (canary.entity, "producer_byte_rate", None))
    ours.stop()


class DisturbedError(Exception):
    """A measurement took too long to be compared: the machine was busy with other work."""


class Undisturbed:
    """A measurement, which raises DisturbedError at its end if more time passed than it needs.

    A delay gets shorter by the time since the client's first request. Brokers are comparable only
    where little of it passes beside the delays themselves.
    """

    def __init__(self, allowed_ms: float = 250) -> None:
        self._allowed_ms = allowed_ms
        self._needed_ms = 0.0

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        passed_ms = (time.monotonic() - self._begun) * 1000
        if kind is None and passed_ms > self._needed_ms + self._allowed_ms:
            raise DisturbedError

    def needs(self, delay_ms: float) -> None:
        """Note a delay that the client waits out within the measurement."""
        self._needed_ms += delay_ms


def measured(broker: Broker, measure: Callable[[Broker], list[int]]) -> list[int]:
    """Measure a broker, and again with a new client while the machine is too busy for it."""
    deadline = time.monotonic() + UNDISTURBED_SECONDS
    while True:
        try:
            return measure(broker)
        except DisturbedError:
            assert time.monotonic() < deadline, "the machine is too busy to measure delays"


def compared(brokers: dict[str, Broker], measure: Callable[[Broker], list[int]]) -> list[int]:
    """Measure each broker; ours must be within 15 % of both Kafkas (and 0 where they say 0)."""
    delays = {name: measured(broker, measure) for name, broker in brokers.items()}
    for name in ("3.9.1", "4.4.0"):
        assert len(delays["minibroker"]) == len(delays[name])
        for ours, theirs in zip(delays["minibroker"], delays[name], strict=True):
            assert ours == pytest.approx(theirs, rel=TOLERANCE, abs=20), delays
    return delays["minibroker"]


def scopes(client_id: str) -> list[dict[str, str | None]]:
    """Return the entities that apply to this client, the weakest first."""
    return [
        {"client-id": None},
        {"client-id": client_id},
        {"user": None},
        {"user": None, "client-id": None},
        {"user": None, "client-id": client_id},
        {"user": USER},
        {"user": USER, "client-id": None},
        {"user": USER, "client-id": client_id},
    ]


def test_the_eight_scopes_have_kafkas_order(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[int]:
        delays = []
        try:
            # Each is stronger than those before, which stay: a wrong order shows.
            for place in range(8):
                client_id = new_id("scope")
                limit = 2000.0 + 1000 * place
                alter(broker, (scopes(client_id)[place], "producer_byte_rate", limit))
                delays.append(produce_delay_ms(broker, client_id, BURST))
        finally:
            alter(
                broker,
                *((entity, "producer_byte_rate", None) for entity in scopes(new_id("gone"))),
            )
        return delays

    # The last two are the worked example: a pair of user and client id has its own limit, whatever
    # the user has.
    assert len(set(compared(brokers, measure))) == 8


def test_a_pattern_of_requests_is_delayed_alike(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[int]:
        client_id = new_id("pattern")
        alter(broker, ({"client-id": client_id}, "producer_byte_rate", 50_000.0))
        delays: list[int] = []
        with (
            WireClient(broker.host, broker.port, client_id=client_id) as client,
            Undisturbed() as measurement,
        ):
            for _ in range(8):
                measurement.needs(delays[-1] if delays else 0)
                delays.append(produce(client, BURST)["throttle_time_ms"])
        return delays

    delays = compared(brokers, measure)
    assert delays[:4] == [0] * 4
    assert delays[5] > 0


def test_fetches_are_delayed_alike_and_empty(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[int]:
        client_id = new_id("reader")
        produce_delay_ms(broker, new_id("writer"), BURST)
        alter(broker, ({"client-id": client_id}, "consumer_byte_rate", 25_000.0))
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_200}
        delays: list[int] = []
        with (
            WireClient(broker.host, broker.port, client_id=client_id) as client,
            Undisturbed() as measurement,
        ):
            for _ in range(4):
                measurement.needs(delays[-1] if delays else 0)
                answer = client.call(
                    "fetch",
                    11,
                    replica_id=-1,
                    max_wait_ms=0,
                    min_bytes=1,
                    max_bytes=1_000_000,
                    session_epoch=-1,
                    topics=[{"topic": TOPIC, "partitions": [part]}],
                )
                delays.append(answer["throttle_time_ms"])
                assert bool(answer["responses"]) == (not delays[-1])
        return delays

    assert compared(brokers, measure)[2] > 1500


def test_acks_0_is_delayed_as_well(brokers: dict[str, Broker]) -> None:
    """Its client is told of no delay: a twin, whose requests are answered, is."""

    def measure(broker: Broker) -> list[int]:
        silent, twin = new_id("silent"), new_id("twin")
        limits = [({"client-id": name}, "producer_byte_rate", 9_000.0) for name in (silent, twin)]
        alter(broker, *limits)
        told_ms = produce_delay_ms(broker, twin, BURST)
        with (
            WireClient(broker.host, broker.port, client_id=silent) as client,
            Undisturbed(allowed_ms=100) as measurement,
        ):
            measurement.needs(told_ms)
            started = time.monotonic()
            produce(client, BURST, acks=0)
            client.call("api_versions", 0)
            waited_ms = round((time.monotonic() - started) * 1000)
            assert waited_ms >= told_ms
        return [waited_ms]

    assert compared(brokers, measure)[0] > 500


def create(broker: Broker, name: str, partitions: int, client_id: str, version: int = 7) -> Any:
    """Send one CreateTopics request and return its answer."""
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    with WireClient(broker.host, broker.port, client_id=client_id) as client:
        return client.call("create_topics", version, topics=[topic], timeout_ms=30_000)


def make_topics(broker: Broker, *counts: int) -> list[str]:
    """Make topics of these sizes with a client without limits; return once they are known."""
    names = [new_id("victim") for _ in counts]
    for name, count in zip(names, counts, strict=True):
        assert create(broker, name, count, "admin")["topics"][0]["error_code"] == 0
    with WireClient(broker.host, broker.port, client_id="admin") as client:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            asked = [{"name": name} for name in names]
            answer = client.call("metadata", 8, topics=asked, allow_auto_topic_creation=False)
            if [len(topic["partitions"]) for topic in answer["topics"]] == list(counts):
                return names
            assert time.monotonic() < deadline, "the topics are not there"


class Mutations:
    """The answers to one client's changes, in order: two numbers for each.

    They are the error code times 100, so that no other is near, and the time after the first
    request at which the client may go on (0: at once). The wait itself is no measure: it gets
    shorter while a broker works, and brokers differ in speed.
    """

    def __init__(self) -> None:
        self.told: list[int] = []
        self._begun = 0.0

    def ask(self, results: str, request: Callable[[], dict[str, Any]]) -> None:
        """Send one more request."""
        asked = time.monotonic()
        if not self.told:
            self._begun = asked
        answer = request()
        wait_ms = answer["throttle_time_ms"]
        passed_ms = round((asked - self._begun) * 1000)
        self.told += [answer[results][0]["error_code"] * 100, wait_ms and wait_ms + passed_ms]


def test_creations_are_refused_alike(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[int]:
        client_id = new_id("maker")
        alter(broker, ({"client-id": client_id}, "controller_mutation_rate", 0.5))
        mutations = Mutations()
        for count, version in ((7, 7), (1, 7), (1, 5)):
            name = new_id("made")
            mutations.ask("topics", partial(create, broker, name, count, client_id, version))
        return mutations.told

    found = compared(brokers, measure)
    assert found[:3] == [0, 0, 8900]


def test_deletions_are_refused_alike(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[int]:
        client_id = new_id("eraser")
        first, second, third = make_topics(broker, 7, 1, 1)
        alter(broker, ({"client-id": client_id}, "controller_mutation_rate", 0.5))
        mutations = Mutations()
        for name, version in ((first, 5), (second, 5), (third, 4)):
            fields = {"topic_names": [name], "timeout_ms": 30_000}
            with WireClient(broker.host, broker.port, client_id=client_id) as client:
                request = partial(client.call, "delete_topics", version, **fields)
                mutations.ask("responses", request)
        return mutations.told

    found = compared(brokers, measure)
    assert found[:3] == [0, 0, 8900]
    assert found[3] > 0
    assert found[4] == 0
    assert found[5] > found[3]


def test_additions_of_partitions_are_refused_alike(brokers: dict[str, Broker]) -> None:
    def measure(broker: Broker) -> list[int]:
        client_id = new_id("grower")
        first, second, third = make_topics(broker, 1, 1, 1)
        alter(broker, ({"client-id": client_id}, "controller_mutation_rate", 0.5))
        mutations = Mutations()
        for name, total, version in ((first, 8, 3), (second, 2, 3), (third, 2, 2)):
            topic = {"name": name, "count": total, "assignments": None}
            fields = {"topics": [topic], "timeout_ms": 30_000}
            with WireClient(broker.host, broker.port, client_id=client_id) as client:
                request = partial(client.call, "create_partitions", version, **fields)
                mutations.ask("results", request)
        return mutations.told

    found = compared(brokers, measure)
    assert found[:3] == [0, 0, 8900]
    assert found[3] > 0
    assert found[4] == 0
    assert found[5] > found[3]


def test_without_a_limit_nobody_waits_and_connections_share_one(
    brokers: dict[str, Broker],
) -> None:
    def measure(broker: Broker) -> list[int]:
        client_id = new_id("shared")
        free = [produce_delay_ms(broker, client_id, BURST) for _ in range(6)]
        alter(broker, ({"client-id": client_id}, "producer_byte_rate", 50_000.0))
        with Undisturbed():
            return free + [produce_delay_ms(broker, client_id, BURST) for _ in range(7)]

    delays = compared(brokers, measure)
    assert delays[:6] == [0] * 6
    assert delays[-1] > 0


def test_request_time_over_its_share_waits_one_window(brokers: dict[str, Broker]) -> None:
    """Every request exceeds the share: the delay is a whole window, however slow the broker."""

    def measure(broker: Broker) -> list[int]:
        client_id = new_id("busy")
        alter(broker, ({"client-id": client_id}, "request_percentage", 0.0001))
        asked: list[tuple[str, int, dict[str, Any]]] = [
            ("metadata", 8, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}),
            ("list_offsets", 2, {"replica_id": -1, "topics": []}),
            ("describe_cluster", 0, {}),
            ("delete_topics", 5, {"topic_names": [], "timeout_ms": 1000}),
        ]
        delays = []
        for api, version, fields in asked:
            with WireClient(broker.host, broker.port, client_id=client_id) as client:
                delays.append(client.call(api, version, **fields)["throttle_time_ms"])
        with WireClient(broker.host, broker.port, client_id=client_id) as client:
            delays.append(produce(client, SMALL)["throttle_time_ms"])
        return delays

    assert compared(brokers, measure) == [1000] * 5


def test_connections_over_the_rate_of_their_address_are_closed_unserved(
    brokers: dict[str, Broker],
) -> None:
    """A burst from one address: the limit is served, the others end a window later."""
    address = "127.0.0.2"
    closings: dict[Broker, tuple[int, int]] = {}

    def measure(broker: Broker) -> list[int]:
        alter(broker, ({"ip": address}, "connection_creation_rate", 2.0))
        served, waits, first_ms = 0, list[int](), 0
        begun = time.monotonic()
        try:
            # The shortest of three; of ours of more, while the machine lets none end in time.
            while len(waits) < 3 or (
                broker is brokers["minibroker"] and min(waits) > SECOND_MS and len(waits) < 12
            ):
                assert served < 100, "nobody is refused"
                started = time.monotonic()
                with WireClient(broker.host, broker.port, source=address) as client:
                    try:
                        client.call("api_versions", 0)
                        served += not waits
                    except ConnectionError:
                        now = time.monotonic()
                        waits.append(round((now - started) * 1000))
                        first_ms = first_ms or round((now - begun) * 1000)
        finally:
            alter(broker, ({"ip": address}, "connection_creation_rate", None))
        closings[broker] = first_ms, min(waits)
        return [served * 100]

    # At most 2 a second over ten windows and the one that has begun.
    assert 1900 <= compared(brokers, measure)[0] <= 2300
    first_ms, ours_ms = closings[brokers["minibroker"]]
    # The first one over the limit belongs half a second behind the first of all.
    assert first_ms >= 495
    for name in ("3.9.1", "4.4.0"):
        _, theirs_ms = closings[brokers[name]]
        assert theirs_ms - KAFKA_LOOKS_MS < ours_ms < theirs_ms * (1 + TOLERANCE)


# Kafka's own tools.
