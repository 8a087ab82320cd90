"""The control API of a broker: its operations, from the modules of `paths`.

`openapi.json` beside it describes the operations for programs; `description` makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.control.access import Access
from minibroker.control.paths import (
    clock,
    cluster,
    connections,
    console,
    faults,
    groups,
    health,
    metrics,
    page,
    quotas,
    records,
    requests,
    topics,
    transactions,
)
from minibroker.control.registry_view import is_of_registry
from minibroker.control.rest import RestApi
from minibroker.control.scope import ControlScope
from minibroker.rig.nodes import Nodes

if TYPE_CHECKING:
    from minibroker.control.messages import HttpRequest, Work
    from minibroker.rig.node import Node


class ControlApi(RestApi):
    """The control API of one node. The loop owns it."""

    def __init__(
        self, node: Node, access: Access | None = None, nodes: Nodes | None = None
    ) -> None:
        """`access`: who may ask; None: programs on this machine. `nodes`: all nodes of the cluster
        in this process; None: this one is alone.
        """
        if nodes is None:
            nodes = Nodes()
            nodes.add(node)
        access = access or Access()
        self.scope = ControlScope(node, nodes, access)
        super().__init__(OPERATIONS, access, self.scope)

    def begin(self, request: HttpRequest) -> Work:
        """Do `RestApi.begin`, for a path of the schema registry too. Raises HttpError."""
        if not is_of_registry(request):
            return super().begin(request)
        self._access.check(request)
        self._access.check_data(request)
        return self.scope.registry.work(request)


OPERATIONS: Final = page.with_overview(
    (
        *page.OPERATIONS,
        *health.OPERATIONS,
        *metrics.OPERATIONS,
        *topics.OPERATIONS,
        *records.OPERATIONS,
        *groups.OPERATIONS,
        *transactions.OPERATIONS,
        *connections.OPERATIONS,
        *requests.OPERATIONS,
        *faults.OPERATIONS,
        *faults.OF_BROKERS,
        *clock.OPERATIONS,
        *quotas.OPERATIONS,
        *cluster.OPERATIONS,
        *console.OPERATIONS,
    )
)
"""Every operation, in the order of the reference page."""
