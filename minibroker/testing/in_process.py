"""`InProcess`: the life of one broker or of several in the test's process.

A test starts and stops it, or uses it in a `with` block, sync or async. Its loop runs in a thread
of its own (`loop_thread`). Data without a directory are in memory, and go when it stops.
"""

from __future__ import annotations

import shutil
import tempfile
from abc import abstractmethod
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.config.topic_option import parse_topic
from minibroker.broker.config.values import RELEASE_KEY
from minibroker.rig.clock import MovableClock, TestClock
from minibroker.testing.acls import authorizer_settings
from minibroker.testing.failure_watch import Watched, fault_snapshots
from minibroker.testing.loop_thread import LoopThread
from minibroker.testing.values import setting_text

if TYPE_CHECKING:
    from collections.abc import (
        Iterable,
        Mapping,
        Sequence,
    )
    from contextlib import AbstractAsyncContextManager

    from minibroker.broker.app import Broker as AppBroker
    from minibroker.registry.service import RegistryService
    from minibroker.rig.node import Node
    from minibroker.rig.request_log import RequestLog
    from minibroker.rig.snapshot import Snapshot
    from minibroker.seeds.load import LoadedSeed
    from minibroker.testing.acls import AclRule
    from minibroker.testing.security import Security

LOAD_TIMEOUT_S: Final = 300.0
"""Longest load of a seed: it waits for no client, but a seed may be large."""
MEMORY: Final = Path("/dev/shm")


class InProcess(Watched):
    """It serves between `start` and `stop`, or in a `with` block."""

    def __init__(
        self,
        *,
        topics: Iterable[str],
        config: Mapping[str, str | int | bool] | None,
        data_dir: str | Path | None,
        security: str | None,
        users: Mapping[str, str] | None,
        acls: Iterable[AclRule] | None,
        version: str | None,
        registry: bool,
    ) -> None:
        """Take the arguments that `Broker` and `Cluster` have in common; `Broker` explains them."""
        # Constant after construction, up to the clock.
        self._topics = tuple(parse_topic(topic) for topic in topics)
        self._settings = {name: setting_text(value) for name, value in (config or {}).items()}
        if version is not None:
            from minibroker.broker.config.release_defaults import (  # noqa: PLC0415  only who asks pays
                release_named,
            )

            self._settings = {RELEASE_KEY: release_named(version), **self._settings}
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._protocol = security
        self._users = users
        self._acls = None if acls is None else [rule.to_acl() for rule in acls]
        self._has_registry = registry
        if registry:
            from minibroker.registry import check_libraries  # noqa: PLC0415  only who asks pays

            check_libraries("registry=True")
        self._clock = MovableClock()
        self.clock = TestClock(self._clock, self.call)
        """The time of all brokers: `broker.clock.advance(minutes=10)`."""
        self._registries: list[RegistryService] = []  # loop, while it runs
        self._own_dir: str | None = None
        self._security: Security | None = None
        """Made at the start, with `security=…`."""
        self._certificates: str | None = None
        self._thread = LoopThread(lambda: self._in_sight(self._serving()), on_end=self._remove_data)

    @property
    @abstractmethod
    def nodes(self) -> Sequence[Node]:
        """Return the nodes of all brokers, for their loop; also of those that are killed."""

    @property
    def title(self) -> str:
        """Return `Broker`, or `Cluster of 3 brokers`."""
        count = len(self.nodes)
        return "Broker" if count == 1 else f"Cluster of {count} brokers"

    def request_logs(self) -> Sequence[RequestLog]:
        """Return the logs of all brokers, for their loop."""
        return [node.request_log for node in self.nodes]

    def snapshot(self, since_ms: float = 0.0) -> Snapshot:
        """Return all that can be seen of the brokers now. Raises RuntimeError.

        `since_ms`: requests that came before are left out, by the machine's clock.
        """
        from minibroker.rig.snapshot import snapshot  # noqa: PLC0415  only who asks pays

        faults = fault_snapshots(self.faults)
        view: Snapshot = self._await(snapshot(self.nodes, since_ms=since_ms, faults=faults))
        return view

    def secrets(self) -> set[str]:
        """Return passwords that no report may show."""
        return set((self._users or {}).values())

    @abstractmethod
    def _serving(self) -> AbstractAsyncContextManager[None]:
        """Serve inside of the context, on the loop of the thread."""

    def _directory(self) -> Path:
        """Return the directory of the data; it exists."""
        if self._data_dir is not None:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            return self._data_dir
        memory = MEMORY if MEMORY.is_dir() else None
        self._own_dir = tempfile.mkdtemp(prefix="minibroker-", dir=memory)
        return Path(self._own_dir)

    def _secured(self) -> dict[str, str]:
        """Return the settings of `security=…`. The certificates have a directory of their own
        until it stops. With ACLs the broker's own user is none of `users`. Raises ConfigError.
        """
        if self._protocol is None and not self._users:
            return {}
        from minibroker.testing.security import Security  # noqa: PLC0415  only who asks pays

        self._certificates = tempfile.mkdtemp(prefix="minibroker-tls-")
        directory = Path(self._certificates)
        protocol = self._protocol or "SASL_PLAINTEXT"
        has_acls = self._acls is not None
        self._security = Security(protocol, directory, self._users, has_own_user=has_acls)
        return self._security.broker_settings()

    def _authorizer(self) -> dict[str, str]:
        """Return the settings of the authorizer, if there are ACLs."""
        return {} if self._acls is None else authorizer_settings(self._settings)

    async def _start_registries(self, nodes: Sequence[Node]) -> None:
        """Start a registry beside each broker, if there is to be one. Raises MinibrokerError."""
        self._registries = []
        if not self._has_registry:
            return
        from minibroker.broker.config.registry import RegistryOptions  # noqa: PLC0415  only who asks pays
        from minibroker.registry.service import RegistryService  # noqa: PLC0415  as above

        for node in nodes:
            registry = RegistryService(
                partial(_running, node),
                RegistryOptions(),
                has_peers=len(nodes) > 1,
            )
            await registry.start()
            self._registries.append(registry)

    async def _stop_registries(self) -> None:
        for registry in self._registries:
            await registry.stop()

    @property
    def registry_url(self) -> str:
        """Return the URL of the schema registry. Raises RuntimeError without `registry=True`."""
        return self._registry_url(0)

    def _registry_url(self, number: int) -> str:
        """Return the URL of one broker's registry. Raises RuntimeError."""
        self._check_running()
        if not self._has_registry:
            raise RuntimeError(
                f"this {self.NOUN} has no schema registry: make it with registry=True"
            )
        return self._registries[number].url

    @abstractmethod
    def _bootstrap_servers(self) -> str:
        """Return the value of a client's bootstrap.servers."""

    def client_config(
        self, client: str, *, user: str | None = None, mechanism: str = "SCRAM-SHA-256"
    ) -> dict[str, Any]:
        """Return the settings of a client, ready to use: of TLS, and of a login.

        Args:
            client: `"confluent-kafka"`, `"aiokafka"`, `"kafka-python"`, `"java"`, `"spark"`, or
                `"java-properties"`: the values as they stand in the lines of a properties file.
            user: the client is `User:alice`. With `users` it logs in, as the first one unless it
                is given; else it shows a certificate.
            mechanism: the one of SASL: `"PLAIN"`, `"SCRAM-SHA-256"` or `"SCRAM-SHA-512"`.

        Raises ValueError for another client, an unknown user, or a user without `security=…`.
        """
        bootstrap = self._bootstrap_servers()
        security = self._security
        if security is None:
            from minibroker.testing.security import Security  # noqa: PLC0415  only who asks pays

            if user is not None:
                raise ValueError(f"user={user!r} needs a {self.NOUN} with security=…")
            security = Security("PLAINTEXT", Path())
        return security.client_settings(client, bootstrap, user=user, mechanism=mechanism)

    @abstractmethod
    def _app_brokers(self) -> Sequence[AppBroker]:
        """Return the brokers that run, for their loop. Raises RuntimeError."""

    def load(self, seed: str | Path) -> LoadedSeed:
        """Load a seed: topics, records and committed offsets of groups from a file or directory.

        The whole seed is checked first, so a wrong one loads nothing. Records are added to those
        that a topic has, and all can be read when this returns. Relative timestamps such as `-1h`
        are relative to `clock`.

        Args:
            seed: JSON lines (`.jsonl`), YAML (`.yaml`, needs PyYAML), a segment file in a directory
                such as `orders-0`, or a directory with any of these.

        Raises SeedError with file, line and field; KafkaError; RuntimeError if it does not run.
        """
        loaded: LoadedSeed = self._await(self._load(seed), LOAD_TIMEOUT_S)
        return loaded

    async def load_async(self, seed: str | Path) -> LoadedSeed:
        """Load a seed like `load`, for a test that runs in a loop."""
        loaded: LoadedSeed = await self._awaited(self._load(seed))
        return loaded

    async def _load(self, seed: str | Path) -> LoadedSeed:
        from minibroker.seeds.load import load  # noqa: PLC0415  only who asks pays

        return await load(seed, self._app_brokers())

    def _remove_data(self) -> None:
        if self._own_dir is not None:
            shutil.rmtree(self._own_dir, ignore_errors=True)
            self._own_dir = None
        if self._certificates is not None:
            shutil.rmtree(self._certificates, ignore_errors=True)
            self._certificates = None


def _running(node: Node) -> AppBroker | None:
    return node.running_app
