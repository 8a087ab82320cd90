"""Requests without a connection, and the disk of a broker under test."""

from __future__ import annotations

import errno
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.control.api import ControlApi
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.api_keys import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    METADATA,
    SHARE_FETCH,
)
from minibroker.rig.faulty_disk import FaultyDisk
from minibroker.rig.inner_client import InnerClient
from minibroker.testing import Broker

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.rig.node import Node


def ask(broker: Broker, api_key: int, **fields: Any) -> Any:
    async def run(node: Node) -> Any:
        return await InnerClient(node.app).ask(api_key, **fields)

    return broker.await_node(run)


@pytest.mark.kafka(topics=["orders"])
def test_an_answer_is_the_one_that_a_client_gets(kafka_broker: Broker) -> None:
    (described,) = ask(kafka_broker, DESCRIBE_CLUSTER).brokers
    assert f"{described.host}:{described.port}" == kafka_broker.bootstrap
    assert ask(kafka_broker, DESCRIBE_QUORUM, topics=[]).error_code == 0
    assert len(kafka_broker._node.request_log) == 0
    assert kafka_broker._node.app.services.metrics.requests == {}


def test_an_api_that_is_not_served_is_refused(kafka_broker: Broker) -> None:
    with pytest.raises(KafkaError, match="UNSUPPORTED_VERSION"):
        ask(kafka_broker, SHARE_FETCH)


def test_no_fault_and_no_acl_meets_it() -> None:
    with Broker(topics=["orders"], acls=[]) as broker, broker.faults.add(hold=True, may_miss=True):
        assert ask(broker, METADATA, topics=None).topics[0].error_code == 0
        assert ask(broker, DESCRIBE_CLUSTER).error_code == 0


def test_a_broker_that_was_started_again_has_a_client_of_its_own(kafka_broker: Broker) -> None:
    scope = ControlApi(kafka_broker._node).scope
    first = scope.client()
    assert scope.client() is first
    with kafka_broker.faults.add(broker="killed"):
        pass
    second = scope.client()
    assert second is not first
    assert second.broker is kafka_broker._node.app


def test_a_full_disk_takes_nothing_new_and_gives_what_it_has(tmp_path: Path) -> None:
    disk = FaultyDisk()
    path = str(tmp_path / "a")
    handle = disk.open(path, create=True)
    disk.write_all(handle, [b"here"], 0)
    disk.is_full = True
    for refused in (
        lambda: disk.write_all(handle, [b"more"], 4),
        lambda: disk.open(str(tmp_path / "b"), create=True),
        lambda: disk.make_directory(str(tmp_path / "c")),
        lambda: disk.write_atomically(str(tmp_path / "d"), b"x"),
    ):
        with pytest.raises(OSError, match="No space left") as caught:
            refused()
        assert caught.value.errno == errno.ENOSPC
    assert disk.read_all(path) == b"here"
    disk.is_full = False
    disk.write_all(handle, [b"more"], 4)
    disk.close(handle)
    assert disk.read_all(path) == b"heremore"


def test_a_slow_sync_takes_its_time(tmp_path: Path) -> None:
    disk = FaultyDisk()
    handle = disk.open(str(tmp_path / "a"), create=True)
    disk.sync_delay_ms = 30
    began_s = perf_counter()
    disk.sync(handle)
    assert perf_counter() - began_s >= 0.03
    disk.close(handle)
