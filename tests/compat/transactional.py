"""A transactional producer for the preparations of a scenario: its answers are not recorded.

producer = Producer(talk).begin_session()
producer.add(topic, 0)
producer.produce(topic, b"a")
producer.end(committed=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.batches import TRANSACTIONAL, batch

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue

TIMEOUT_MS = 600_000
"""Time of a transaction: none is aborted because the machine is busy."""
CONCURRENT_TRANSACTIONS = 51
NOT_YET = {14, 15, 16, CONCURRENT_TRANSACTIONS}
"""Error codes of a coordinator that is not ready: preparations ask again."""
PREPARED = {"PrepareCommit", "PrepareAbort"}
TRANSACTION = 1
"""Key type of FindCoordinator."""


class Producer:
    """A transactional producer of one scenario; its requests are not recorded."""

    def __init__(self, talk: Dialogue, name: str = "txn", timeout_ms: int = TIMEOUT_MS) -> None:
        self.talk = talk
        self.transactional_id = talk.prefix + name
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1

    def begin_session(self) -> Producer:
        """Send InitProducerId until the coordinator is ready and no old transaction is open."""
        find_coordinator(self.talk, self.transactional_id)

        def is_given() -> bool:
            answer = self.talk.quietly(
                "init_producer_id",
                1,
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self.timeout_ms,
            )
            assert answer["error_code"] in {0, *NOT_YET}, answer
            self.producer_id, self.epoch = answer["producer_id"], answer["producer_epoch"]
            return bool(answer["error_code"] == 0)

        self.talk.wait_until(is_given, f"a session of {self.transactional_id}")
        return self

    @property
    def owner(self) -> dict[str, Any]:
        """Return the fields that every request of a transaction begins with."""
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def add(self, topic: str, *partitions: int) -> None:
        """Add the partitions to the transaction."""

        def is_added() -> bool:
            answer = self.talk.quietly(
                "add_partitions_to_txn",
                1,
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[{"name": topic, "partitions": list(partitions)}],
            )
            codes = {
                result_of["partition_error_code"]
                for result in answer["results_by_topic_v3_and_below"]
                for result_of in result["results_by_partition"]
            }
            assert codes <= {0, *NOT_YET}, answer
            return codes == {0}

        self.talk.wait_until(is_added, f"{topic} in {self.transactional_id}")

    def batch(self, *values: bytes, sequence: int = 0, epoch: int | None = None) -> bytes:
        """Return a transactional batch of this producer."""
        return batch(
            *values,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            sequence=sequence,
            attributes=TRANSACTIONAL,
        )

    def produce(self, topic: str, *values: bytes, sequence: int = 0, partition: int = 0) -> None:
        """Append a batch to a partition of the transaction."""
        answer = self.talk.quietly(
            "produce",
            7,
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=60_000,
            topic_data=[
                {
                    "name": topic,
                    "partition_data": [
                        {"index": partition, "records": self.batch(*values, sequence=sequence)}
                    ],
                }
            ],
        )
        code = answer["responses"][0]["partition_responses"][0]["error_code"]
        assert code == 0, answer

    def end(self, committed: bool) -> None:
        """End the transaction, and wait until every partition has its marker."""
        answer = self.talk.quietly("end_txn", 1, committed=committed, **self.owner)
        assert answer["error_code"] == 0, answer
        self.settle()

    def wait_until_loaded(self) -> None:
        """Wait until a coordinator that was just started knows the id."""
        self.talk.wait_until(
            lambda: self.described()["error_code"] == 0, f"a coordinator of {self.transactional_id}"
        )

    def settle(self) -> None:
        """Wait until the coordinator has written every marker of the decided transaction."""

        def is_settled() -> bool:
            state = self.described()
            return state["error_code"] not in NOT_YET and state["transaction_state"] not in PREPARED

        self.talk.wait_until(is_settled, f"the end of a transaction of {self.transactional_id}")

    def described(self) -> dict[str, Any]:
        """Return the coordinator's description of the id."""
        answer = self.talk.quietly(
            "describe_transactions", 0, transactional_ids=[self.transactional_id]
        )
        state: dict[str, Any] = answer["transaction_states"][0]
        return state


def find_coordinator(talk: Dialogue, transactional_id: str) -> None:
    """Have `__transaction_state` made; wait until a broker coordinates the id."""

    def is_found() -> bool:
        answer = talk.quietly("find_coordinator", 2, key=transactional_id, key_type=TRANSACTION)
        assert answer["error_code"] in {0, *NOT_YET}, answer
        return bool(answer["error_code"] == 0)

    talk.wait_until(is_found, f"a coordinator of {transactional_id}")


def open_transaction(producer: Producer) -> dict[str, Any]:
    """Return DescribeTransactions without the time, with sorted partitions."""
    state = producer.described()
    state["transaction_start_time_ms"] = state["transaction_start_time_ms"] > 0
    state["topics"] = sorted(
        [topic["topic"], sorted(topic["partitions"])] for topic in state["topics"]
    )
    return state
