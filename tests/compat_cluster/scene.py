"""The scene of one situation on one cluster: its topics, its requests, and its record.

A record is a list of (label, value), all plain data. These are not in it, or not as they are, since
they differ from run to run:

    ids, host, port, texts     masked by `tests/compat/dialogue.py`
    order of an ISR            sorted: followers join in the order in which their fetches come
    controller epoch           counted from the situation's beginning
    zkVersion                  not noted: a leader may write the ISR once more for each follower
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.error_codes import ErrorCode
from tests.compat.dialogue import Dialogue
from tests.compat_cluster.tree import WAIT_S
from tests.support.batches import batch, describe
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.compat_cluster.three_brokers import ThreeBrokers
    from tests.support.wire import Answer

PRODUCE, FETCH, METADATA, LIST_OFFSETS = 9, 12, 9, 5
"""Versions of the requests that situations send all the time: flexible, and without topic ids."""

FETCH_WAIT_MS: Final = 0


class Scene:
    """Used by one thread at a time."""

    def __init__(self, name: str, brokers: ThreeBrokers) -> None:
        self.name = name
        self.brokers = brokers
        self.tree = brokers.tree
        self.transcript: list[tuple[str, Any]] = []
        self._dialogues: dict[int, Dialogue] = {}
        self.first_controller_epoch = brokers.tree.controller_epoch
        self._min_insync: dict[str, int] = {}

    def close(self) -> None:
        """Close all connections."""
        for dialogue in self._dialogues.values():
            dialogue.close()

    def note(self, label: str, value: Any) -> None:
        """Record a value."""
        self.transcript.append((label, value))

    # Requests

    def at(self, n: int) -> Dialogue:
        """Return the connection to a broker; its notes go into this record."""
        if n not in self._dialogues:
            dialogue = Dialogue(
                *self.brokers.address(n), scenario=self.name, api="metadata", version=0
            )
            dialogue.transcript = self.transcript
            self._dialogues[n] = dialogue
        return self._dialogues[n]

    def ask(self, label: str, n: int, api: str, version: int, /, **fields: Any) -> Answer:
        """Send a request to broker n, record the answer and return it."""
        dialogue = self.at(n)
        dialogue.api = api
        return dialogue.also(label, api, version, **fields)

    def quietly(self, n: int, api: str, version: int, /, **fields: Any) -> Answer:
        """Send a request to broker n and return the answer.

        A broker that was started again has closed the connection: it is asked once more.
        """
        dialogue = self.at(n)
        try:
            return dialogue.quietly(api, version, **fields)
        except ConnectionError:
            dialogue.close()
            return dialogue.quietly(api, version, **fields)

    @property
    def controller(self) -> int:
        """Return the broker that is the controller now; wait until there is one."""
        wait_until(lambda: self.tree.controller is not None, "there is a controller", WAIT_S)
        controller = self.tree.controller
        assert controller is not None
        return controller

    # Topics

    def topic(self, *replicas: Sequence[int], name: str = "t", **configs: str) -> str:
        """Create a topic, one list of replicas a partition; return its full name.

        All replicas are in sync, and each broker knows that, when this returns. `configs` are the
        topic's, with `_` for the dots.
        """
        full_name = self.at(self.controller).topic(name)
        answer = self.quietly(
            self.controller,
            "create_topics",
            5,
            timeout_ms=60_000,
            topics=[creation(full_name, *replicas, **configs)],
        )
        assert answer["topics"][0]["error_code"] == 0, answer
        wanted_insync = int(configs.get("min_insync_replicas", 1))
        self._min_insync[full_name] = min(wanted_insync, len(replicas[0]))
        for partition, brokers in enumerate(replicas):
            self.until(full_name, brokers[0], brokers, partition=partition)
        return full_name

    def until(
        self,
        topic: str,
        leader: int,
        isr: Sequence[int],
        *,
        epoch: int | None = None,
        partition: int = 0,
    ) -> None:
        """Wait until the tree has this leader and ISR, and all brokers that run act by it."""
        state: dict[str, Any] = {}

        def is_reached() -> bool:
            state.clear()
            state.update(self.tree.state(topic, partition) or {})
            return (
                bool(state)
                and (state["leader"], set(state["isr"])) == (leader, set(isr))
                and epoch in {None, state["leader_epoch"]}
            )

        try:
            wait_until(is_reached, f"{topic}-{partition}: leader {leader}, ISR {isr}", WAIT_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {state}") from error
        self._until_all_act(topic, partition, state["leader"], state["leader_epoch"])
        needed = self._min_insync.get(topic, 1)
        if needed > 1 and leader in self.brokers.running:
            wait_until(
                lambda: self._refuses(topic, partition, leader) == (len(isr) < needed),
                f"broker {leader} knows that {topic}-{partition} has ISR {isr}",
                WAIT_S,
            )

    def _refuses(self, topic: str, partition: int, leader: int) -> bool:
        """Return whether the leader has too few replicas in sync, by its own count.

        It counts them before it looks at the records, which are corrupt here.
        """
        corrupt = batch(b"corrupt")[:-1] + b"!"
        outcome = self._produce(topic, partition, leader, acks=-1, records=corrupt)
        return bool(outcome["error_code"] == ErrorCode.NOT_ENOUGH_REPLICAS)

    def _until_all_act(self, topic: str, partition: int, leader: int, epoch: int) -> None:
        """Wait until each broker knows the leader and its epoch, and the leader serves."""
        for n in sorted(self.brokers.running):
            wait_until(
                lambda n=n: self._seen_at(n, topic, partition) == (leader, epoch),  # type: ignore[misc]
                f"broker {n} knows leader {leader} of {topic}-{partition}, epoch {epoch}",
                WAIT_S,
            )
        if leader in self.brokers.running:
            wait_until(
                lambda: self.offset(topic, -1, at=leader, epoch=epoch, partition=partition)[0] == 0,
                f"broker {leader} serves {topic}-{partition} in epoch {epoch}",
                WAIT_S,
            )

    def _seen_at(self, n: int, topic: str, partition: int) -> tuple[int, int] | None:
        answer = self.quietly(
            n, "metadata", METADATA, topics=[{"name": topic}], allow_auto_topic_creation=False
        )
        for part in answer["topics"][0]["partitions"]:
            if part["partition_index"] == partition:
                return part["leader_id"], part["leader_epoch"]
        return None

    def partitions(self, topic: str) -> list[dict[str, Any]]:
        """Return the states in the tree of the partitions that have one, by index."""
        indexes = self.tree.children(f"/brokers/topics/{topic}/partitions")
        states = [self.tree.state(topic, int(index)) for index in indexes]
        return [state for state in states if state is not None]

    def until_deleted(self, topic: str) -> None:
        """Wait until the tree does not have the topic, and no broker that runs knows it."""

        remaining: list[str] = []

        def is_gone() -> bool:
            nodes = [f"/brokers/topics/{topic}", f"/admin/delete_topics/{topic}"]
            remaining[:] = [path for path in nodes if self.tree.exists(path)]
            remaining.extend(f"broker {n}" for n in self.brokers.running if self.knows(n, topic))
            return not remaining

        try:
            wait_until(is_gone, f"{topic} is deleted", WAIT_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is still at {remaining}") from error

    def knows(self, n: int, topic: str) -> bool:
        """Return whether a broker tells clients of the topic."""
        answer = self.quietly(
            n, "metadata", METADATA, topics=[{"name": topic}], allow_auto_topic_creation=False
        )
        code: int = answer["topics"][0]["error_code"]
        return code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def state(self, label: str, topic: str, partition: int = 0) -> None:
        """Record the state of a partition in the tree."""
        state = self.tree.state(topic, partition)
        if state is not None:
            state["isr"] = sorted(state["isr"])
            state["controller_epoch"] -= self.first_controller_epoch
        self.note(f"{label}: state", state)

    def assignment(self, label: str, topic: str) -> None:
        """Record the replicas of a topic in the tree, with those that come and go."""
        node = self.tree.topic(topic)
        self.note(
            f"{label}: assignment", node and {k: v for k, v in node.items() if k != "topic_id"}
        )

    def metadata(self, label: str, n: int, topic: str) -> None:
        """Record Metadata's entry of a topic at broker n; order of ISR and offline does not count.

        Texts, ids and addresses are masked.
        """
        answer = self.quietly(
            n, "metadata", METADATA, topics=[{"name": topic}], allow_auto_topic_creation=False
        )
        entry = answer["topics"][0]
        for partition in entry["partitions"]:
            partition["isr_nodes"] = sorted(partition["isr_nodes"])
            partition["offline_replicas"] = sorted(partition["offline_replicas"])
        self.at(n).api = "metadata"
        self.at(n).note(f"{label}: metadata of {n}", entry)

    def knows_controller(self, n: int, controller: int) -> bool:
        """Return whether broker n names this controller to clients."""
        answer = self.quietly(n, "metadata", METADATA, topics=[])
        return bool(answer["controller_id"] == controller)

    # Coordinators

    def until_coordinator(self, n: int, key: str, *, key_type: int = 0) -> None:
        """Wait until all brokers name n as the coordinator, and n has loaded its state."""

        def is_found() -> bool:
            answers = [
                self.quietly(other, "find_coordinator", 3, key=key, key_type=key_type)
                for other in self.brokers.running
            ]
            return all(
                (coordinator["error_code"], coordinator["node_id"]) == (0, n)
                for coordinator in answers
            )

        self.wait(is_found, f"broker {n} is the coordinator of {key}")
        if key_type == 0:
            self.wait(lambda: self._code_of_group(n, key) == 0, f"broker {n} has loaded {key}")

    def _code_of_group(self, n: int, group: str) -> int:
        answer = self.quietly(n, "describe_groups", 5, groups=[group])
        code: int = answer["groups"][0]["error_code"]
        return code

    def until_producer(self, n: int, transactional_id: str) -> int:
        """Ask coordinator n for a producer id until it gives one, and return it."""
        answer: Answer = {}

        def is_given() -> bool:
            answer.update(
                self.quietly(
                    n,
                    "init_producer_id",
                    2,
                    transactional_id=transactional_id,
                    transaction_timeout_ms=600_000,
                )
            )
            return bool(answer["error_code"] == 0)

        self.wait(is_given, "a producer id")
        return int(answer["producer_id"])

    def until_ended(self, n: int, **fields: Any) -> None:
        """Ask coordinator n to end a transaction until it does: it may load its state first."""
        self.wait(
            lambda: self.quietly(n, "end_txn", 3, **fields)["error_code"] == 0, "the end is taken"
        )

    # Records

    def produce(
        self,
        label: str,
        topic: str,
        *values: str,
        at: int,
        acks: int = -1,
        partition: int = 0,
        timeout_ms: int = 60_000,
        records: bytes | None = None,
        transactional_id: str | None = None,
    ) -> None:
        """Send one batch with these values to broker `at`, record error and base offset."""
        outcome = self._produce(
            topic,
            partition,
            at,
            acks=acks,
            records=records or batch(*(value.encode() for value in values)),
            timeout_ms=timeout_ms,
            transactional_id=transactional_id,
        )
        self.note(
            f"{label}: produced", {key: outcome[key] for key in ("error_code", "base_offset")}
        )

    def _produce(
        self, topic: str, partition: int, at: int, *, records: bytes, **fields: Any
    ) -> Answer:
        """Return the partition's part of a Produce answer."""
        data = [{"index": partition, "records": records}]
        fields = {"timeout_ms": 60_000, "transactional_id": None, **fields}
        answer = self.quietly(
            at, "produce", PRODUCE, topic_data=[{"name": topic, "partition_data": data}], **fields
        )
        partition_answer: Answer = answer["responses"][0]["partition_responses"][0]
        return partition_answer

    def offset(
        self, topic: str, timestamp: int, *, at: int, epoch: int = -1, partition: int = 0
    ) -> tuple[int, int]:
        """Return error code and offset for a timestamp (-1 the end, -2 the start)."""
        answer = self.quietly(
            at,
            "list_offsets",
            LIST_OFFSETS,
            replica_id=-1,
            topics=[
                {
                    "name": topic,
                    "partitions": [
                        {
                            "partition_index": partition,
                            "current_leader_epoch": epoch,
                            "timestamp": timestamp,
                        }
                    ],
                }
            ],
        )
        part = answer["topics"][0]["partitions"][0]
        return part["error_code"], part["offset"]

    def fetch(
        self,
        topic: str,
        *,
        at: int,
        offset: int = 0,
        epoch: int = -1,
        last_epoch: int = -1,
        partition: int = 0,
    ) -> Answer:
        """Return the partition's part of a Fetch answer, with its batches as `describe` gives."""
        answer = self.quietly(
            at,
            "fetch",
            FETCH,
            replica_id=-1,
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=0,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[
                {
                    "topic": topic,
                    "partitions": [
                        {
                            "partition": partition,
                            "current_leader_epoch": epoch,
                            "last_fetched_epoch": last_epoch,
                            "fetch_offset": offset,
                            "partition_max_bytes": 1 << 20,
                        }
                    ],
                }
            ],
        )
        if not answer["responses"]:
            return {"error_code": answer["error_code"]}
        part: Answer = answer["responses"][0]["partitions"][0]
        part["records"] = describe(part["records"])
        return part

    def until_committed(self, topic: str, end: int, *, at: int) -> None:
        """Wait until a follower knows that all records before `end` are committed.

        Where it leads alone, below `min.insync.replicas`, it will not learn that any more.
        """
        self.wait(
            lambda: bool(self.fetch(topic, at=at)["high_watermark"] == end),
            f"broker {at} has the high watermark {end} of {topic}",
        )

    def fetched(self, label: str, topic: str, *, at: int, **options: Any) -> None:
        """Record a Fetch answer."""
        partition = self.fetch(topic, at=at, **options)
        self.at(at).api = "fetch"
        self.at(at).note(f"{label}: fetched", partition)

    def logs(self, label: str, topic: str, *, on: Sequence[int], partition: int = 0) -> None:
        """Record the log, when the replicas `on` have the same bytes, epochs, and the leader's end.

        The batches are recorded with everything in their headers, and the leader's epochs. An epoch
        without records is only in the leader's list, and may be written to disk after the answer.
        """
        state = self.tree.state(topic, partition) or {}
        leader = state["leader"]

        def are_equal() -> bool:
            error, end = self.offset(topic, -1, at=leader, partition=partition)
            logs = [self._log(n, topic, partition) for n in on]
            epochs = [
                [entry for entry in self._epochs(broker_id, topic, partition) if entry[1] < end]
                for broker_id in on
            ]
            same = all(log == logs[0] for log in logs) and all(e == epochs[0] for e in epochs)
            last_epochs = [epoch for epoch, _ in self._epochs(leader, topic, partition)[-1:]]
            return (
                same
                and error == 0
                and _end_of(logs[0]) in {end, None}
                and last_epochs == [state["leader_epoch"]]
            )

        wait_until(are_equal, f"the replicas of {topic}-{partition} on {on} are equal", WAIT_S)
        self.note(f"{label}: epochs", self._epochs(leader, topic, partition))
        dialogue = self.at(leader)
        dialogue.api = "fetch"
        dialogue.note(f"{label}: batches", describe(self._log(leader, topic, partition)))

    def _directory(self, n: int, topic: str, partition: int) -> Path:
        return self.brokers.log_dir(n) / f"{topic}-{partition}"

    def _log(self, n: int, topic: str, partition: int) -> bytes:
        files = sorted(self._directory(n, topic, partition).glob("*.log"))
        return b"".join(file.read_bytes() for file in files)

    def _epochs(self, n: int, topic: str, partition: int) -> list[list[int]]:
        """Return [epoch, first offset] of each line of the checkpoint, below its two head lines."""
        path = self._directory(n, topic, partition) / "leader-epoch-checkpoint"
        lines = path.read_text().splitlines()[2:] if path.exists() else []
        return [[int(word) for word in line.split()] for line in lines]

    def has_log(self, n: int, topic: str, partition: int = 0) -> bool:
        """Return whether broker n has a directory of the partition."""
        return self._directory(n, topic, partition).is_dir()

    def wait(self, holds: Callable[[], bool], event: str) -> None:
        """Wait until a condition holds."""
        wait_until(holds, f"{self.name}: {event}", WAIT_S)

    # Requests to the controller

    def elect(self, label: str, topic: str | None, *partitions: int, unclean: bool = False) -> None:
        """Ask the controller for an election, and record the answer."""
        topics = [{"topic": topic, "partitions": list(partitions or (0,))}] if topic else None
        self.ask(
            label,
            self.controller,
            "elect_leaders",
            2,
            election_type=int(unclean),
            topic_partitions=topics,
            timeout_ms=60_000,
        )

    def reassign(
        self, label: str, topic: str, replicas: Sequence[int] | None, *, partition: int = 0
    ) -> None:
        """Ask the controller to move a partition (None: to cancel), and record the answer."""
        target = None if replicas is None else list(replicas)
        self.ask(
            label,
            self.controller,
            "alter_partition_reassignments",
            0,
            timeout_ms=60_000,
            topics=[
                {"name": topic, "partitions": [{"partition_index": partition, "replicas": target}]}
            ],
        )

    def until_moved(self, topic: str) -> None:
        """Wait until no replica of the topic comes or goes."""

        def is_done() -> bool:
            node = self.tree.topic(topic)
            return bool(node) and not (node["adding_replicas"] or node["removing_replicas"])

        self.wait(is_done, f"{topic} does not move any more")

    def moves(self, label: str, topic: str) -> None:
        """Record the moves of the topic that the controller lists."""
        self.ask(
            label,
            self.controller,
            "list_partition_reassignments",
            0,
            timeout_ms=60_000,
            topics=[{"name": topic, "partition_indexes": [0]}],
        )


def _end_of(log: bytes) -> int | None:
    """Return the offset after the last record, None for a log without batches."""
    batches = describe(log)
    if not isinstance(batches, list) or not batches:
        return None
    end: int = batches[-1]["base_offset"] + batches[-1]["last_offset_delta"] + 1
    return end


def creation(full_name: str, *replicas: Sequence[int], **configs: str) -> dict[str, Any]:
    """Return the fields of a topic in CreateTopics, with its replicas given."""
    return {
        "name": full_name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [
            {"partition_index": index, "broker_ids": list(brokers)}
            for index, brokers in enumerate(replicas)
        ],
        "configs": [
            {"name": key.replace("_", "."), "value": value} for key, value in configs.items()
        ],
    }
