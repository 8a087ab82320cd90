"""Rules turn the name of a certificate into the name of a principal, as Kafka's mapper does."""

from __future__ import annotations

import pytest

from minibroker.broker.security.principal_mapping import PrincipalMapping
from minibroker.kafka.errors import ConfigError

ALICE = "CN=Alice,OU=Service Users,O=Acme,C=DE"


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("", ALICE, None),
        ("DEFAULT", ALICE, ALICE),
        ("RULE:^CN=(.*?),.*$/$1/", ALICE, "Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L", ALICE, "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", ALICE, "ALICE@SERVICE USERS"),
        ("RULE:^cn=(.*?),.*$/$1/,DEFAULT", ALICE, ALICE),
        ("RULE:^cn=(.*?),.*$/$1/", ALICE, None),
        (" DEFAULT , RULE:a/b/ ", ALICE, ALICE),
        ("RULE:.*OU=A.*/wrong/, RULE:^CN=(.*?),OU=S.*$/$1/L , DEFAULT", ALICE, "alice"),
        ("RULE:^CN=(A.*?),.*$/$1@$4/", ALICE, "Alice@$4"),
        ("RULE:^CN=(A.*?),.*$/$12/", ALICE, "Alice2"),
        ("RULE:^CN=(A.*?),.*$/\\$1/", ALICE, "$1"),
        ("RULE:^CN=(A.*?),.*$/$0!/", ALICE, ALICE + "!"),
        ("RULE:a\\/b/c\\/d/", "a/b", "c/d"),
        ("RULE:^(CN=Bob)?.*$/x$1/", ALICE, "x"),
        # Java replaces the empty match behind the whole one, too.
        ("RULE:.*/x/", "abc", "xx"),
        (",,DEFAULT,", ALICE, ALICE),
    ],
)
def test_the_first_rule_that_matches_counts(rules: str, name: str, expected: str | None) -> None:
    assert PrincipalMapping(rules).apply(name) == expected


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ("default", "'default'"),
        ("RULE:a", "'a'"),
        ("RULE:a/b", "'b'"),
        ("RULE:a/b/LU", "'U'"),
        ("RULE:a/b/X", "'X'"),
        ("DEFAULTS", "'S'"),
        ("DEFAULT RULE:a/b/", "' RULE:a/b/'"),
        ("RULE:(/b/", "pattern ("),
        ("RULE:(?=a)a/b/", "look-around"),
        ("RULE:a/$1/", "number of a group"),
        ("RULE:a/$x/", "number of a group"),
    ],
)
def test_a_wrong_rule_is_refused_at_the_start(rules: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        PrincipalMapping(rules)
    assert complaint in str(refused.value)
    assert "ssl.principal.mapping.rules" in str(refused.value)


def test_a_hostile_name_takes_linear_time() -> None:
    """A pattern like this one takes for ever in an engine that goes back."""
    mapping = PrincipalMapping("RULE:^(CN=(a+)+)+$/$1/,DEFAULT")
    name = "CN=" + "a" * 50_000 + "!"
    assert mapping.apply(name) == name
