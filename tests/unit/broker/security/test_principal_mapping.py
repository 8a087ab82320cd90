"""Rules turn the name of a certificate into the name of a principal, as Kafka's mapper does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from minibroker.broker.security.certificate import alternative_names, format_name, subject_name
from minibroker.broker.security.kerberos_names import KerberosName, KerberosNames, parse_name
from minibroker.broker.security.principal_mapping import PrincipalMapping
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.der import read_values
from tests.support.certificates import (
    STORES,
    broker_certificate,
    certificate_of,
    client_certificate,
)

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


# Names of certificates are those that Java gives: `names.json` has Java's own.


NAMES: dict[str, Any] = json.loads((STORES / "names.json").read_text())


@pytest.mark.parametrize("case", NAMES)
def test_a_name_is_written_as_java_writes_it(case: str) -> None:
    (name,) = read_values(bytes.fromhex(NAMES[case]["name"]))
    assert format_name(name.content) == NAMES[case]["java"]


def test_the_subject_of_a_certificate() -> None:
    certificate = certificate_of(client_certificate())
    assert subject_name(certificate) == "CN=alice,OU=Users,O=Acme"


def test_bytes_that_are_no_certificate_are_an_error() -> None:
    for data in (b"", b"\x30\x00", b"\x30\x02\x30\x00", b"\x0c\x01a" * 2):
        with pytest.raises(ValueError, match=r"certificate|DER value"):
            subject_name(data)


def test_alternative_names_of_a_certificate() -> None:
    names = alternative_names(certificate_of(broker_certificate()))
    assert names == {b"\x82\x09localhost", b"\x87\x04\x7f\0\0\x01"}


# Names of Kerberos, and the rules that make names of principals of them.


REALM = "REALM.COM"


def short(name: str, *rules: str) -> str:
    return KerberosNames(rules or ["DEFAULT"]).short_name(parse_name(name), REALM)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("alice@R", ("alice", None, "R")),
        ("kafka/host.example@R", ("kafka", "host.example", "R")),
        ("alice", ("alice", None, None)),
        ("a/b", ("a/b", None, None)),
        ("@R", ("", None, "R")),
        ("/@", ("", "", "")),
    ],
)
def test_a_name_has_parts(text: str, parts: tuple[str | None, ...]) -> None:
    assert parse_name(text) == KerberosName(*parts)  # type: ignore[arg-type]
    assert str(parse_name(text)) == text


@pytest.mark.parametrize("text", ["a/b/c@R", "a@b@R", "a\\@b@R", "a/b/c/d@R"])
def test_a_name_with_more_parts_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected NAME@REALM"):
        parse_name(text)


@pytest.mark.parametrize(
    ("name", "rules", "expected"),
    [
        ("alice@REALM.COM", [], "alice"),
        ("kafka/host@REALM.COM", [], "kafka"),
        ("simple", ["RULE:[1:x]"], "simple"),
        ("App.service/h@OTHER", [r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g", "DEFAULT"], "service"),
        ("App.service@OTHER", [r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g", "DEFAULT"], "service"),
        ("alice@OTHER", ["RULE:[1:$1 at $0]"], "alice at OTHER"),
        ("a/b@OTHER", ["RULE:[1:one]", "RULE:[2:$2-$1]"], "b-a"),
        ("aXbXc@OTHER", ["RULE:[1:$1]s/X/-/"], "a-bXc"),
        ("aXbXc@OTHER", ["RULE:[1:$1]s/X/-/g"], "a-b-c"),
        ("aXbXc@OTHER", ["RULE:[1:$1](.*X.*)s/(.)X/$1$1/g"], "aabbc"),
        ("User@OTHER", ["RULE:[1:$1]/L"], "user"),
        ("User@OTHER", ["RULE:[1:$1]/U"], "USER"),
        ("TestABC/h@OTHER", ["RULE:[2:$1](Test.*)s/ABC///L"], "test"),
        ("ABC_User_ABC/h@O", ["RULE:[2:$1](ABC.*)s/ABC/XYZ/g/L"], "xyz_user_xyz"),
        ("other@O", ["RULE:[1:$1](App.*)", "RULE:[1:$1]s/o//"], "ther"),
        ("alice@O", ["RULE:[1:$1@$0](alice@O)s/@.*//"], "alice"),
    ],
)
def test_the_first_rule_that_counts_decides(name: str, rules: list[str], expected: str) -> None:
    assert short(name, *rules) == expected


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("alice@OTHER", ["DEFAULT"]),
        ("alice@OTHER", ["RULE:[2:$1]"]),
        ("alice@OTHER", ["RULE:[1:$1](bob)", "DEFAULT"]),
        ("alice@OTHER", ["RULE:[1:$1](lic)"]),
        ("alice@OTHER", ["RULE:[1:$1@$0]", "RULE:[1:$1]"]),
        ("alice@OTHER", ["RULE:[1:$1/$0]"]),
        ("alice@realm.com", ["DEFAULT"]),
    ],
)
def test_a_name_without_a_rule_is_refused(name: str, rules: list[str]) -> None:
    with pytest.raises(ValueError, match=r"no rule of|expected a name without"):
        short(name, *rules)


@pytest.mark.parametrize(
    "rule",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/g",
        "rule:[1:$1]",
        "RULE:[1:$1]/L/U",
        "RULE:[1:$1]/LU",
        "RULE:[1:$1/L",
        "RULE:[1:$1]/l",
        "RULE:[2:$1](ABC.*)s/ABC/XYZ/L/g",
        "RULE:[:$1]",
        "RULE:[x:$1]",
        "RULE:[1:$1]s/a/b",
        "RULE:[1:$]",
        "RULE:[1:$2]",
        "RULE:[1:$9999]",
        "RULE:[1:$1]((a)",
        "RULE:[1:$1](a(?=b))",
        "RULE:[1:$1]s/a/$1/",
        "",
    ],
)
def test_a_wrong_rule_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.principal\.to\.local\.rules"):
        KerberosNames([rule])
