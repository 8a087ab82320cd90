"""Rules: whom they meet, how often, and what cannot be one."""

from __future__ import annotations

from typing import Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.rig.faults import Facts, Fault, FaultSet

PRODUCE, FETCH = 0, 1


def facts(api_key: int = PRODUCE, **fields: Any) -> Facts:
    rule: dict[str, Any] = {
        "version": 9,
        "client_id": "c",
        "group": None,
        "places": frozenset({("t", 0), ("t", 1)}),
    }
    return Facts(api_key, **{**rule, **fields})


def rule(api: str | None = "Produce", **fields: Any) -> Fault:
    return Fault(api, **{"error": "NOT_CONTROLLER", **fields})


@pytest.mark.parametrize(
    ("wishes", "is_met"),
    [
        ({}, True),
        ({"api": None}, True),
        ({"api": "fetch"}, False),
        ({"version": 9, "client_id": "c"}, True),
        ({"version": 8}, False),
        ({"client_id": "other"}, False),
        ({"group": "g"}, False),
        ({"topic": "t"}, True),
        ({"topic": "t", "partition": 1}, True),
        ({"topic": "t", "partition": 2}, False),
        ({"partition": 1}, True),
        ({"topic": "other"}, False),
    ],
)
def test_a_rule_meets_what_it_names(wishes: dict[str, Any], is_met: bool) -> None:
    assert rule(**wishes).meets(facts()) == is_met


def test_some_pass_first_and_so_many_are_taken() -> None:
    fault = rule(skip=2, times=3)
    assert [fault.meets(facts()) for _ in range(8)] == [False] * 2 + [True] * 3 + [False] * 3
    assert fault.hits == 3


def test_chance_is_the_same_for_one_seed() -> None:
    first, again, other = (
        [rule_.meets(facts()) for _ in range(200)]
        for rule_ in (
            rule(probability=0.3, seed=1),
            rule(probability=0.3, seed=1),
            rule(probability=0.3, seed=2),
        )
    )
    assert first == again
    assert first != other
    assert 30 < sum(first) < 90


def test_the_first_rule_that_meets_has_the_request_and_removed_ones_nothing() -> None:
    rules = FaultSet()
    once, always = rule(times=1), rule()
    for fault in (once, always):
        rules.add(fault)
    assert [rules.first(facts()), rules.first(facts())] == [once, always]
    assert rules.first(facts(FETCH)) is None
    rules.discard(once)
    rules.discard(once)
    assert list(rules) == [always]
    with always:
        assert rules.first(facts()) is always
    assert rules.first(facts()) is None


def test_errors_that_come_after_the_work_come_after_the_work() -> None:
    assert rule(error="REQUEST_TIMED_OUT").applied
    assert not rule(error=ErrorCode.NOT_LEADER_OR_FOLLOWER).applied
    assert rule(applied=True).applied


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"api": "Product"}, "api 'Product' is not a request of Kafka's"),
        ({"error": "NOT_A_LEADER"}, "error 'NOT_A_LEADER' is not one of Kafka's"),
        ({"error": None}, "needs an effect"),
        ({"drop": "sometimes"}, "drop 'sometimes', expected one of before, after"),
        ({"probability": 2}, "probability 2, expected 0 to 1"),
    ],
)
def test_an_impossible_rule_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        rule(**fields)


def test_a_test_waits_until_a_rule_met_something() -> None:
    fault = Fault("Produce", error="NOT_LEADER_OR_FOLLOWER")
    with pytest.raises(TimeoutError, match="for 1 requests that meet Fault"):
        fault.wait(timeout_s=0)
    fault.meets(Facts(0, 9, None, None, frozenset()))
    fault.wait()


def test_faults_of_one_of_several_brokers_are_checked() -> None:
    with pytest.raises(ValueError, match="peer 1: only broker=cut_off and broker=slow_follower"):
        Fault("Fetch", delay_ms=1, peer=1)
    with pytest.raises(ValueError, match="broker=slow_sync and broker=slow_follower need one"):
        Fault(broker="slow_follower")
    with pytest.raises(ValueError, match="the others have none"):
        Fault(broker="cut_off", delay_ms=5)
    assert Fault(broker="cut_off").counts
    assert not Fault(broker="killed").counts


def test_a_link_is_that_to_the_peer_or_one_that_is_listed() -> None:
    to_all, to_one, lists = (
        Fault(broker="cut_off"),
        Fault(broker="cut_off", peer=2),
        Fault("Fetch", delay_ms=1),
    )
    lists.links = [(0, 2)]
    assert [rule.blocks(0, 2) for rule in (to_all, to_one, lists)] == [True, True, True]
    assert [rule.blocks(0, 1) for rule in (to_all, to_one, lists)] == [True, False, False]
    assert [rule.blocks(2, 0) for rule in (to_all, to_one, lists)] == [True, False, False]


def test_rules_of_logins() -> None:
    fault = Fault(login="wrong_password", user="alice", skip=1, times=1)
    assert not fault.meets(facts())
    assert not fault.meets_login(("sasl_cut",), "alice")
    assert [fault.meets_login(("wrong_password",), user) for user in ("bob", None)] == [False] * 2
    met = [fault.meets_login(("wrong_password",), "alice") for _ in range(3)]
    assert met == [False, True, False]
    assert repr(fault) == "Fault(login='wrong_password', 1 hits)"
    rules = FaultSet()
    rules.add(rule())
    rules.add(cut := Fault(login="tls_cut"))
    assert rules.first_login(("tls_cut",)) is cut
    assert rules.first_login(("sasl_cut",)) is None


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"login": "wrong"}, "login 'wrong', expected one of wrong_password, expired_token"),
        ({"login": "tls_cut", "user": "a"}, "only login=wrong_password and login=expired_token"),
        ({"login": "sasl_slow"}, "delay_ms 0: login=sasl_slow and login=tls_slow need one"),
        ({"login": "tls_cut", "delay_ms": 5}, "delay_ms 5: login=sasl_slow and login=tls_slow"),
        ({"login": "tls_cut", "topic": "t"}, "topic is for requests: leave it out with login="),
        ({"login": "tls_cut", "broker": "killed"}, "login is for requests"),
        ({"user": "a", "error": "NONE"}, "user a: only login=wrong_password"),
    ],
)
def test_rules_of_logins_that_cannot_be(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Fault(**fields)
