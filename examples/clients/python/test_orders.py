"""The generated client of the control API, on a minibroker of its own."""

import subprocess
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from minibroker_control import Client
from minibroker_control.api.default import (
    add_fault,
    load_seed,
    read_records,
    remove_fault,
    wait_until_ready,
    write_records,
)
from minibroker_control.models import FaultRule, NewRecord, NewRecords, ReadRecordsFormat
from minibroker_control.types import File

SEED = b"""{"create": "orders", "partitions": 1}
{"topic": "orders", "key": "o-0", "value": {"amount": 9}, "timestamp": "-1h"}
"""


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Client]:
    """A client of a broker that has the seed."""
    ready = tmp_path / "ready"
    command = ["minibroker", "serve", "--memory", "--listen", "127.0.0.1:0"]
    command += ["--control", "127.0.0.1:0", "--ready-file", str(ready)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as broker:
        while not ready.exists():
            time.sleep(0.005)
        url = ready.read_text().split(" on ")[2].strip()
        with Client(base_url=url) as client:
            load_seed.sync(client=client, body=File(BytesIO(SEED)))
            yield client
        broker.terminate()
        assert broker.wait() == 0


def test_records(control: Client) -> None:
    order = NewRecord(key="o-1", value={"amount": 12}, headers=[["source", "web"]])
    tombstone = NewRecord(key="o-1", value=None)
    body = NewRecords(records=[order, tombstone])
    appended = write_records.sync("orders", client=control, body=body)
    assert [record.offset for record in appended.records] == [1, 2]
    page = read_records.sync("orders", client=control, format_=ReadRecordsFormat.JSON)
    assert [record.value for record in page.records] == [{"amount": 9}, {"amount": 12}, None]
    assert page.positions[0].next_offset == 3


def test_a_fault(control: Client) -> None:
    rule = FaultRule(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
    fault = add_fault.sync(client=control, body=rule)
    assert fault.times == 2
    assert remove_fault.sync(fault.id, client=control).hits == 0


def test_a_wait_says_what_there_was(control: Client) -> None:
    answer = wait_until_ready.sync("billing", client=control, members=2, timeout_ms=0)
    assert "there is no such group" in answer.error
