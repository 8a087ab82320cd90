"""Three brokers whose only listener has TLS: they fetch from each other through it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from minibroker.testing import Cluster
from tests.support.certificates import (
    authority,
    authority_pem,
    client_certificate,
    pem_of,
    tls_settings,
)
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_broker_shows_its_new_certificate_to_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that no super user has, so that the other brokers name it when they refuse."""
    other = authority().issue_cert(
        "localhost",
        "127.0.0.1",
        common_name="other",
        organization_name="Acme",
        organization_unit_name="Users",
    )
    mine, trusted = tmp_path / "mine.pem", tmp_path / "ca.pem"
    mine.write_text(pem_of(client_certificate("admin")))
    trusted.write_text(authority_pem())
    settings = {
        **SETTINGS,
        "ssl.allow.dn.changes": "true",
        "ssl.allow.san.changes": "true",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:CN=broker,OU=Users,O=Acme;User:CN=admin,OU=Users,O=Acme",
    }
    admin_settings = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(trusted),
        "ssl.certificate.location": str(mine),
        "ssl.key.location": str(mine),
    }
    with Cluster(2, config=settings, topics=["t"]) as cluster:
        wait_until(lambda: cluster.in_sync("t") == [0, 1], "all replicas are in sync")
        cluster.make_leader(0, "t")
        admin = AdminClient({"bootstrap.servers": cluster.broker(1).bootstrap, **admin_settings})
        prefix = "listener.name.ssl.ssl.keystore"
        stores = {
            f"{prefix}.key": other.private_key_pem.bytes().decode(),
            f"{prefix}.certificate.chain": pem_of(other),
        }
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in stores.items()
        ]
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=entries)
        (altered,) = admin.incremental_alter_configs([resource]).values()
        altered.result(180)
        cluster.kill(0)
        cluster.restart(0)
        wait_until(lambda: cluster.in_sync("t") == [0, 1], "broker 0 is back")
        with caplog.at_level(logging.INFO):
            cluster.make_leader(0, "t")
            denied = "User:CN=other,OU=Users,O=Acme from 127.0.0.1 may not CLUSTER_ACTION"
            wait_until(lambda: denied in caplog.text, "broker 0 has seen the new certificate")
