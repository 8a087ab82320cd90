"""`Broker`: a whole minibroker in the test's process, in a thread with a loop of its own.

Its calls are synchronous (`broker_calls`), so that any test can use it; `async with` works too.
Several brokers run side by side; each has a port and a directory of its own. `stop` removes
everything.

    the test's thread ──call──► the broker's loop (app.Broker) ◄──TCP── the client under test
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.config.broker import BrokerConfig
from minibroker.rig.node import Node
from minibroker.testing.acls import BrokerAcls
from minibroker.testing.broker_calls import BrokerCalls
from minibroker.testing.broker_faults import Faults
from minibroker.testing.in_process import InProcess

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
    from pathlib import Path

    from minibroker.broker.app import Broker as AppBroker
    from minibroker.broker.security.acl_entries import Acl
    from minibroker.rig.waits import Waits
    from minibroker.testing.acls import AclRule

TEST_DEFAULTS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    # As many as Kafka's 50 would do nothing for a test but take time when they are made.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class Broker(InProcess, BrokerCalls):
    """One broker between `start` and `stop`, or in a `with` block.

    Args:
        topics: topics to make at every start and reset: `"orders"`, `"orders:3"`,
            `"orders:3:cleanup.policy=compact"`, as on the command line.
        config: Kafka's settings for the broker.
        data_dir: directory of its data; None: in memory, until the broker stops.
        security: `"SSL"`: the broker has a certificate, and clients use TLS with the settings of
            `client_config`. `"SASL_PLAINTEXT"`, `"SASL_SSL"`: clients log in. None: whatever
            `config` says, PLAINTEXT without it.
        users: name → password of the users that may log in, by PLAIN and by SCRAM.
        acls: `Allow("alice", "READ", topic="orders")`, `Deny(…)`: with a list, even an empty one,
            only what an ACL allows is allowed, at the start and after each reset. The user
            `"broker"` is the broker itself, and may do everything.
        version: the Kafka release that the broker passes for, from `"0.8.2"` to `"4.4"`: versions
            of requests, features and defaults are those of that release. `"2.8.2"` is `"2.8"`.
        registry: a schema registry is beside the broker, at `registry_url`.
    """

    NOUN = "broker"

    def __init__(
        self,
        *,
        topics: Iterable[str] = (),
        config: Mapping[str, str | int | bool] | None = None,
        data_dir: str | Path | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        acls: Iterable[AclRule] | None = None,
        version: str | None = None,
        registry: bool = False,
    ) -> None:
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
        self._node: Node
        self.faults = Faults(self._on_nodes)

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        self._node = Node(BrokerConfig(self._all_settings()), self._topics, clock=self._clock)
        await self._node.start()
        if self._acls:
            await self._node.inspector.change_acls(self._acls, ())
        await self._start_registries([self._node])
        yield
        await self._stop_registries()
        await self._node.stop()

    def _all_settings(self) -> dict[str, str]:
        directories = {}
        if self._data_dir is not None or "log.dirs" not in self._settings:
            directories["log.dirs"] = str(self._directory())
        return {
            **TEST_DEFAULTS,
            **self._secured(),
            **directories,
            **self._settings,
            **self._authorizer(),
        }

    def _bootstrap_servers(self) -> str:
        return self.bootstrap

    @property
    def nodes(self) -> Sequence[Node]:
        """Return the one node, for its loop."""
        return [self._node]

    @property
    def _running(self) -> Node:
        self._check_running()
        return self._node

    def _app_brokers(self) -> Sequence[AppBroker]:
        self._look  # noqa: B018  refuses a killed broker with a sentence
        return [self._node.app]

    @property
    def _waits(self) -> Waits:
        return self._running.waits

    def _on_nodes(
        self,
        call: Callable[[Node], Coroutine[Any, Any, Any]],
        broker_ids: Collection[int] | None,
    ) -> list[Any]:
        """Do `broker_faults.OnNodes`; this broker has one node."""
        return [self._await(call(self._running))]

    @property
    def acls(self) -> BrokerAcls:
        """Return the ACLs there are, to read and to change."""
        return BrokerAcls(lambda: self.call(self._look.acls), self._change_acls)

    def _change_acls(self, added: list[Acl], removed: list[Acl]) -> None:
        self._await(self._look.change_acls(added, removed))

    def reset(self) -> None:
        """Make the broker as it was after the start; clients may stay connected.

        It removes records, groups, offsets, transactions, quotas, delegation tokens, faults and
        changed settings. The topics of the start exist and are empty, its ACLs are there, and no
        others; the clock shows the machine's time.
        """
        self._await(self._running.reset())
        if self._acls:
            self._change_acls(self._acls, [])
        self.faults.forget()
