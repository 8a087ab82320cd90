"""The contract of the tree, the same tests for both homes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.embedded import ROWS_AT_ONCE
from minibroker.broker.cluster.tree import (
    BadVersion,
    Check,
    Create,
    Delete,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
    ensure_node,
)
from minibroker.broker.cluster.zookeeper import NODES_AT_ONCE
from minibroker.kafka.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.cluster.tree import Tree

WAIT_S = 180


async def test_node_keeps_value_and_counts_versions(tree: Tree) -> None:
    assert await tree.create("/a", b"one") == "/a"
    data, stat = await tree.get("/a")
    assert (data, stat.version, stat.ephemeral_owner) == (b"one", 0, 0)
    assert stat.ctime_ms > 1_600_000_000_000
    assert await tree.set("/a", b"two") == 1
    assert await tree.set("/a", b"three", 1) == 2
    data, stat = await tree.get("/a")
    assert (data, stat.version) == (b"three", 2)


async def test_empty_value_is_empty_bytes(tree: Tree) -> None:
    await tree.create("/a")
    assert (await tree.get("/a"))[0] == b""
    await tree.set("/a", b"x")
    await tree.set("/a", b"")
    assert (await tree.get("/a"))[0] == b""


async def test_create_refuses_existing_node(tree: Tree) -> None:
    await tree.create("/a", b"first")
    with pytest.raises(NodeExists) as caught:
        await tree.create("/a", b"second")
    assert caught.value.path == "/a"
    assert (await tree.get("/a"))[0] == b"first"


async def test_create_needs_its_parent(tree: Tree) -> None:
    with pytest.raises(NoNode) as caught:
        await tree.create("/a/b")
    assert caught.value.path == "/a"
    assert await tree.exists("/a") is None


async def test_a_parent_that_had_children_is_asked_for_again_when_it_is_gone(tree: Tree) -> None:
    await tree.create("/a")
    await tree.create("/a/b")
    await tree.multi([Delete("/a/b"), Delete("/a")])
    with pytest.raises(NoNode) as caught:
        await tree.create("/a/c")
    assert caught.value.path == "/a"
    await tree.create("/a", ephemeral=True)
    with pytest.raises(EphemeralParent):
        await tree.create("/a/c")


async def test_create_makes_parents_when_asked(tree: Tree) -> None:
    assert await tree.create("/a/b/c", b"x", make_parents=True) == "/a/b/c"
    assert await tree.children("/a") == ["b"]
    assert (await tree.get("/a/b"))[0] == b""
    assert await tree.create("/a/b/d", make_parents=True) == "/a/b/d"
    assert not await ensure_node(tree, "/a/b/c", b"y")
    assert (await tree.get("/a/b/c"))[0] == b"x"


async def test_set_refuses_wrong_version_and_missing_node(tree: Tree) -> None:
    await tree.create("/a", b"one")
    with pytest.raises(BadVersion):
        await tree.set("/a", b"two", 1)
    with pytest.raises(NoNode):
        await tree.set("/b", b"two")
    assert (await tree.get("/a"))[0] == b"one"


async def test_delete_refuses_children_wrong_version_and_missing_node(tree: Tree) -> None:
    await tree.create("/a/b", make_parents=True)
    with pytest.raises(NotEmpty):
        await tree.delete("/a")
    with pytest.raises(BadVersion):
        await tree.delete("/a/b", 3)
    await tree.delete("/a/b", 0)
    await tree.delete("/a")
    with pytest.raises(NoNode):
        await tree.delete("/a")


async def test_recreated_node_starts_anew_with_a_later_czxid(tree: Tree) -> None:
    await tree.create("/a")
    first_stat = await tree.exists("/a")
    await tree.set("/a", b"x")
    await tree.delete("/a")
    await tree.create("/a")
    after = await tree.exists("/a")
    assert first_stat is not None
    assert after is not None
    assert after.version == 0
    assert after.czxid > first_stat.czxid


async def test_children_are_sorted_names(tree: Tree) -> None:
    assert await tree.children("/") == []
    for name in ("b", "a", "a.b", "c-1"):
        await tree.create(f"/{name}")
    await tree.create("/a/x")
    assert await tree.children("/") == ["a", "a.b", "b", "c-1"]
    assert await tree.children("/a") == ["x"]
    with pytest.raises(NoNode):
        await tree.children("/nothing")


async def test_get_many_keeps_order_and_tells_missing(tree: Tree) -> None:
    await tree.create("/a", b"1")
    await tree.create("/b", b"2")
    values = await tree.get_many(["/b", "/nothing", "/a"])
    assert [value and value[0] for value in values] == [b"2", None, b"1"]
    assert await tree.get_many([]) == []


async def test_get_many_of_hundreds_keeps_order_and_tells_missing(tree: Tree) -> None:
    numbers = [*range(130), 7, *range(129, -1, -1)]
    await tree.multi([Create(f"/{number}", b"%d" % number) for number in range(0, 130, 2)])
    values = await tree.get_many([f"/{number}" for number in numbers])
    assert [value and value[0] for value in values] == [
        None if number % 2 else b"%d" % number for number in numbers
    ]
    assert values[100] is not None
    (data, stat), (same_data, same_stat) = values[100], await tree.get("/100")
    assert (data, stat.version, stat.czxid) == (same_data, same_stat.version, same_stat.czxid)
    assert (stat.ctime_ms, stat.ephemeral_owner) == (same_stat.ctime_ms, 0)


async def test_sequence_numbers_grow_and_never_return(tree: Tree) -> None:
    """Not deletion, nor another prefix, nor plain children in between bring a number back."""
    await tree.create("/q")
    assert await tree.create("/q/n-", b"x", sequence=True) == "/q/n-0000000000"
    await tree.create("/q/plain")
    second = await tree.create("/q/n-", sequence=True)
    await tree.delete(second)
    third = await tree.create("/q/m-", sequence=True)
    assert "0000000000" < second.removeprefix("/q/n-") < third.removeprefix("/q/m-")
    assert len(third) == len("/q/m-") + 10
    assert (await tree.get("/q/n-0000000000"))[0] == b"x"


async def test_ephemeral_node_belongs_to_its_session(new_tree: Callable[[], Tree]) -> None:
    first = new_tree()
    await first.open()
    await first.create("/here")
    await first.create("/here/me", b"x", ephemeral=True)
    stat = await first.exists("/here/me")
    assert stat is not None
    assert stat.ephemeral_owner == first.session_id != 0
    with pytest.raises(EphemeralParent):
        await first.create("/here/me/child")
    await first.close()
    second = new_tree()
    await second.open()
    assert await second.children("/here") == []
    await second.close()


async def test_multi_does_all_and_answers_each(tree: Tree) -> None:
    await tree.create("/a", b"1")
    await tree.create("/gone")
    results = await tree.multi(
        [
            Check("/a", 0),
            Create("/b"),
            Create("/b/c-", b"x", sequence=True),
            Set("/a", b"2", 0),
            Set("/a", b"3", 1),
            Delete("/gone"),
        ]
    )
    assert results == ["/a", "/b", "/b/c-0000000000", 1, 2, "/gone"]
    assert (await tree.get("/a"))[0] == b"3"
    assert await tree.exists("/gone") is None


@pytest.mark.parametrize(
    ("last", "error", "path"),
    [
        (Create("/a"), NodeExists, "/a"),
        (Create("/x/y"), NoNode, "/x"),
        (Create("/"), NodeExists, "/"),
        (Set("/a", b"2", 7), BadVersion, "/a"),
        (Set("/x", b"2"), NoNode, "/x"),
        (Delete("/full"), NotEmpty, "/full"),
        (Delete("/x"), NoNode, "/x"),
        (Check("/a", 7), BadVersion, "/a"),
        (Check("/x"), NoNode, "/x"),
    ],
)
async def test_multi_does_nothing_when_one_is_refused(
    tree: Tree, last: Create | Set | Delete | Check, error: type[Exception], path: str
) -> None:
    await tree.create("/a", b"1")
    await tree.create("/full/child", make_parents=True)
    with pytest.raises(error) as caught:
        await tree.multi([Create("/new"), Set("/a", b"changed"), last, Create("/never")])
    assert caught.value.args == (path,)
    assert await tree.exists("/new") is None
    data, stat = await tree.get("/a")
    assert (data, stat.version) == (b"1", 0)


async def test_only_one_of_concurrent_sets_of_one_version_wins(tree: Tree) -> None:
    await tree.create("/a")
    outcomes = await asyncio.gather(
        *(tree.set("/a", str(number).encode(), 0) for number in range(20)), return_exceptions=True
    )
    assert outcomes.count(1) == 1
    assert sum(isinstance(outcome, BadVersion) for outcome in outcomes) == 19


async def test_watch_fires_on_create_set_and_delete(tree: Tree) -> None:
    fired = asyncio.Event()
    await tree.watch("/a", fired.set)
    assert not fired.is_set()
    for change in (tree.create("/a"), tree.set("/a", b"x"), tree.delete("/a"), tree.create("/a")):
        await change
        async with asyncio.timeout(WAIT_S):
            await fired.wait()
        fired.clear()


async def test_many_paths_are_watched_at_once(tree: Tree) -> None:
    fired = {path: asyncio.Event() for path in ("/a", "/b", "/c")}
    cancels = await tree.watch_many({path: event.set for path, event in fired.items()})
    cancels[1]()
    for path in fired:
        await tree.create(path)
    async with asyncio.timeout(WAIT_S):
        await fired["/a"].wait()
        await fired["/c"].wait()
    assert not fired["/b"].is_set()
    assert await tree.watch_many({}) == []


async def test_children_watch_fires_on_arrival_and_departure_only(tree: Tree) -> None:
    await tree.create("/p/old", make_parents=True)
    fired = asyncio.Event()
    await tree.watch_children("/p", fired.set)
    await tree.set("/p", b"x")
    await tree.set("/p/old", b"x")
    await tree.create("/p/old/grandchild")
    other = asyncio.Event()
    await tree.watch("/p", other.set)
    await tree.set("/p", b"y")
    async with asyncio.timeout(WAIT_S):
        await other.wait()  # events come in order: had the others fired, it would be known now
    assert not fired.is_set()
    for change in (tree.create("/p/new"), tree.delete("/p/new")):
        await change
        async with asyncio.timeout(WAIT_S):
            await fired.wait()
        fired.clear()


async def test_children_watch_needs_its_node(tree: Tree) -> None:
    with pytest.raises(NoNode):
        await tree.watch_children("/nothing", lambda: None)


async def test_cancelled_watch_is_silent_and_others_go_on(tree: Tree) -> None:
    await tree.create("/a")
    calls: list[str] = []
    both = asyncio.Event()
    cancel = await tree.watch("/a", lambda: calls.append("cancelled"))
    await tree.watch("/a", lambda: (calls.append("kept"), both.set()))
    cancel()
    cancel()
    await tree.set("/a", b"x")
    async with asyncio.timeout(WAIT_S):
        await both.wait()
    assert calls == ["kept"]


async def test_no_change_is_missed_between_call_and_read(tree: Tree) -> None:
    """A reader that reads again after each call ends up with the last value."""
    await tree.create("/a", b"0")
    fired = asyncio.Event()
    await tree.watch("/a", fired.set)

    async def write() -> None:
        for value in range(1, 101):
            await tree.set("/a", str(value).encode())

    async def read() -> None:
        while True:
            await fired.wait()
            fired.clear()
            if (await tree.get("/a"))[0] == b"100":
                return

    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(write(), read())


async def test_sync_returns(tree: Tree) -> None:
    await tree.create("/a")
    await tree.sync()
    assert await tree.exists("/a") is not None


async def test_flush_returns(tree: Tree) -> None:
    await tree.create("/a")
    await tree.flush()


async def test_an_acknowledged_write_is_there_for_the_next_client(
    new_tree: Callable[[], Tree],
) -> None:
    first = new_tree()
    await first.open()
    await first.create("/a/b", b"kept", make_parents=True)
    await first.set("/a", b"too")
    numbered = await first.create("/a/n", sequence=True)
    await first.close()
    second = new_tree()
    await second.open()
    assert (await second.get("/a/b"))[0] == b"kept"
    data, stat = await second.get("/a")
    assert (data, stat.version) == (b"too", 1)
    assert await second.create("/a/n", sequence=True) > numbered
    await second.close()


async def test_closed_tree_answers_a_coordination_error(new_tree: Callable[[], Tree]) -> None:
    closed = new_tree()
    await closed.open()
    await closed.close()
    await closed.close()
    with pytest.raises(CoordinationError):
        await closed.get("/")
    with pytest.raises(CoordinationError):
        await closed.create("/a")


async def test_a_subtree_is_named_from_its_top(tree: Tree) -> None:
    assert await tree.subtree("/nothing") == []
    for path in ("/a", "/a/1", "/a/2", "/a/1/deep", "/a-b", "/a.b", "/a0", "/b", "/a-b/1"):
        await tree.create(path)
    assert await tree.subtree("/a") == ["/a", "/a/1", "/a/2", "/a/1/deep"]
    assert await tree.subtree("/a-b") == ["/a-b", "/a-b/1"]
    assert await tree.subtree("/b") == ["/b"]


async def test_many_children_are_named_in_order(tree: Tree) -> None:
    """More than one query returns, and more than are asked for together."""
    count = 2 * max(ROWS_AT_ONCE, NODES_AT_ONCE) + 1
    names = [f"{number:04}" for number in range(count)]
    await tree.create("/a")
    await tree.multi([Create(f"/a/{name}") for name in names])
    await tree.multi([Create(f"/a/{name}/state") for name in names])
    assert await tree.children("/a") == names
    assert await tree.subtree("/a") == [
        "/a",
        *(f"/a/{name}" for name in names),
        *(f"/a/{name}/state" for name in names),
    ]
