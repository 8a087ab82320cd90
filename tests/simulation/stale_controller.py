"""A controller that was deposed: it sends true requests of its time, late.

It looks at the tree now and then, as the controller of that time would see it. Its requests carry
the epochs of then: those of the controller, of the brokers, and of the leaders. A broker has to
refuse them where it knows better, or to find nothing new in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.cluster import paths
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from minibroker.kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from minibroker.kafka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from tests.simulation.connections import FAILURES, Connections
from tests.simulation.plan import BRIEF_TOPIC

if TYPE_CHECKING:
    from minibroker.broker.cluster.codecs import PartitionState
    from minibroker.kafka.ids import TopicPartition
    from tests.simulation.host import Host
    from tests.simulation.world import World

VIEWS_MAX = 20
LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA = 6, 7, 3
DURING_DELETE = -2


class View(NamedTuple):
    """The tree as a controller saw it."""

    controller_epoch: int
    broker_epochs: dict[int, int]
    topic_ids: dict[str, bytes]
    states: dict[TopicPartition, tuple[PartitionState, int, list[int]]]
    """State, version of its node, and replicas of each partition."""


class StaleController:
    """Looks now, and sends later."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._views: list[View] = []
        self._connections = Connections(world, "stale controller")

    @property
    def _epoch(self) -> int:
        return int(self._world.tree.nodes[paths.CONTROLLER_EPOCH].data)

    async def look(self, _host: Host) -> None:
        """Remember the tree as it is now."""
        world, tree = self._world, self._world.tree
        view = View(
            self._epoch,
            {
                int(name): tree.nodes[paths.broker(int(name))].czxid
                for name in tree.children(paths.BROKER_IDS)
            },
            dict(world.topic_ids),
            {
                name: (
                    state,
                    tree.nodes[paths.partition_state(*name)].version,
                    world.replicas_of(name),
                )
                for name, state in world.states.items()
            },
        )
        self._views = [*self._views[-VIEWS_MAX:], view]

    async def send(self, host: Host) -> None:
        """Send what it would have sent to a broker then, if there is a later controller now."""
        chance = self._connections.chance
        views = [view for view in self._views if view.controller_epoch < self._epoch]
        if views and host.is_ready:
            view = chance.choice(views)
            sending = chance.choice([self._roles, self._metadata, self._stops])
            self._world.loop.create_task(sending(host, view))

    async def _roles(self, host: Host, view: View) -> None:
        """Send LeaderAndIsr for what the broker had a replica of."""
        topics: dict[str, LeaderAndIsrTopicState] = {}
        for name, (state, version, replicas) in view.states.items():
            if host.broker_id not in replicas:
                continue
            topic = topics.setdefault(
                name.topic,
                LeaderAndIsrTopicState(
                    topic_name=name.topic, topic_id=view.topic_ids.get(name.topic, ZERO_TOPIC_ID)
                ),
            )
            topic.partition_states.append(
                LeaderAndIsrPartitionState(
                    partition_index=name.partition,
                    controller_epoch=state.controller_epoch,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=state.isr,
                    partition_epoch=version,
                    replicas=replicas,
                )
            )
        request = LeaderAndIsrRequest(
            controller_id=0,
            controller_epoch=view.controller_epoch,
            broker_epoch=view.broker_epochs.get(host.broker_id, -1),
            topic_states=list(topics.values()),
        )
        await self._call(host, request, LeaderAndIsrResponse, LEADER_AND_ISR)

    async def _metadata(self, host: Host, view: View) -> None:
        """Send UpdateMetadata for all partitions."""
        topics: dict[str, UpdateMetadataTopicState] = {}
        for name, (state, version, replicas) in view.states.items():
            topic = topics.setdefault(
                name.topic,
                UpdateMetadataTopicState(
                    topic_name=name.topic, topic_id=view.topic_ids.get(name.topic, ZERO_TOPIC_ID)
                ),
            )
            topic.partition_states.append(
                UpdateMetadataPartitionState(
                    partition_index=name.partition,
                    controller_epoch=state.controller_epoch,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=state.isr,
                    zk_version=version,
                    replicas=replicas,
                    offline_replicas=[
                        broker_id for broker_id in replicas if broker_id not in view.broker_epochs
                    ],
                )
            )
        request = UpdateMetadataRequest(
            controller_id=0,
            controller_epoch=view.controller_epoch,
            broker_epoch=view.broker_epochs.get(host.broker_id, -1),
            topic_states=list(topics.values()),
            live_brokers=[UpdateMetadataBroker(id=broker_id) for broker_id in view.broker_epochs],
        )
        await self._call(host, request, UpdateMetadataResponse, UPDATE_METADATA)

    async def _stops(self, host: Host, view: View) -> None:
        """Send StopReplica for what the broker had no replica of, and for the topic that does not
        stay.
        """
        stops = [
            (name, state.leader_epoch)
            for name, (state, _, replicas) in view.states.items()
            if host.broker_id not in replicas
        ]
        stops += [(name, DURING_DELETE) for name in view.states if name.topic == BRIEF_TOPIC]
        if not stops:
            return
        request = StopReplicaRequest(
            controller_id=0,
            controller_epoch=view.controller_epoch,
            broker_epoch=view.broker_epochs.get(host.broker_id, -1),
            topic_states=[
                StopReplicaTopicState(
                    topic_name=name.topic,
                    partition_states=[
                        StopReplicaPartitionState(
                            partition_index=name.partition,
                            leader_epoch=leader_epoch,
                            delete_partition=True,
                        )
                    ],
                )
                for name, leader_epoch in stops
            ],
        )
        await self._call(host, request, StopReplicaResponse, STOP_REPLICA)

    async def _call(self, host: Host, request: object, response: object, version: int) -> None:
        name = type(request).__name__
        self._world.note(f"a late {name} to broker {host.broker_id}")
        try:
            answer = await self._connections.call(host.broker_id, request, response, version)
        except FAILURES as error:
            self._world.note(f"a late {name} to broker {host.broker_id} fails: {error}")
        else:
            self._world.note(f"broker {host.broker_id} answers a late {name}: {answer.error_code}")
