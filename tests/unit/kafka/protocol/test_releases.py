"""The facts about Kafka's releases, beside what kafka-python knows of its brokers."""

from __future__ import annotations

import warnings

import pytest

from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS, FETCH, PRODUCE
from minibroker.kafka.protocol.releases import RELEASES, advertised_by, served_by

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas so
    from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

# KIP-714's APIs: Kafka names them only when a metrics reporter takes what clients push.
TELEMETRY = {71, 72}


def release_name(version: tuple[int, ...]) -> str:
    name = ".".join(map(str, version))
    return "0.9.0" if name == "0.9" else name


FOREIGN = {
    release_name(version): ranges
    for version, ranges in BROKER_API_VERSIONS.items()
    if version >= (0, 8, 2)
}


def test_every_release_from_0_8_2_to_4_4_is_there() -> None:
    assert RELEASES[0] == "0.8.2"
    assert RELEASES[-1] == "4.4"
    assert set(FOREIGN) <= set(RELEASES)


@pytest.mark.parametrize("release", sorted(FOREIGN))
def test_a_release_advertises_what_kafka_python_expects_of_it(release: str) -> None:
    theirs = {key: tuple(versions) for key, versions in FOREIGN[release].items() if key in APIS}
    ours = advertised_by(release)
    if release.startswith("4."):
        ours = {key: versions for key, versions in ours.items() if key not in TELEMETRY}
    assert ours == theirs


@pytest.mark.parametrize("release", RELEASES)
def test_no_release_serves_more_than_the_protocol_has(release: str) -> None:
    for key, (low, high) in served_by(release).items():
        assert APIS[key].min_version <= low <= high <= APIS[key].max_version


def test_the_newest_release_serves_the_newest_versions() -> None:
    newest = served_by("4.4")
    assert newest[PRODUCE] == (3, APIS[PRODUCE].max_version)
    assert newest[FETCH] == (4, APIS[FETCH].max_version)
    assert newest[API_VERSIONS] == (0, APIS[API_VERSIONS].max_version)


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tuple\.index"):
        served_by("5.0")
