"""A scenario's dialogue with one broker: requests, decoded answers, and a transcript of them.

The same scenario talks to Apache Kafka and to minibroker; the two transcripts must be equal. Values
that cannot be equal (ids, addresses, times, words) are masked: an id becomes the order of its first
appearance, so that "the same id again" still shows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.support.waiting import wait_until
from tests.support.wire import Answer, WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.compat.scenarios import Scenario
    from tests.support.broker import Minibroker
    from tests.support.peers import KafkaPeer

METADATA_VERSION = 8  # for set-up: both peers and minibroker serve it
CREATE_TOPICS_VERSION = 4
LIST_OFFSETS_VERSION = 2
READY_SECONDS = 180.0

CLOSED = "connection closed"
NO_ANSWER = "no answer"
SILENCE = "no answer in time"
ANSWER_SECONDS = 60.0
NO_ID = bytes(16)
OWN = "own."
"""Mask of the prefix of a scenario's names, so that the answers of all versions are equal."""

# Masked by the order of first appearance; the value that means "none" stays as it is.
IDS: dict[str, Any] = {
    "topic_id": NO_ID,
    "client_instance_id": NO_ID,
    "producer_id": -1,
    "session_id": 0,
    "subscription_id": 0,
    "member_id": "",
}
SAME_IDS = {"leader": "member_id"}
"""Fields that hold an id of another field."""

# Replaced by a word; None stays None.
WORDS = {
    "cluster_id": "cluster id",
    "host": "host",
    "port": "port",
    "log_dir": "log directory",
    "error_message": "text",
    "batch_index_error_message": "text",
    "documentation": "text",
}

# Replaced when positive: sizes that belong to the machine's disk.
AMOUNTS = {"total_bytes": "bytes", "usable_bytes": "bytes"}

# Replaced by a word when it is this hour's clock; a record's own time stays.
CLOCK_FIELDS = {"log_append_time_ms", "timestamp", "base_timestamp", "max_timestamp"}
HOUR_MS = 3_600_000

# Lists whose order is the broker's own (Kafka's hash maps): sorted by these fields.
UNORDERED = {
    ("produce", "partition_responses"): "index",
    ("produce", "responses"): "name",
    ("list_offsets", "partitions"): "partition_index",
    ("create_partitions", "partitions"): "partition_index",
    ("metadata", "partitions"): "partition_index",
    ("add_partitions_to_txn", "results_by_topic_v3_and_below"): "name",
    ("add_partitions_to_txn", "results_by_transaction"): "transactional_id",
    ("add_partitions_to_txn", "topic_results"): "name",
    ("add_partitions_to_txn", "results_by_partition"): "partition_index",
    ("write_txn_markers", "partitions"): "partition_index",
    ("alter_replica_log_dirs", "results"): "topic_name",
    ("alter_replica_log_dirs", "partitions"): "partition_index",
    ("offset_commit", "topics"): "name",
    ("offset_commit", "partitions"): "partition_index",
    ("offset_fetch", "topics"): "name",
    ("offset_fetch", "partitions"): "partition_index",
    ("offset_delete", "topics"): "name",
    ("offset_delete", "partitions"): "partition_index",
    ("txn_offset_commit", "topics"): "name",
    ("txn_offset_commit", "partitions"): "partition_index",
    ("describe_user_scram_credentials", "results"): "user",
    ("describe_user_scram_credentials", "credential_infos"): "mechanism",
    ("elect_leaders", "replica_election_results"): "topic",
    ("elect_leaders", "partition_result"): "partition_id",
    ("alter_partition_reassignments", "responses"): "name",
    ("alter_partition_reassignments", "partitions"): "partition_index",
}

# Lists that become a mapping by this field: the order is the broker's own, and one entry more at
# one broker must not shift the others.
BY_NAME = {("create_topics", "configs"): "name"}


class Dialogue:
    """Talks to HOST:PORT on behalf of one scenario at one version of its API."""

    def __init__(self, host: str, port: int, *, scenario: str, api: str, version: int) -> None:
        self.api = api
        self.version = version
        self.prefix = f"{scenario}.{version}."
        self.transcript: list[tuple[str, Any]] = []
        self._address = (host, port)
        self._client: WireClient | None = None
        self._ids: dict[tuple[str, Any], str] = {}
        self._others: list[WireClient] = []

    def close(self) -> None:
        """Close the open connections."""
        if self._client is not None:
            self._client.close()
            self._client = None
        while self._others:
            self._others.pop().close()

    def another(self, client_id: str) -> WireClient:
        """Return one more connection, for requests that wait for each other.

        It is closed with the dialogue.
        """
        client = WireClient(*self._address, client_id=client_id, timeout_s=ANSWER_SECONDS)
        self._others.append(client)
        return client

    @property
    def client(self) -> WireClient:
        """Return the open connection, or a new one after the broker closed the last."""
        if self._client is None:
            self._client = WireClient(*self._address, timeout_s=ANSWER_SECONDS)
        return self._client

    def topic(self, name: str) -> str:
        """Return the full name of a topic: the same on every broker, and only of this scenario."""
        return self.prefix + name

    def ask(self, label: str, /, **fields: Any) -> Answer:
        """Send the API under test at the version under test and record the answer."""
        return self.also(label, self.api, self.version, **fields)

    def also(self, label: str, api: str, version: int, /, **fields: Any) -> Answer:
        """Send any request and record the answer, or that there was none."""
        try:
            answer = self.client.call(api, version, **fields)
        except ConnectionError:
            self.close()
            self.note(label, CLOSED)
            return {}
        except TimeoutError:
            self.close()
            self.note(label, SILENCE)
            return {}
        self.note(label, self._only_own_topics(answer))
        return answer

    def quietly(self, api: str, version: int, /, **fields: Any) -> Answer:
        """Send a request of the preparation, without a record."""
        return self.client.call(api, version, **fields)

    def ask_without_answer(self, label: str, /, **fields: Any) -> None:
        """Send a request that must not be answered; the next answer must belong to the next
        request.

        ApiVersions follows on the same connection: its answer coming first proves the silence.
        """
        self.client.send(self.api, self.version, **fields)
        try:
            self.client.call("api_versions", 0)
        except ConnectionError:
            self.close()
            self.note(label, CLOSED)
        else:
            self.note(label, NO_ANSWER)

    def note(self, label: str, value: Any) -> None:
        """Record any other value that must be equal."""
        self.transcript.append((label, self._masked("", value)))

    def make_topic(
        self, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> str:
        """Create a topic and wait until it has leaders; returns its full name."""
        full_name = self.topic(name)
        answer = self.quietly(
            "create_topics",
            CREATE_TOPICS_VERSION,
            topics=[
                {
                    "name": full_name,
                    "num_partitions": partitions,
                    "replication_factor": 1,
                    "configs": [
                        {"name": key, "value": value} for key, value in (configs or {}).items()
                    ],
                }
            ],
        )
        assert answer["topics"][0]["error_code"] == 0, answer
        self.wait_for_topic(full_name, partitions)
        return full_name

    def wait_for_topic(self, full_name: str, partitions: int = 1) -> None:
        """Wait until Metadata shows that many partitions, and each answers as its leader."""

        def is_served() -> bool:
            states = self.metadata_of(full_name)["partitions"]
            if len(states) != partitions or any(p["error_code"] for p in states):
                return False
            places = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
            answer = self.quietly(
                "list_offsets",
                LIST_OFFSETS_VERSION,
                replica_id=-1,
                topics=[{"name": full_name, "partitions": places}],
            )
            return all(p["error_code"] == 0 for p in answer["topics"][0]["partitions"])

        self.wait_until(is_served, f"{full_name} with {partitions} partitions")

    def metadata_of(self, full_name: str, version: int = METADATA_VERSION) -> Answer:
        """Return Metadata's entry of one topic; never create the topic."""
        answer = self.quietly(
            "metadata", version, topics=[{"name": full_name}], allow_auto_topic_creation=False
        )
        topic: Answer = answer["topics"][0]
        return topic

    def topic_id(self, full_name: str) -> bytes:
        """Return the 16 bytes of the topic's id, which a later topic of its name does not have."""
        return bytes(self.metadata_of(full_name, 12)["topic_id"])

    def produce(self, full_name: str, *batches: bytes, partition: int = 0) -> list[int]:
        """Append batches, one request each; returns their base offsets."""
        return [self._produce_one(full_name, partition, records) for records in batches]

    def _produce_one(self, full_name: str, partition: int, records: bytes) -> int:
        answer = self.quietly(
            "produce",
            7,
            acks=-1,
            timeout_ms=60_000,
            topic_data=[
                {"name": full_name, "partition_data": [{"index": partition, "records": records}]}
            ],
        )
        outcome = answer["responses"][0]["partition_responses"][0]
        assert outcome["error_code"] == 0, outcome
        return int(outcome["base_offset"])

    def producer_id(self) -> int:
        """Return a new producer id; ask again while the broker fetches its next block."""
        answer: Answer = {}

        def is_given() -> bool:
            answer.update(
                self.quietly(
                    "init_producer_id", 0, transactional_id=None, transaction_timeout_ms=60_000
                )
            )
            return bool(answer["error_code"] == 0)

        self.wait_until(is_given, "a producer id")
        return int(answer["producer_id"])

    def wait_until(self, condition: Callable[[], bool], event: str) -> None:
        """Ask until `condition` holds: Kafka applies metadata a moment after its answer."""
        wait_until(condition, event, READY_SECONDS)

    def _only_own_topics(self, answer: Answer) -> Answer:
        """Drop other scenarios' topics from answers that list every topic of the broker."""
        if self.api == "elect_leaders":
            results = answer["replica_election_results"]
            own = [result for result in results if result["topic"].startswith(self.prefix)]
            return {**answer, "replica_election_results": own}
        topics = answer.get("topics")
        if not topics or self.api not in {"metadata", "describe_topic_partitions"}:
            return answer
        own = [t for t in topics if t["name"] is None or not self._is_foreign(t["name"])]
        return {**answer, "topics": own}

    def _is_foreign(self, name: str) -> bool:
        return name.count(".") >= 2 and not name.startswith(self.prefix)

    def _masked(self, key: str, value: Any) -> Any:
        if (self.api, key) in BY_NAME and value:
            value = {inner[BY_NAME[self.api, key]]: inner for inner in value}
        if isinstance(value, dict):
            return {name: self._masked(name, inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(key, inner) for inner in self._in_order(key, value)]
        if isinstance(value, memoryview):
            value = bytes(value)
        key = SAME_IDS.get(key, key)
        if key in IDS and value != IDS[key]:
            return self._ids.setdefault((key, value), f"{key} #{self._count(key)}")
        if key in WORDS:
            return WORDS[key] if value else value
        if key in AMOUNTS and value > 0:
            return AMOUNTS[key]
        if (
            key in CLOCK_FIELDS
            and isinstance(value, int)
            and abs(value - time.time() * 1000) < HOUR_MS
        ):
            return "now"
        if isinstance(value, str):
            return value.replace(self.prefix, OWN)
        return value.hex() if isinstance(value, bytes) else value

    def _in_order(self, key: str, value: Any) -> Any:
        field = UNORDERED.get((self.api, key))
        if field is None or not value:
            return value
        return sorted(value, key=lambda entry: (entry[field], entry.get("topic_id", b"")))

    def _count(self, key: str) -> int:
        return sum(other_key == key for other_key, _ in self._ids) + 1


def transcript_of(
    broker: KafkaPeer | Minibroker, scenario: Scenario, version: int
) -> dict[str, Any]:
    """Run the scenario; return every leaf of every answer by its place."""
    talk = Dialogue(
        broker.host, broker.port, scenario=scenario.name, api=scenario.api, version=version
    )
    try:
        scenario.talk(talk)
    finally:
        talk.close()
    return flatten(talk.transcript)


def flatten(transcript: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return {path: leaf} of a transcript, with paths like `second.topics[0].error_code`."""
    flat: dict[str, Any] = {}
    for label, value in transcript:
        assert label not in flat, f"two steps are called {label!r}"
        flat[label] = "asked"
        flat.update(_leaves(label, value))
    return flat


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner)
    elif isinstance(value, list):
        yield f"{path}.length", len(value)
        for position, inner in enumerate(value):
            yield from _leaves(f"{path}[{position}]", inner)
    else:
        yield f"{path}:", value
