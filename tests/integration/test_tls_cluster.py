"""Three brokers whose only listener has TLS: they fetch from each other through it."""

from __future__ import annotations

import logging

import pytest

from minibroker.testing import Cluster
from tests.support.certificates import tls_settings
from tests.support.waiting import wait_until

SETTINGS = {
    **tls_settings(ssl_client_auth="required"),
    "security.inter.broker.protocol": "SSL",
    "replica.fetch.wait.max.ms": "50",
}
del SETTINGS["inter.broker.listener.name"]


def test_followers_fetch_through_tls_with_certificates() -> None:
    with Cluster(3, config=SETTINGS, topics=["t"]) as cluster:
        wait_until(lambda: cluster.in_sync("t") == [0, 1, 2], "all replicas are in sync")
        leader = cluster.leader("t")
        cluster.broker(leader).produce("t", "x")
        for broker in cluster.brokers:
            wait_until(lambda b=broker: b.records("t"), "the record is there")  # type: ignore[misc]
        cluster.kill(leader)
        wait_until(lambda: cluster.leader("t") not in (-1, leader), "another broker leads")
        cluster.broker(cluster.leader("t")).produce("t", "y")


def test_a_broker_with_another_host_name_in_its_certificate_is_not_trusted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The certificates name 127.0.0.1 and localhost only."""
    settings = {**SETTINGS, "listeners": "SSL://127.0.0.2:0"}
    with caplog.at_level(logging.WARNING), Cluster(2, config=settings, topics=["t"]):
        wait_until(lambda: "certificate verify failed" in caplog.text, "a connection is refused")
