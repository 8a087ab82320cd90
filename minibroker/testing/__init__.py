"""minibroker for tests: a broker in the test's own process, with its clock, records and requests.

    from minibroker.testing import Broker

    with Broker(topics=["orders:3"]) as broker:
        run_my_service(bootstrap_servers=broker.bootstrap)
        assert [record.value for record in broker.records("orders")] == [b"..."]

pytest finds the fixtures `kafka`, `kafka_topic`, `kafka_broker`, `kafka_module` and `kafka_session`
by itself (`plugin.py`), and `kafka_fixture` makes one of another scope. This package uses the whole
broker: it starts one as `app` does, in a thread with a loop of its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minibroker.rig.faults import Fault
    from minibroker.rig.group_views import GroupMember
    from minibroker.rig.request_log import SeenRequest
    from minibroker.rig.snapshot import Snapshot
    from minibroker.rig.topic_records import TopicRecord
    from minibroker.testing.acls import Allow, Deny
    from minibroker.testing.broker import Broker
    from minibroker.testing.cluster import Cluster
    from minibroker.testing.fixture_brokers import kafka_fixture
    from minibroker.testing.proxy import Proxy
    from minibroker.testing.recorded_broker import RecordedBroker

__all__ = [
    "Allow",
    "Broker",
    "Cluster",
    "Deny",
    "Fault",
    "GroupMember",
    "Proxy",
    "RecordedBroker",
    "SeenRequest",
    "Snapshot",
    "TopicRecord",
    "kafka_fixture",
]

_MODULES = {
    "Allow": "minibroker.testing.acls",
    "Deny": "minibroker.testing.acls",
    "Broker": "minibroker.testing.broker",
    "Cluster": "minibroker.testing.cluster",
    "Fault": "minibroker.rig.faults",
    "GroupMember": "minibroker.rig.group_views",
    "Proxy": "minibroker.testing.proxy",
    "RecordedBroker": "minibroker.testing.recorded_broker",
    "SeenRequest": "minibroker.rig.request_log",
    "Snapshot": "minibroker.rig.snapshot",
    "TopicRecord": "minibroker.rig.topic_records",
    "kafka_fixture": "minibroker.testing.fixture_brokers",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use: pytest imports this package in every run."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)
