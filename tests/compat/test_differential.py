"""The same scenario against both Apache Kafkas and minibroker: equal answers. Kafka is right.

Each scenario runs once on each broker that serves the version, on all of them at the same time.
Where 3.9.1 and 4.4.0 differ, a known difference says which one minibroker follows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers.registry import (
    BETWEEN_BROKERS,
    HANDLERS,
    ONLY_WITH_ZOOKEEPER,
    supported_versions,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import APIS, INIT_PRODUCER_ID, PRODUCE
from tests.compat.dialogue import transcript_of
from tests.compat.known_differences import KNOWN_DIFFERENCES, differences_of
from tests.compat.scenarios import Scenario, load_all
from tests.compat.served import REFUSED_39, SERVED, releases_that_serve
from tests.compat.verdict import MINIBROKER, complaints_about
from tests.support.codec import KEYS
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from tests.support.broker import Minibroker
    from tests.support.peers import KafkaPeer

pytestmark = pytest.mark.java

FIXTURES = {"3.9.1": "kafka_39", "4.4.0": "kafka_44"}

COMPARED = HANDLERS.keys() - ONLY_WITH_ZOOKEEPER - BETWEEN_BROKERS
"""The minibroker of these tests is alone: tests of mixed clusters have the rest."""


def judges_of(scenario: Scenario, version: int) -> list[str]:
    """Return the Kafkas to ask: all that serve the version and can be right."""
    return [
        release
        for release in releases_that_serve(scenario.api, version)
        if scenario.peer in {None, release}
    ]


def cases() -> list[Any]:
    """Return (scenario, version) for every version that minibroker serves."""
    served = supported_versions()
    parameters = []
    for scenario in load_all():
        oldest, newest = served[KEYS[scenario.api]]
        first, last = max(oldest, scenario.min_version), min(newest, scenario.max_version)
        parameters += [
            pytest.param(scenario, version, id=f"{scenario.name}-v{version}")
            for version in range(first, last + 1)
        ]
    return parameters


@pytest.mark.parametrize(("scenario", "version"), cases())
def test_answers_are_equal(
    scenario: Scenario, version: int, minibroker: Minibroker, request: pytest.FixtureRequest
) -> None:
    judges = judges_of(scenario, version)
    assert judges, f"no Kafka judges version {version} of {scenario.api}"
    brokers = {release: request.getfixturevalue(FIXTURES[release]) for release in judges}
    brokers[MINIBROKER] = minibroker
    with ThreadPoolExecutor(len(brokers)) as sides:
        talks = {
            name: sides.submit(transcript_of, broker, scenario, version)
            for name, broker in brokers.items()
        }
    answers = {name: talk.result() for name, talk in talks.items()}
    complaints = complaints_about(answers, differences_of(scenario.name, version))
    assert not complaints, "\n  ".join(["not as Kafka answers:", *complaints[:60]])


@pytest.mark.parametrize("release", SERVED)
def test_the_cases_cover_every_version_that_kafka_serves(
    release: str, request: pytest.FixtureRequest
) -> None:
    kafka = request.getfixturevalue(FIXTURES[release])
    with WireClient(kafka.host, kafka.port) as client:
        answer = client.call("api_versions", 0)
    offered = {
        api["api_key"]: (api["min_version"], api["max_version"]) for api in answer["api_keys"]
    }
    names = {key: name for name, key in KEYS.items() if key in COMPARED}
    # Kafka 4 names versions of Produce that it does not serve.
    expected = {
        names[key]: (SERVED[release]["produce"][0] if key == PRODUCE else lowest, highest)
        for key, (lowest, highest) in offered.items()
        if key in names and not (release == "3.9.1" and names[key] in REFUSED_39)
    }
    assert SERVED[release] == expected


def test_versions_that_kafka_39_only_advertises_are_refused(kafka_39: KafkaPeer) -> None:
    with WireClient(kafka_39.host, kafka_39.port) as client:
        heartbeat = client.call(
            "consumer_group_heartbeat", 0, group_id="g", member_id="", member_epoch=0
        )
        described = client.call("consumer_group_describe", 0, group_ids=["g"])
    codes = [heartbeat["error_code"], described["groups"][0]["error_code"]]
    assert codes == [ErrorCode.UNSUPPORTED_VERSION] * len(REFUSED_39)


def test_an_unstable_version_is_refused_as_kafka_refuses_it(
    kafka_44: KafkaPeer, minibroker: Minibroker
) -> None:
    _, newest = supported_versions()[INIT_PRODUCER_ID]
    for broker in (kafka_44, minibroker):
        with WireClient(broker.host, broker.port) as client, pytest.raises(ConnectionError):
            client.call(
                "init_producer_id", newest + 1, transactional_id=None, transaction_timeout_ms=60_000
            )


def test_every_handler_has_scenarios() -> None:
    compared = {scenario.api for scenario in load_all()}
    assert sorted({APIS[key].module for key in COMPARED} - compared) == []


def test_a_kafka_that_is_left_out_has_a_reason() -> None:
    reasons = {scenario.name: scenario.because for scenario in load_all() if scenario.peer}
    assert [name for name, reason in reasons.items() if not reason] == []
    alone = [
        scenario.name
        for scenario in load_all()
        if scenario.peer and len(releases_that_serve(scenario.api, scenario.min_version)) < 2
    ]
    assert alone == [], "where one Kafka serves a version nobody has to be left out"


def test_known_differences_name_scenarios() -> None:
    names = {scenario.name for scenario in load_all()}
    strangers = [line for line in KNOWN_DIFFERENCES if line.scenario not in names]
    assert not strangers
    assert all(line.reason and line.places for line in KNOWN_DIFFERENCES)
