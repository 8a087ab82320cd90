"""The metadata tree: one interface, two homes (`embedded`, `zookeeper`), ZooKeeper's semantics.

Everything that outlives a request and is not a record stands in this tree, at the paths and in the
JSON of Kafka 3.9 (`paths`, `codecs`). Handlers never see it: they use `cluster.Cluster`.

Rules both homes keep (`tests/unit/broker/cluster/test_tree_contract.py` runs against both):

- Every node has a value (bytes; empty and absent are the same), a version that starts at 0 and
  grows by one with each `set`, and children. `version=-1` means any version.
- A sequence node gets ten digits appended that grow and never come again below the same parent.
- An ephemeral node has no children and disappears with the session that made it.
- `multi` is all or nothing. Its parents must exist; it makes none.
- A watch stays until it is cancelled (ZooKeeper's fire once; the ZooKeeper home re-arms them). It
  tells that the node changed, not how: several changes may come as one call, and a call may come
  without a change (after a reconnection). So read again after each call. Calls arrive on the loop,
  after the operation that caused them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from minibroker.kafka.errors import MinibrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    Cancel: TypeAlias = Callable[[], None]
    """Ends a watch."""

ANY_VERSION: Final = -1
ILLEGAL_NAMES: Final = frozenset(("", ".", ".."))
"""Names that no node may have."""


class TreeError(MinibrokerError):
    """The tree refused an operation; `path` says where."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class NoNode(TreeError):  # noqa: N818 - ZooKeeper's names
    """The node, or the parent of a node to be created, does not exist."""


class NodeExists(TreeError):  # noqa: N818
    """A node to be created exists."""


class BadVersion(TreeError):  # noqa: N818
    """The node's version is another one than the caller expected."""


class NotEmpty(TreeError):  # noqa: N818
    """A node to be deleted has children."""


class EphemeralParent(TreeError):  # noqa: N818
    """An ephemeral node cannot have children."""


class Stat:
    """Facts about a node besides its value. Constant."""

    __slots__ = ("ctime_ms", "czxid", "ephemeral_owner", "version")

    def __init__(self, version: int, czxid: int, ctime_ms: int, ephemeral_owner: int) -> None:
        self.version = version
        self.czxid = czxid
        """Number of the transaction that created it; grows over the tree (Kafka's broker epoch)."""
        self.ctime_ms = ctime_ms
        self.ephemeral_owner = ephemeral_owner
        """Session that made it, 0 when it is not ephemeral."""


class Create:
    """Operation of a `multi`; its result is the created path."""

    __slots__ = ("data", "ephemeral", "path", "sequence")

    def __init__(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> None:
        self.path = path
        self.data = data
        self.ephemeral = ephemeral
        self.sequence = sequence


class Set:
    """Operation of a `multi`; its result is the new version."""

    __slots__ = ("data", "path", "version")

    def __init__(self, path: str, data: bytes, version: int = ANY_VERSION) -> None:
        self.path = path
        self.data = data
        self.version = version


class Delete:
    """Operation of a `multi`; its result is the path."""

    __slots__ = ("path", "version")

    def __init__(self, path: str, version: int = ANY_VERSION) -> None:
        self.path = path
        self.version = version


class Check:
    """Operation of a `multi`: the node exists and has this version; its result is the path."""

    __slots__ = ("path", "version")

    def __init__(self, path: str, version: int = ANY_VERSION) -> None:
        self.path = path
        self.version = version


if TYPE_CHECKING:
    Operation: TypeAlias = Create | Set | Delete | Check


class SessionEvent(Enum):
    """A change of a home's session. The embedded home has one session and no events."""

    SUSPENDED = "suspended"
    """Not connected; operations raise CoordinationError; ephemeral nodes may still stand."""
    RESUMED = "resumed"
    """Connected again with the same session; watches are armed again and fire once."""
    EXPIRED = "expired"
    """The session is over: its ephemeral nodes are gone."""
    RENEWED = "renewed"
    """A new session stands; ephemeral nodes must be created again; watches fire once."""


class Tree(Protocol):
    """A home of the tree. Any operation may raise CoordinationError: not reachable, try again."""

    @property
    def is_shared(self) -> bool:
        """Return whether other processes see (and change) this tree."""

    @property
    def change_count(self) -> int:
        """Return the number of the last change, which grows over restarts too; 0 where others may
        make changes.
        """

    @property
    def session_id(self) -> int:
        """Return the owner of the ephemeral nodes created now; 0 while there is no session."""

    async def open(self) -> None:
        """Connect to the tree. Raises CoordinationError with one sentence for the user."""

    async def close(self) -> None:
        """End the session (ephemeral nodes go) and free everything."""

    async def abandon(self) -> None:
        """Free everything as a process that dies: the session stands until it runs out."""

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        make_parents: bool = False,
        sequence: bool = False,
    ) -> str:
        """Create a node; return its path (with the number, for a sequence node).

        Raises NodeExists, NoNode (parent missing and not `make_parents`), EphemeralParent.
        """

    async def get(self, path: str) -> tuple[bytes, Stat]:
        """Return value and stat. Raises NoNode."""

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        """Return value and stat of each path, in order, in one round trip's time; None where there
        is no node.
        """

    async def exists(self, path: str) -> Stat | None:
        """Return the stat, None if there is no node."""

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replace the value; return the new version. Raises NoNode, BadVersion."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children. Raises NoNode, BadVersion, NotEmpty."""

    async def children(self, path: str) -> list[str]:
        """Return the names (not the paths) of the children, sorted. Raises NoNode."""

    async def subtree(self, path: str) -> list[str]:
        """Return the paths of a node and of everything below it, parents first; none if it is
        absent. A node that somebody else makes or deletes meanwhile may be named or not.
        """

    async def multi(self, operations: Sequence[Operation]) -> list[str | int]:
        """Do all, in order and at once, or none. Raises what the first refused operation raises."""

    async def flush(self) -> None:
        """Return when everything acknowledged before would survive a power cut."""

    async def sync(self) -> None:
        """Return when this session reads everything that any session wrote before: the server
        behind it may lag behind the others.
        """

    async def watch(self, path: str, callback: Callable[[], None]) -> Cancel:
        """Call back after the node is created, set or deleted. It need not exist."""

    async def watch_many(self, callbacks: Mapping[str, Callable[[], None]]) -> list[Cancel]:
        """Watch each path, all or none, in one round trip's time; return their ends in order."""

    async def watch_children(self, path: str, callback: Callable[[], None]) -> Cancel:
        """Call back after a child is created or deleted. Raises NoNode."""

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        """Call back on the loop with every session event from now on."""


def parent_of(path: str) -> str:
    """Return the path of the parent: `/a/b` → `/a`, `/a` → `/`."""
    return path.rpartition("/")[0] or "/"


def child_path(path: str, name: str) -> str:
    """Return the path of a child: `/a`, `b` → `/a/b`."""
    return f"/{name}" if path == "/" else f"{path}/{name}"


def check_path(path: str) -> None:
    """Raise ValueError for a path that ZooKeeper would refuse."""
    if path == "/":
        return
    root, *names = path.split("/")
    if root or not names or "\0" in path or not ILLEGAL_NAMES.isdisjoint(names):
        raise ValueError(f"not a path of the tree: {path!r}")


async def ensure_node(tree: Tree, path: str, data: bytes = b"") -> bool:
    """Create a node and its parents unless it exists; return whether it was created."""
    try:
        await tree.create(path, data, make_parents=True)
    except NodeExists:
        return False
    return True
