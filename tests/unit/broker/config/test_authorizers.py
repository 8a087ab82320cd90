"""The settings of the authorizer."""

from __future__ import annotations

import pytest

from minibroker.broker.config.authorizers import (
    ACL_AUTHORIZER,
    STANDARD_AUTHORIZER,
    parse_authorizer,
    parse_super_users,
)
from minibroker.broker.config.broker import BrokerConfig
from minibroker.kafka.errors import ConfigError


def test_no_authorizer_without_a_name() -> None:
    assert BrokerConfig().authorizer is None
    assert BrokerConfig({"super.users": "User:root"}).authorizer is None


@pytest.mark.parametrize("class_name", [ACL_AUTHORIZER, STANDARD_AUTHORIZER])
def test_kafkas_authorizers_are_known(class_name: str) -> None:
    config = BrokerConfig(
        {
            "authorizer.class.name": class_name,
            "super.users": "User:root",
            "allow.everyone.if.no.acl.found": "TRUE",
        }
    )
    assert config.authorizer == (class_name, {"User:root"}, True)


def test_another_authorizer_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError, match="no Java class is loaded") as refused:
        BrokerConfig({"authorizer.class.name": "com.example.Mine"})
    assert ACL_AUTHORIZER in str(refused.value)
    assert STANDARD_AUTHORIZER in str(refused.value)


def test_openness_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match="expected true or false"):
        parse_authorizer("", {"allow.everyone.if.no.acl.found": "maybe"})


def test_super_users() -> None:
    assert parse_super_users("") == frozenset()
    assert parse_super_users(" User:a; User:CN=b,O=c;") == {"User:a", "User:CN=b,O=c"}
    with pytest.raises(ConfigError, match="expected principals as User:name"):
        parse_super_users("alice")
