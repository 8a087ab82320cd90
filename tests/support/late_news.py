"""A broker of a cluster in this process that hears late of changes of the metadata."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tests.support.in_process import TIMEOUT_S
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.testing import Cluster

T = TypeVar("T")


@contextmanager
def late_news(cluster: Cluster, broker_id: int) -> Iterator[None]:
    """Keep news of the metadata from a broker, which goes on otherwise."""
    tree = cluster.node(broker_id).app.cluster.tree
    cluster.call(lambda: tree.hold(is_held=True))  # type: ignore[attr-defined]
    try:
        yield
    finally:
        cluster.call(lambda: tree.hold(is_held=False))  # type: ignore[attr-defined]


def result_after_news(cluster: Cluster, broker_id: int, call: Callable[[], T]) -> T:
    """Return what `call` returns, which has to wait for a broker whose news are late."""

    def waits() -> bool:
        is_waiting: bool = cluster.call(lambda: bool(cluster._nodes._changes._waiting))
        return is_waiting

    with ThreadPoolExecutor(1) as pool:
        with late_news(cluster, broker_id):
            future = pool.submit(call)
            wait_until(lambda: future.done() or waits(), "it waits")
            assert not future.done(), "it did not wait for the broker"
        return future.result(TIMEOUT_S)
