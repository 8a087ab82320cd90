"""Settings of a secured broker: security protocol, users, authorizer."""

from __future__ import annotations

import pytest

from minibroker.broker.config.authorizers import (
    ACL_AUTHORIZER,
    STANDARD_AUTHORIZER,
    parse_authorizer,
    parse_super_users,
)
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.secured import parse_user, secured_settings, users_text
from minibroker.kafka.errors import ConfigError


def test_users_log_in_on_the_only_listener() -> None:
    config = BrokerConfig(secured_settings("sasl_plaintext", {"alice": "secret"}))
    (listener,) = config.listeners
    assert (listener.name, listener.port) == ("SASL_PLAINTEXT", 0)
    assert config.inter_broker_listener_name == "SASL_PLAINTEXT"
    assert config.words("sasl.enabled.mechanisms") == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert config.unknown_keys == ()


def test_plaintext_needs_nothing() -> None:
    assert secured_settings("PLAINTEXT", {}) == {"listeners": "PLAINTEXT://127.0.0.1:0"}


@pytest.mark.parametrize(
    ("security", "users", "reason"),
    [
        ("TLS", {}, "expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("SASL_PLAINTEXT", {}, "give the users"),
        ("PLAINTEXT", {"a": "s3cret"}, "leave out the users"),
        ("SASL_PLAINTEXT", {"": "s3cret"}, "may not be empty"),
        ("SASL_PLAINTEXT", {"a": ""}, "may not be empty"),
    ],
)
def test_other_wishes_are_refused(security: str, users: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        secured_settings(security, users)
    assert "s3cret" not in str(refused.value)


def test_names_and_passwords_are_quoted() -> None:
    assert users_text({"a b": 'x"\\y', "c": "z"}) == '"a b"="x\\"\\\\y" "c"="z"'


def test_a_password_may_hold_colons() -> None:
    assert parse_user("alice:a:b") == ("alice", "a:b")
    for text in ("alice", "alice:", ":s3cret"):
        with pytest.raises(ConfigError) as refused:
            parse_user(text)
        assert "s3cret" not in str(refused.value)


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
    assert config.authorizer is not None
    assert config.authorizer.class_name == class_name
    assert config.authorizer.super_users == {"User:root"}
    assert config.authorizer.allows_unlisted


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
