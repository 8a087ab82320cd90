"""The embedded tree against a model of ZooKeeper's rules: random operations, refusals and restarts.

The model is a dict. `test_tree_contract.py` ties the same rules to a real ZooKeeper.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from minibroker.broker.cluster.embedded import EmbeddedTree
from minibroker.broker.cluster.tree import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
    TreeError,
    parent_of,
)
from minibroker.clock import SystemClock

NAMES = st.sampled_from(["a", "b", "a.b", "a-b", "ä"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
DATA = st.binary(max_size=8)
VERSIONS = st.sampled_from([ANY_VERSION, ANY_VERSION, 0, 1, 2])
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, DATA, ephemeral=st.booleans()),
    st.builds(Set, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Check, PATHS, VERSIONS),
)


class Node:
    """The model's knowledge of a node."""

    def __init__(self, data: bytes, *, ephemeral: bool) -> None:
        self.data = data
        self.version = 0
        self.ephemeral = ephemeral

    def copy(self) -> Node:
        """Return an independent copy."""
        copied = Node(self.data, ephemeral=self.ephemeral)
        copied.version = self.version
        return copied


Model = dict[str, Node]


def children(model: Model, path: str) -> list[str]:
    """Return the sorted names of a node's children."""
    return sorted(
        other.rpartition("/")[2] for other in model if other != "/" and parent_of(other) == path
    )


def apply(model: Model, operation: Create | Set | Delete | Check) -> str | int:
    """Apply one operation to the model, or raise ZooKeeper's error."""
    path = operation.path
    if isinstance(operation, Create):
        parent = parent_of(path)
        if parent not in model:
            raise NoNode(parent)
        if model[parent].ephemeral:
            raise EphemeralParent(path)
        if path in model:
            raise NodeExists(path)
        model[path] = Node(operation.data, ephemeral=operation.ephemeral)
        return path
    node = model.get(path)
    if node is None:
        raise NoNode(path)
    if operation.version not in (ANY_VERSION, node.version):
        raise BadVersion(path)
    if isinstance(operation, Set):
        node.data = operation.data
        node.version += 1
        return node.version
    if isinstance(operation, Delete):
        if children(model, path):
            raise NotEmpty(path)
        del model[path]
    return path


class TreeMachine(RuleBasedStateMachine):
    """Runs the same operations on both and compares results, refusals and contents."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = Path(tempfile.mkdtemp())
        self.model: Model = {"/": Node(b"", ephemeral=False)}
        self.open()

    def open(self) -> None:
        """Open the tree of this run's directory."""
        self.tree = EmbeddedTree(self.directory / "metadata.db", SystemClock())
        self.run(self.tree.open())

    def run(self, coroutine: Any) -> Any:
        """Run on this machine's loop."""
        return self.loop.run_until_complete(coroutine)

    @rule(operations=st.lists(OPERATIONS, min_size=1, max_size=5))
    def multi(self, operations: list[Create | Set | Delete | Check]) -> None:
        after = {path: node.copy() for path, node in self.model.items()}
        try:
            expected: object = [apply(after, operation) for operation in operations]
        except TreeError as error:
            expected = (type(error), error.path)
        else:
            self.model = after
        try:
            outcome: object = self.run(self.tree.multi(operations))
        except TreeError as error:
            outcome = (type(error), error.path)
        assert outcome == expected

    @rule(path=PATHS, data=DATA)
    def create_with_parents(self, path: str, data: bytes) -> None:
        after = {name: node.copy() for name, node in self.model.items()}
        parents = [path]
        while parent_of(parents[-1]) not in after:
            parents.append(parent_of(parents[-1]))
        try:
            for name in reversed(parents):
                apply(after, Create(name, data if name == path else b""))
        except TreeError as error:
            expected: type[TreeError] | None = type(error)
        else:
            expected = None
            self.model = after
        failure: type[TreeError] | None = None
        try:
            self.run(self.tree.create(path, data, make_parents=True))
        except TreeError as error:
            failure = type(error)
        assert failure is expected

    @rule()
    def restart(self) -> None:
        """Close and open: ephemeral nodes are gone, all else is there."""
        self.run(self.tree.close())
        self.model = {path: node for path, node in self.model.items() if not node.ephemeral}
        self.open()

    @rule()
    def flush(self) -> None:
        self.run(self.tree.flush())

    @invariant()
    def contents_are_equal(self) -> None:
        for path, node in self.model.items():
            data, stat = self.run(self.tree.get(path))
            assert (data, stat.version, stat.ephemeral_owner != 0) == (
                node.data,
                node.version,
                node.ephemeral,
            )
            assert self.run(self.tree.children(path)) == children(self.model, path)

    def teardown(self) -> None:
        self.run(self.tree.close())
        self.run(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.directory)


TestTree = TreeMachine.TestCase
TestTree.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
