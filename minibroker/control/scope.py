"""`ControlScope`: the parts of a process that the operations of a control API work on."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control.families import ProcessMetrics
from minibroker.control.fault_rules import FaultRules
from minibroker.control.health import reasons_not_ready
from minibroker.control.messages import HttpError
from minibroker.control.registry_view import RegistryView
from minibroker.control.samples import Sampler
from minibroker.control.slices import Slices
from minibroker.control.streams import Streams
from minibroker.control.waiting import WaitingRequests
from minibroker.rig.inner_client import InnerClient

if TYPE_CHECKING:
    from minibroker.broker.app import Broker
    from minibroker.control.access import Access
    from minibroker.rig.node import Node
    from minibroker.rig.nodes import Nodes
    from minibroker.rig.request_log import RequestLog

KNOWN_S: Final = 10.0
"""Longest wait until all brokers of this process know a change."""


class ControlScope:
    """The parts that operations use. Constant; the loop owns its parts."""

    def __init__(self, node: Node, nodes: Nodes, access: Access) -> None:
        self.node = node
        """The broker that serves this API."""
        self.nodes = nodes
        """All brokers of the cluster in this process."""
        self.access = access
        self.faults = FaultRules()
        self.process = ProcessMetrics()
        self.registry = RegistryView()
        self.samples = Sampler(lambda: self.running, self.faults.hits)
        self.slices = Slices()
        self.streams = Streams()
        self.waiting = WaitingRequests()
        self._clients: dict[int, InnerClient] = {}
        """Id of a broker → the client that asks it; another one when it was started again."""

    @property
    def broker(self) -> Broker:
        """Return the broker. Raises HttpError(503) while it does not run."""
        self.check_running()
        return self.node.app

    def check_running(self) -> None:
        """Raise HttpError(503) while the broker does not run."""
        if not self.node.is_running:
            reason = reasons_not_ready(self.node)[0]
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, f"{reason}: see /faults")

    def client(self, broker: Broker | None = None) -> InnerClient:
        """Return a client of a broker, None: of this one. Raises HttpError(503)."""
        broker = broker or self.broker
        broker_id = broker.config.broker_id
        client = self._clients.get(broker_id)
        if client is None or client.broker is not broker:
            client = self._clients[broker_id] = InnerClient(broker)
        return client

    def controller(self) -> InnerClient:
        """Return a client of the controller where it is in this process, else of this broker."""
        return self.client(
            next((broker for broker in self.brokers if broker.cluster.is_controller), None)
        )

    def client_of(self, broker_id: int | None) -> InnerClient:
        """Return a client of the broker with this id, None: of this one. Raises HttpError."""
        node = self.find(broker_id)
        if not node.is_running:
            raise HttpError(HTTPStatus.CONFLICT, f"broker {node.broker_id} does not run")
        return self.client(node.app)

    def find(self, broker_id: int | None) -> Node:
        """Return the node of a broker, None: the one behind this API. Raises HttpError(404)."""
        if broker_id is None:
            return self.node
        try:
            return self.nodes.find(broker_id)
        except ValueError as error:
            raise HttpError(HTTPStatus.NOT_FOUND, str(error)) from None

    @property
    def brokers(self) -> list[Broker]:
        """Return the brokers of this process that run, this one first. Raises HttpError(503) where
        this one does not.
        """
        others = [node.app for node in self.nodes.active if node is not self.node]
        return [self.broker, *others]

    @property
    def running(self) -> list[Node]:
        """Return the nodes of this process that run."""
        return [node for node in self.nodes.all if node.is_running]

    def request_logs(
        self, broker_id: int | None, *, all_brokers: bool
    ) -> dict[int | None, RequestLog]:
        """Return broker → its log of requests; that of this one where no id is given, or of all.
        Raises HttpError(404).
        """
        nodes = self.nodes.all if all_brokers else [self.find(broker_id)]
        return {node.broker_id: node.request_log for node in nodes}
