"""Without RE2 each place that compiles a pattern of a user refuses it with the same sentence."""

from __future__ import annotations

import sys

import pytest

from minibroker.broker.groups.consumer.regexes import compile_regex, match_topics
from minibroker.broker.handlers.list_transactions import _compiled
from minibroker.broker.patterns import (
    MISSING,
    PatternError,
    PatternsMissingError,
    compile_pattern,
)
from minibroker.broker.security.kerberos_names import KerberosNames
from minibroker.broker.security.principal_mapping import PrincipalMapping
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError


@pytest.fixture
def no_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)


def test_a_pattern_is_compiled_or_refused_in_the_words_of_re2() -> None:
    assert compile_pattern("a+").fullmatch("aaa")
    with pytest.raises(PatternError, match="missing \\]"):
        compile_pattern("[a")


@pytest.mark.usefixtures("no_re2")
def test_the_sentence_names_the_package_and_the_extra() -> None:
    with pytest.raises(PatternsMissingError) as raised:
        compile_pattern("a")
    assert str(raised.value) == MISSING
    assert "google-re2" in MISSING
    assert "pip install 'minibroker[regex]'" in MISSING


@pytest.mark.usefixtures("no_re2")
def test_a_subscription_by_pattern_is_refused() -> None:
    with pytest.raises(KafkaError) as raised:
        compile_regex("orders.*")
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert raised.value.detail == f"SubscribedTopicRegex `orders.*`: {MISSING}"


@pytest.mark.usefixtures("no_re2")
def test_a_pattern_of_a_group_that_was_stored_matches_nothing_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert match_topics(["orders.*"], ["orders"]) == {"orders.*": frozenset()}
    assert MISSING in caplog.text


@pytest.mark.usefixtures("no_re2")
def test_transactions_cannot_be_asked_for_by_pattern() -> None:
    assert _compiled("") is None
    with pytest.raises(KafkaError) as raised:
        _compiled("app-.*")
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert raised.value.detail == f"transactional id pattern 'app-.*': {MISSING}"


@pytest.mark.usefixtures("no_re2")
def test_rules_for_names_are_refused_and_the_default_is_not() -> None:
    assert PrincipalMapping("DEFAULT").apply("CN=a") == "CN=a"
    with pytest.raises(ConfigError, match="has the pattern a: patterns need the package"):
        PrincipalMapping("RULE:a/b/")
    KerberosNames(["DEFAULT"])
    with pytest.raises(ConfigError, match="has the pattern a: patterns need the package"):
        KerberosNames(["RULE:[1:$1](a)"])
