"""Users of `kafka-storage format --add-scram`, from the words of the command to a login."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.secured import SCRAM_CREDENTIALS
from minibroker.broker.security.sasl.users import given_credentials
from minibroker.container.scram_users import given_users, main, parse_specification
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.scram import credential_of, salted_password

if TYPE_CHECKING:
    from pathlib import Path


def test_users_of_a_command_are_those_of_the_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "users"
    assert given_users(str(file)) == ""
    words = ["format", "-t", "id", "--add-scram", "SCRAM-SHA-256=[name=al,password=a=b]"]
    assert main([*words, "--add-scram=SCRAM-SHA-512=[name=al,password=c]"], str(file)) == 0
    assert main([*words[:3], "-S", "SCRAM-SHA-256=[name=bo,password=d]"], str(file)) == 0
    assert "with 2 SCRAM users" in capsys.readouterr().out
    assert file.stat().st_mode & 0o777 == 0o600
    assert "a=b" not in file.read_text()
    config = BrokerConfig({SCRAM_CREDENTIALS: given_users(str(file))})
    by_user = given_credentials(config)
    assert {user: list(credentials) for user, credentials in by_user.items()} == {
        "al": ["SCRAM-SHA-256", "SCRAM-SHA-512"],
        "bo": ["SCRAM-SHA-256"],
    }
    stored = credential_of(by_user["al"]["SCRAM-SHA-256"])
    assert stored is not None
    assert stored.iterations == 4096


def test_salt_and_salted_password_are_taken() -> None:
    salt = b"0123456789abcdef"
    salted = salted_password(1, "secret", salt, 5000)
    texts = [base64.b64encode(value).decode() for value in (salt, salted)]
    user = parse_specification(
        f'SCRAM-SHA-256=[iterations=5000,salt="{texts[0]}",saltedpassword="{texts[1]}"]', "eve"
    )
    again = parse_specification(
        f"SCRAM-SHA-256=[name=eve,iterations=5000,salt={texts[0]},password=secret]"
    )
    assert user == again
    assert user.name == "eve"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("MD5=[name=a,password=secret]", "'MD5': expected SCRAM-SHA-256 or SCRAM-SHA-512"),
        ("SCRAM-SHA-256=name=a", "'SCRAM-SHA-256': expected"),
        ("SCRAM-SHA-256=[password=secret]", "name=… is missing"),
        ("SCRAM-SHA-256=[name=a]", "of a: password=… is missing"),
        ("SCRAM-SHA-256=[name=a,password=secret,iterations=9]", "iterations=9, expected 4096 to"),
        ("SCRAM-SHA-256=[name=a,password=secret,salt=?]", "salt of a: expected base 64"),
        ("SCRAM-SHA-256=[name=a,password=secret,salt=é]", "salt of a: expected base 64"),
    ],
)
def test_specifications_that_cannot_be(
    text: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_specification(text)
    assert sentence in str(raised.value)
    assert "secret" not in str(raised.value)
    assert main(["format", "--add-scram", text], "/nowhere/file") == 1
    assert capsys.readouterr().err.startswith("kafka-storage: ")
