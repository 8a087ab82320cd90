"""minibroker for tests: a broker in the test's own process, its time, its records, its requests.

    from minibroker.testing import Broker

    with Broker(topics=["orders:3"]) as broker:
        run_my_service(bootstrap_servers=broker.bootstrap)
        assert [record.value for record in broker.records("orders")] == [b"..."]

pytest finds the fixtures `kafka`, `kafka_broker` and `kafka_topic` by itself (`plugin.py`). Stands
above the whole broker: it starts one as `app` does, in a thread with a loop of its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minibroker.testing.broker import Broker
    from minibroker.testing.faults import Fault
    from minibroker.testing.request_log import SeenRequest
    from minibroker.testing.topic_records import TopicRecord

__all__ = ["Broker", "Fault", "SeenRequest", "TopicRecord"]

_MODULES = {
    "Broker": "broker",
    "Fault": "faults",
    "SeenRequest": "request_log",
    "TopicRecord": "topic_records",
}


def __getattr__(name: str) -> Any:
    """Loaded with the first use: pytest imports this package in every run, used or not."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
