"""Names of Kerberos, and the rules that make names of principals of them."""

from __future__ import annotations

import pytest

from minibroker.broker.security.kerberos_names import KerberosName, KerberosNames, parse_name
from minibroker.kafka.errors import ConfigError

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
