"""One member: its protocols and its vote."""

from __future__ import annotations

from minibroker.broker.groups.classic.member import Member


def member(*protocols: tuple[str, bytes], instance_id: str | None = None) -> Member:
    return Member(
        "m-1",
        instance_id=instance_id,
        client_id="m",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=2000,
        session_timeout_ms=1000,
        protocols=protocols,
    )


def test_it_votes_for_what_it_likes_best_of_what_all_can_do() -> None:
    found = member(("a", b""), ("b", b""), ("c", b""))
    assert found.vote({"c", "b"}) == "b"


def test_metadata_of_a_protocol_that_it_lacks_is_empty() -> None:
    found = member(("a", b"meta"))
    assert found.metadata_of("a") == b"meta"
    assert found.metadata_of("b") == found.metadata_of(None) == b""


def test_a_protocol_named_twice_counts_once() -> None:
    assert member(("a", b"1"), ("a", b"2")).names == {"a"}


def test_a_waiting_member_needs_no_heartbeat_unless_it_is_new() -> None:
    found = member(("a", b""))
    assert not found.is_alive_without_heartbeat
    found.join_waiter = lambda answer: None
    assert found.is_alive_without_heartbeat
    found.is_new = True
    assert not found.is_alive_without_heartbeat
    found.is_new, found.join_waiter, found.sync_waiter = False, None, lambda answer: None
    assert found.is_alive_without_heartbeat


def test_it_says_who_it_is() -> None:
    assert repr(member()) == "m-1 (client 'm' at /127.0.0.1)"
    assert repr(member(instance_id="i")) == "m-1, i (client 'm' at /127.0.0.1)"
