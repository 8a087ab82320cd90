"""minibroker for tests: a broker in the test's own process, with its clock, records and requests.

    from minibroker.testing import Broker

    with Broker(topics=["orders:3"]) as broker:
        run_my_service(bootstrap_servers=broker.bootstrap)
        assert [record.value for record in broker.records("orders")] == [b"..."]

pytest finds the fixtures `kafka`, `kafka_topic`, `kafka_broker`, `kafka_module` and `kafka_session`
by itself (`plugin.py`). This package uses the whole broker: it starts one as `app` does, in a
thread with a loop of its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minibroker.testing.acls import Allow, Deny
    from minibroker.testing.broker import Broker
    from minibroker.testing.cluster import Cluster
    from minibroker.testing.faults import Fault
    from minibroker.testing.group_views import GroupMember
    from minibroker.testing.request_log import SeenRequest
    from minibroker.testing.topic_records import TopicRecord

__all__ = [
    "Allow",
    "Broker",
    "Cluster",
    "Deny",
    "Fault",
    "GroupMember",
    "SeenRequest",
    "TopicRecord",
]

_MODULES = {
    "Allow": "acls",
    "Deny": "acls",
    "Broker": "broker",
    "Cluster": "cluster",
    "Fault": "faults",
    "GroupMember": "group_views",
    "SeenRequest": "request_log",
    "TopicRecord": "topic_records",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use: pytest imports this package in every run."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
