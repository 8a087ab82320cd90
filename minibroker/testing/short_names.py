"""The fixtures under short names, for the same brokers as those of `plugin` under prefixed names.

`plugin` registers this module as a plugin of its own. The ini option `minibroker_fixtures =
prefixed` leaves it out, so that other plugins may have these names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.testing.fixture_brokers import new_topic

if TYPE_CHECKING:
    from minibroker.testing.broker import Broker
    from minibroker.testing.cluster import Cluster


@pytest.fixture
def kafka(_minibroker: Broker) -> Broker:
    """Return the run's broker, without records, groups and settings of other tests."""
    return _minibroker


@pytest.fixture
def kafka_topic(kafka: Broker, request: pytest.FixtureRequest) -> str:
    """Make a topic with one partition on `kafka`, named after the test, and return its name."""
    return new_topic(kafka, request)


@pytest.fixture
def kafka_broker(_minibroker_broker: Broker) -> Broker:
    """Return a broker for this test alone."""
    return _minibroker_broker


@pytest.fixture
def kafka_cluster(_minibroker_cluster: Cluster) -> Cluster:
    """Return three brokers for this test alone, which replicate."""
    return _minibroker_cluster


@pytest.fixture(scope="module")
def kafka_module(_minibroker_module: Broker) -> Broker:
    """Return a broker for the tests of one module; it keeps what they write."""
    return _minibroker_module


@pytest.fixture(scope="session")
def kafka_session(_minibroker_session: Broker) -> Broker:
    """Return a broker for the whole run; it keeps what the tests write."""
    return _minibroker_session
