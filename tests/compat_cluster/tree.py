"""The ZooKeeper tree of a cluster, as the situations read it, and the end of a broker's session."""

from __future__ import annotations

import json
from typing import Any, Self

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.support.zookeeper_sessions import end_session

WAIT_S = 90.0


class ClusterTree:
    """A session of the tests' own on the chroot of one cluster; its methods take any thread."""

    def __init__(self, connect: str) -> None:
        self._address, _, self.chroot = connect.partition("/")
        with_root = KazooClient(hosts=self._address)
        with_root.start()
        with_root.ensure_path(f"/{self.chroot}")
        with_root.stop()
        with_root.close()
        self._client = KazooClient(hosts=connect)

    def __enter__(self) -> Self:
        self._client.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop()
        self._client.close()

    def value(self, path: str) -> Any:
        """Return the JSON of a node, None if there is no such node."""
        try:
            data, _ = self._client.get(path)
        except NoNodeError:
            return None
        return json.loads(data)

    def exists(self, path: str) -> bool:
        """Return whether the node is there."""
        return self._client.exists(path) is not None

    def children(self, path: str) -> list[str]:
        """Return the names of the children, sorted; none if there is no such node."""
        try:
            return sorted(self._client.get_children(path))
        except NoNodeError:
            return []

    def create(self, path: str, value: Any) -> None:
        """Make a node with this JSON."""
        self._client.create(path, json.dumps(value).encode())

    def delete(self, path: str) -> None:
        """Delete a node."""
        self._client.delete(path)

    def topic(self, name: str) -> dict[str, Any] | None:
        """Return the assignment of a topic as its node says it, None without the topic."""
        node: dict[str, Any] | None = self.value(f"/brokers/topics/{name}")
        return node

    def state(self, topic: str, partition: int) -> dict[str, Any] | None:
        """Return leader, epochs and ISR of a partition, None if it has no state."""
        state: dict[str, Any] | None = self.value(
            f"/brokers/topics/{topic}/partitions/{partition}/state"
        )
        return state

    def state_version(self, topic: str, partition: int) -> int:
        """Return how often the state of a partition was written since the first time."""
        stat = self._client.exists(f"/brokers/topics/{topic}/partitions/{partition}/state")
        assert stat is not None, f"{topic}-{partition} has no state"
        return int(stat.version)

    @property
    def controller(self) -> int | None:
        """Return the broker that is the controller, None without one."""
        node = self.value("/controller")
        return None if node is None else int(node["brokerid"])

    @property
    def controller_epoch(self) -> int:
        return int(self.value("/controller_epoch") or 0)

    def brokers(self) -> set[int]:
        """Return the brokers that are registered."""
        return {int(name) for name in self.children("/brokers/ids")}

    def session_of(self, broker: int) -> int | None:
        """Return the id of the session that registered a broker, None without a registration."""
        stat = self._client.exists(f"/brokers/ids/{broker}")
        return None if stat is None else int(stat.ephemeralOwner)

    def end_session(self, session_id: int) -> None:
        """End another client's session, as its expiry does: its ephemeral nodes go at once."""
        was_alive = end_session(self._address, session_id)
        assert was_alive, f"session {session_id:#x} was over before"
