"""The worker's tests."""

import pytest
from dead_letters import ATTEMPTS, Worker


class Handler:
    def __init__(self):
        self.values = []

    def __call__(self, value):
        self.values.append(value)
        if value.startswith(b"bad"):
            raise ValueError("no such account")


@pytest.fixture
def handler():
    return Handler()


@pytest.fixture
def worker(kafka, handler):
    worker = Worker(kafka.bootstrap, "payments", "bank", handler)
    yield worker
    worker.close()


def run(worker, count, polls=600):
    """Run until `count` records are done; a poll takes a tenth of a second at most."""
    for _ in range(polls):
        count -= worker.run_once()
        if not count:
            return
    raise AssertionError(f"{count} records are not done with after {polls} polls")


def test_records_that_cannot_be_handled_are_set_aside_and_the_rest_goes_on(kafka, worker, handler):
    kafka.produce("payments", b"good 1")
    kafka.produce("payments", b"bad 2", key=b"account-2", headers=[("trace", b"abc")])
    kafka.produce("payments", b"good 3")
    run(worker, 3)
    assert handler.values == [b"good 1", *[b"bad 2"] * ATTEMPTS, b"good 3"]
    (dead,) = kafka.records("payments.dlq")
    assert (dead.key, dead.value) == (b"account-2", b"bad 2")
    assert dict(dead.headers) == {
        "trace": b"abc",
        "dlq.from": b"payments-0@1",
        "dlq.error": b"ValueError: no such account",
    }
    assert kafka.committed("bank") == {("payments", 0): 3}


def test_nothing_is_committed_that_could_not_be_set_aside(kafka, worker):
    kafka.produce("payments", b"bad")
    with (
        kafka.faults.add("Produce", error="TOPIC_AUTHORIZATION_FAILED", topic="payments.dlq"),
        pytest.raises(RuntimeError, match="cannot set aside"),
    ):
        run(worker, 1)
    assert kafka.committed("bank") == {}


def test_a_slow_dead_letter_topic_is_written_once(kafka, worker):
    kafka.produce("payments", b"bad")
    with kafka.faults.add("Produce", drop="after", times=2) as fault:
        run(worker, 1)
    assert fault.hits == 2
    assert [record.value for record in kafka.records("payments.dlq")] == [b"bad"]


def test_a_worker_that_lost_its_session_joins_again_and_goes_on(kafka, worker, handler):
    kafka.produce("payments", b"1")
    run(worker, 1)
    assert kafka.groups["bank"] == "Stable"
    kafka.clock.advance(minutes=1)
    kafka.wait_for_requests("Heartbeat", error="UNKNOWN_MEMBER_ID")
    kafka.produce("payments", b"2")
    run(worker, 1)
    kafka.wait_for_requests("SyncGroup", 2)
    # Twice, when it was fetched before the worker had joined again: that commit is refused.
    assert handler.values in ([b"1", b"2"], [b"1", b"2", b"2"])
    assert kafka.committed("bank") == {("payments", 0): 2}
