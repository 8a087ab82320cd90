"""`Cluster`: several minibrokers in the test's process, which replicate as a Kafka cluster does.

One thread, one loop, one metadata tree without ZooKeeper; each broker has a session with the tree,
a port and a directory of its own. A broker that is killed loses its session at once, so others lead
what it led a moment later.

    with Cluster(3, topics=["orders:6"]) as cluster:
        cluster.kill(cluster.leader("orders"))
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.members import configs_of, replicas_of
from minibroker.broker.local_cluster import LocalCluster
from minibroker.rig.faults import Fault, refuse_in_loop
from minibroker.rig.node import Node
from minibroker.rig.nodes import WAIT_S, Nodes
from minibroker.testing.acls import BrokerAcls
from minibroker.testing.broker import TEST_DEFAULTS
from minibroker.testing.broker_calls import BrokerCalls
from minibroker.testing.broker_faults import Faults
from minibroker.testing.consumer_waits import ConsumerWaits
from minibroker.testing.in_process import InProcess
from minibroker.testing.loop_thread import WAIT_TIMEOUT_S, is_for_test
from minibroker.testing.values import setting_text

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Collection,
        Coroutine,
        Iterable,
        Mapping,
        Sequence,
    )
    from concurrent.futures import Future
    from pathlib import Path

    from minibroker.broker.app import Broker as AppBroker
    from minibroker.broker.security.acl_entries import Acl
    from minibroker.rig.waits import Waits
    from minibroker.testing.acls import AclRule

__tracebackhide__ = is_for_test

CLUSTER_DEFAULTS: Final = {
    **TEST_DEFAULTS,
    # Leaders move when the test moves them.
    "auto.leader.rebalance.enable": "false",
    # A stop does not wait for another replica to catch up.
    "controlled.shutdown.max.retries": "1",
    # A follower that could not fetch tries again soon, by the machine's clock.
    "replica.fetch.backoff.ms": "50",
}


class Cluster(InProcess, ConsumerWaits):
    """Brokers 0 to `brokers` - 1, between `start` and `stop`, or in a `with` block.

    Args:
        brokers: how many.
        topics: topics to make at the start: `"orders"`, `"orders:3"`, `"orders:3:2"` with two
            replicas, as on the command line.
        config: Kafka's settings, the same for each broker.
        data_dir: directory of their data; None: in memory, until the cluster stops.
        racks: `broker.rack` of broker 0, 1, …; brokers behind the last one have none.
        security: as for `Broker`; brokers use it among each other, too.
        users: as for `Broker`; the brokers are the first user, with `acls` the user `"broker"`.
        acls: as for `Broker`; with `security`, for brokers and clients would be one user.
        version: as for `Broker`.
        registry: each broker has a schema registry beside it, all with the same schemas;
            `registry_url` is that of broker 0.
    """

    NOUN = "cluster"

    def __init__(
        self,
        brokers: int = 3,
        *,
        topics: Iterable[str] = (),
        config: Mapping[str, str | int | bool] | None = None,
        data_dir: str | Path | None = None,
        racks: Sequence[str] = (),
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        acls: Iterable[AclRule] | None = None,
        version: str | None = None,
        registry: bool = False,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"brokers={brokers}: a cluster has one broker or more")
        if acls is not None and not users and (security or "PLAINTEXT").upper() == "PLAINTEXT":
            raise ValueError("acls=… needs security=…: brokers and clients would be one user")
        super().__init__(
            topics=topics,
            config=config,
            data_dir=data_dir,
            security=security,
            users=users,
            acls=acls,
            version=version,
            registry=registry,
        )
        self._count = brokers  # constant
        self._racks = tuple(racks)  # constant
        self._nodes = Nodes()  # loop, while the cluster runs
        self.faults = Faults(self._on_nodes)
        """Faults of requests, on whichever broker they meet one; see also `broker(n).faults`."""

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        directory = self._directory()
        cluster = LocalCluster(directory, self._clock)
        config = BrokerConfig(
            {
                **CLUSTER_DEFAULTS,
                **self._secured(),
                **self._settings,
                **self._authorizer(),
                "log.dirs": str(directory),
            }
        )
        self._nodes = Nodes()
        for number, member in enumerate(configs_of(config, self._count)):
            in_rack = self._in_rack(number, member)
            self._nodes.add(Node(in_rack, clock=self._clock, new_tree=cluster.tree.session))
        cluster.members.extend(self._nodes.all)
        await cluster.start(self._topics)
        if self._acls:
            await self._nodes.change_acls(self._acls, [])
        await self._start_registries(self._nodes.all)
        yield
        await self._stop_registries()
        await cluster.stop()

    def _in_rack(self, number: int, member: BrokerConfig) -> BrokerConfig:
        """Return the configuration of a broker with its rack, if it has one."""
        if number >= len(self._racks):
            return member
        return member.with_overrides({"broker.rack": self._racks[number]})

    # What a test wants to know.

    @property
    def bootstrap(self) -> str:
        """Return `HOST:PORT,HOST:PORT,…` for a client's bootstrap.servers."""
        self._check_running()
        return ",".join(
            f"{host}:{port}" for host, port in (node.address for node in self._nodes.all)
        )

    def _bootstrap_servers(self) -> str:
        return self.bootstrap

    @property
    def acls(self) -> BrokerAcls:
        """Return the ACLs there are, to read and to change.

        A change holds on every broker that is not killed or paused when the call returns.
        """
        return BrokerAcls(self._find_acls, self._change_acls)

    def _find_acls(self) -> list[Acl]:
        self._check_running()
        acls: list[Acl] = self._await(self._nodes.acls(), WAIT_S)
        return acls

    def _change_acls(self, added: list[Acl], removed: list[Acl]) -> None:
        self._check_running()
        self._await(self._nodes.change_acls(added, removed), WAIT_S)

    @property
    def brokers(self) -> list[ClusterBroker]:
        """Return the brokers, in the order of their ids."""
        return [ClusterBroker(self, broker_id) for broker_id in range(self._count)]

    def broker(self, broker_id: int) -> ClusterBroker:
        """Return one broker, with its records, requests and faults. Raises ValueError."""
        self.node(broker_id)
        return ClusterBroker(self, broker_id)

    @property
    def controller(self) -> int:
        """Return the id of the broker that is the controller, -1 while there is none."""
        controller_id: int = self.call(self._nodes.controller_id)
        return controller_id

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of a partition's leader, -1 while there is none. Raises KafkaError."""
        leader: int = self.call(lambda: self._nodes.partition(topic, partition).leader)
        return leader

    def in_sync(self, topic: str, partition: int = 0) -> list[int]:
        """Return the brokers that are in sync (the ISR), ascending. Raises KafkaError."""
        isr: list[int] = self.call(lambda: sorted(self._nodes.partition(topic, partition).isr))
        return isr

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str | int | bool] | None = None,
        *,
        replication_factor: int | None = None,
    ) -> None:
        """Make a topic, with 3 replicas where there are as many brokers; all brokers that run
        know it and its leaders when this returns. Raises KafkaError, ConfigError, TimeoutError.
        """
        settings = {key: setting_text(value) for key, value in (config or {}).items()}
        replicas = replication_factor or replicas_of(self._count)

        self._await(self._nodes.create_topic(name, partitions, replicas, settings), WAIT_S)

    def report(self, requests: int = 20, records: int = 5) -> str:
        """Return `Broker.report` of each broker, for the report of a test that failed."""
        return "\n\n".join(
            f"broker {broker.broker_id}\n{broker.report(requests, records)}"
            for broker in self.brokers
        )

    # Faults of brokers and of the links between them. `reset` ends all of them.

    def kill(self, broker_id: int) -> None:
        """End a broker as `kill -9` does; its files stay. `restart` brings it back."""
        node = self.node(broker_id)
        if node.is_running:
            self._await(node.add(Fault(broker="killed")))

    def restart(self, broker_id: int) -> None:
        """Start a killed broker again, on its files and at its address; without its faults.

        A broker that runs is killed before.
        """
        self.kill(broker_id)
        self._await(self.node(broker_id).clear())

    def pause(
        self, broker_id: int, *, expire_session: bool = False, may_miss: bool = False
    ) -> Fault:
        """Stop a broker as SIGSTOP does, until the rule is removed.

        It accepts connections, and neither answers nor fetches nor notices anything. Its session
        with the metadata stays, so it keeps what it leads; replicas that do not fetch leave the ISR
        when the clock passes `replica.lag.time.max.ms`. With `expire_session` the session ends, as
        after a longer pause: others lead, and the broker learns it when it goes on.
        """
        fault = self.faults.put(Fault(broker="paused"), [broker_id], may_miss=may_miss)
        if expire_session:
            self.expire_session(broker_id)
        return fault

    def expire_session(self, broker_id: int) -> None:
        """End a broker's session with the metadata, once: others lead what it led.

        The broker has a new session when the others know it, or at the end of a pause. The others
        know it when this returns. Raises ValueError if the broker is killed.
        """
        self._await(self._nodes.expire_session(broker_id), WAIT_S)

    def cut(
        self,
        broker_id: int,
        other: int | None = None,
        *,
        one_way: bool = False,
        may_miss: bool = False,
    ) -> Fault:
        """Cut the link between two brokers, until the rule is removed.

        Requests of one to the other fail, and answers on their way are lost. Clients and the
        metadata are reached as before.

        Args:
            broker_id: a broker.
            other: the other one, None: all others.
            one_way: the requests of `broker_id` fail, and those of the other arrive.
            may_miss: a test does not fail if no request failed.
        """
        others = (
            {number for number in range(self._count) if number != broker_id}
            if other is None
            else {other}
        )
        for end in (broker_id, *others):
            self.node(end)
        links = {(broker_id, end) for end in others}
        if not one_way:
            links |= {(end, broker_id) for end in others}
        fault = Fault(broker="cut_off")
        fault.links = links
        return self.faults.put(fault, {sender for sender, _ in links}, may_miss=may_miss)

    def slow(
        self,
        broker_id: int,
        delay_ms: float,
        *,
        leader: int | None = None,
        may_miss: bool = False,
    ) -> Fault:
        """Have a broker fetch `delay_ms` later as a follower, until the rule is removed.

        The delay passes on the clock of the cluster. `leader`: only what it fetches from this one.
        """
        fault = Fault(broker="slow_follower", delay_ms=delay_ms, peer=leader)
        return self.faults.put(fault, [broker_id], may_miss=may_miss)

    def hold_metadata(self, broker_id: int, *, may_miss: bool = False) -> Fault:
        """Have a broker tell clients the metadata of now, until the rule is removed.

        It leads and follows as usual: Kafka's broker that gets LeaderAndIsr and no UpdateMetadata.
        """
        return self.faults.put(Fault(broker="stale_metadata"), [broker_id], may_miss=may_miss)

    def make_controller(self, broker_id: int) -> None:
        """Make a broker the controller. All brokers know it when this returns, but those that are
        killed or paused.

        Raises ValueError if it is killed or paused.
        """
        self._await(self._nodes.make_controller(broker_id), WAIT_S)

    def make_leader(self, broker_id: int, topic: str, partition: int = 0) -> None:
        """Make a broker the leader of a partition. All brokers know it when this returns, but those
        that are killed or paused.

        Raises KafkaError(ELIGIBLE_LEADERS_NOT_AVAILABLE) if it is not in sync; ValueError if it is
        killed or paused.
        """
        self._await(self._nodes.make_leader(topic, partition, broker_id), 2 * WAIT_S)

    def reset(self) -> None:
        """Make the cluster as it was after the start; clients may stay connected.

        It ends all faults, starts killed brokers, and removes records, groups, offsets and changed
        settings. The topics of the start exist and are empty, its ACLs are there, and no others;
        the clock shows the machine's time.
        """
        self._await(self._nodes.reset(), 3 * WAIT_S)
        if self._acls is not None:
            self._await(self._nodes.set_acls(self._acls), WAIT_S)
        self.faults.forget()

    # Waiting.

    def wait_until_in_sync(self, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait until every replica of every partition is in sync, all brokers running, and each
        broker knows it.

        Raises TimeoutError with the partitions that are not; RuntimeError in a running event loop,
        which needs `wait_until_in_sync_async`.
        """
        refuse_in_loop("wait_until_in_sync")
        self._await(self._nodes.until_in_sync(timeout_s), timeout_s)

    async def wait_until_in_sync_async(self, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait like `wait_until_in_sync`, for a test that runs in a loop."""
        await self._awaited(self._nodes.until_in_sync(timeout_s))

    def wait_until(
        self,
        topic: str,
        partition: int = 0,
        *,
        in_sync: Collection[int],
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> None:
        """Wait until exactly these brokers are in sync, as each broker knows that runs.

        Raises TimeoutError, KafkaError; RuntimeError in a running event loop, which needs
        `wait_until_async`.
        """
        refuse_in_loop("wait_until")
        self._await(self._until(topic, partition, in_sync, timeout_s), timeout_s)

    async def wait_until_async(
        self,
        topic: str,
        partition: int = 0,
        *,
        in_sync: Collection[int],
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> None:
        """Wait like `wait_until`, for a test that runs in a loop."""
        await self._awaited(self._until(topic, partition, in_sync, timeout_s))

    async def _until(
        self, topic: str, partition: int, in_sync: Collection[int], timeout_s: float
    ) -> None:
        await self._nodes.until(
            lambda: all(isr == set(in_sync) for isr in self._nodes.isrs(topic, partition)),
            f"in sync of {topic}-{partition} are {sorted(in_sync)}",
            timeout_s,
        )

    def _app_brokers(self) -> Sequence[AppBroker]:
        active = [node.app for node in self._nodes.active]
        if not active:
            raise RuntimeError("all brokers of the cluster are killed or paused: restart one")
        return active

    @property
    def _waits(self) -> Waits:
        self._check_running()
        return self._nodes.waits

    # Calls onto the loop.

    @property
    def nodes(self) -> Sequence[Node]:
        """Return the nodes of all brokers, for their loop."""
        return self._nodes.all

    def node(self, broker_id: int) -> Node:
        """Return the node of a broker, for its loop. Raises ValueError."""
        self._check_running()
        return self._nodes.find(broker_id)

    def _on_nodes(
        self,
        call: Callable[[Node], Coroutine[Any, Any, Any]],
        broker_ids: Collection[int] | None,
    ) -> list[Any]:
        """Do `broker_faults.OnNodes`."""
        self._check_running()
        nodes = (
            self._nodes.all if broker_ids is None else [self.node(number) for number in broker_ids]
        )
        return [self._await(call(node)) for node in nodes]


class ClusterBroker(BrokerCalls):
    """One broker of a `Cluster`. Its records are those of its own replicas."""

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self._cluster = cluster
        self.broker_id = broker_id
        self.faults = cluster.faults.of(broker_id)

    def __repr__(self) -> str:
        return f"<broker {self.broker_id} of {self._cluster!r}>"

    @property
    def registry_url(self) -> str:
        """Return the URL of this broker's schema registry. Raises RuntimeError without one."""
        return self._cluster._registry_url(self.broker_id)  # noqa: SLF001  the two are one part

    @property
    def _running(self) -> Node:
        return self._cluster.node(self.broker_id)

    @property
    def _waits(self) -> Waits:
        return self._cluster._waits  # noqa: SLF001  a group's partitions are led by several brokers

    def _app_brokers(self) -> Sequence[AppBroker]:
        return self._cluster._app_brokers()  # noqa: SLF001  as above

    def _until_known(self, topic: str) -> None:
        nodes = self._cluster._nodes  # noqa: SLF001  as above
        self._await(nodes.until_known(topic, self._running.app.cluster), WAIT_S)

    def delete_topic(self, name: str) -> None:
        """Remove a topic with its records, from every broker that runs. Raises KafkaError,
        TimeoutError.
        """
        self._look  # noqa: B018  refuses a killed broker with a sentence
        nodes = self._cluster._nodes  # noqa: SLF001  as above
        self._await(nodes.delete_topic(name), WAIT_S)

    def _submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        return self._cluster._submit(coroutine)  # noqa: SLF001  the two are one part
