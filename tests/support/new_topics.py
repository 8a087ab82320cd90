"""Topics of tests at any Kafka: each is there, at every broker and its leader, when a call returns.

A broker of Kafka learns of a change after its controller has answered (`late_metadata`). A test
that writes to a topic that Kafka makes meanwhile may also have its producer refused for good: a
leader that comes between two batches takes the second one alone. So a test makes its topics here,
and deletes and grows them here, unless that is its subject.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.client import admin
from minibroker.client.client import Client, close_idle
from minibroker.client.settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS: Final = 120.0


def _client(address: str) -> Client:
    return Client(client_settings({"bootstrap.servers": address}))


def make_topic(
    address: str, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None
) -> None:
    """Make a topic with the cluster's number of replicas. Raises KafkaError, TimeoutError."""
    admin.create_topic(_client(address), name, partitions, settings or {}, timeout_s=SECONDS)
    close_idle()


def grow_topic(address: str, name: str, partitions: int) -> None:
    """Give a topic so many partitions in all. Raises KafkaError, TimeoutError."""
    admin.create_partitions(_client(address), name, partitions, timeout_s=SECONDS)
    close_idle()


def remove_topic(address: str, name: str) -> None:
    """Delete a topic. Raises KafkaError, TimeoutError."""
    admin.delete_topic(_client(address), name, timeout_s=SECONDS)
    close_idle()
