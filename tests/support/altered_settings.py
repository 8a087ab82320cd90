"""Settings that a test altered on a broker that others share, and did not take back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from tests.support.broker import Minibroker
    from tests.support.peers import KafkaPeer

APPLIED_S = 30.0
BROKER = 4
VERSION = 1
ALTERED = frozenset({2, 3})
"""Sources of a setting: of one broker, of all brokers (DescribeConfigs, `config_source`)."""

OF_KAFKA_ITSELF = {("min.insync.replicas", "1")}
"""Kafka 4 alters it for all brokers where a cluster begins with eligible leader replicas."""


def check_settings(peer: KafkaPeer | Minibroker) -> None:
    """Check that no setting of a shared broker is altered: the next test expects the usual ones.

    Kafka applies an alteration a while after it answers.

    Raises:
        AssertionError: a setting stays altered; names it.
    """
    altered = altered_settings(peer)
    if altered:
        condition = f"{peer.address} has its usual settings: {altered} was set and not taken back"
        wait_until(lambda: not altered_settings(peer), condition, APPLIED_S)


def altered_settings(peer: KafkaPeer | Minibroker) -> dict[str, str]:
    """Return what was altered on broker 0 or for all brokers: key → value."""
    with WireClient(peer.host, peer.port) as client:
        answer = client.call(
            "describe_configs",
            VERSION,
            resources=[
                {"resource_type": BROKER, "resource_name": name, "configuration_keys": None}
                for name in ("0", "")
            ],
            include_synonyms=False,
        )
    return {
        config["name"]: config["value"]
        for result in answer["results"]
        for config in result["configs"]
        if config["config_source"] in ALTERED
        and (config["name"], config["value"]) not in OF_KAFKA_ITSELF
    }
