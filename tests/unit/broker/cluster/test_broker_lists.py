"""Equal lists of brokers are one list, and no more than a fixed number of lists is kept."""

from __future__ import annotations

from minibroker.broker.cluster import broker_lists
from minibroker.broker.cluster.broker_lists import NO_BROKERS, BrokerLists


def test_equal_lists_are_one_list() -> None:
    lists = BrokerLists()
    first = lists.share([1, 2])
    assert lists.share([1, 2]) is first
    assert lists.share([2, 1]) is not first


def test_an_empty_list_is_always_the_same() -> None:
    assert BrokerLists().share([]) is NO_BROKERS


def test_lists_are_forgotten_when_there_are_too_many() -> None:
    lists = BrokerLists()
    for broker_id in range(2 * broker_lists.LISTS_MAX + 1):
        assert lists.share([broker_id, 0]) == [broker_id, 0]
        assert len(lists._kept) <= broker_lists.LISTS_MAX
