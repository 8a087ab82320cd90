"""Values of groups and client metrics subscriptions stay within what the broker allows."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.entities import (
    check_push_interval,
    parse_match,
    validate_group_config,
)
from minibroker.broker.config.key_rows import GROUP_SYNONYMS
from minibroker.broker.config.keys import BROKER_KEYS
from minibroker.kafka.errors import ConfigError


def test_a_groups_keys_lead_to_broker_keys() -> None:
    assert all(name in BROKER_KEYS for name in GROUP_SYNONYMS.values())


def test_good_group_values_pass() -> None:
    validate_group_config(
        {"consumer.session.timeout.ms": "50000", "share.isolation.level": "read_committed"},
        BrokerConfig(),
    )


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"nobody.knows": "1"}, "Unknown group config name: nobody.knows"),
        ({"consumer.session.timeout.ms": "x"}, "Not a number of type INT"),
        ({"consumer.session.timeout.ms": "44999"}, "group.consumer.min.session.timeout.ms"),
        ({"consumer.session.timeout.ms": "60001"}, "group.consumer.max.session.timeout.ms"),
        ({"share.isolation.level": "dirty"}, "String must be one of"),
    ],
)
def test_bad_group_values_are_refused(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        validate_group_config(values, BrokerConfig())


def test_a_session_outlasts_a_heartbeat() -> None:
    broker = BrokerConfig(
        {"group.share.min.session.timeout.ms": "1000", "group.share.session.timeout.ms": "6000"}
    )
    with pytest.raises(ConfigError, match=r"must be greater than share.heartbeat.interval.ms"):
        validate_group_config({"share.session.timeout.ms": "5000"}, broker)


def test_match_items_are_parameters_with_patterns() -> None:
    patterns = parse_match(["client_id=app-.*", "client_software_name = java"])
    assert patterns["client_id"].fullmatch("app-1")
    assert patterns["client_software_name"].pattern == "java"
    for item in ("client_id", "colour=red", "client_id=(", "client_id="):
        with pytest.raises(ConfigError, match="Illegal client matching pattern"):
            parse_match([item])


def test_push_interval_is_between_a_tenth_of_a_second_and_an_hour() -> None:
    assert check_push_interval({}) is None
    assert check_push_interval({"interval.ms": "100"}) is None
    for text in ("99", "3600001"):
        complaint = check_push_interval({"interval.ms": text})
        assert complaint is not None
        assert "between 100 and 3600000" in complaint
