"""Assertions of this broker: signed by its key, or ready in a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.sasl.client_assertion import assertions_of, has_assertions
from minibroker.broker.security.sasl.oauth import MESSAGE_BYTES_MAX
from minibroker.kafka.errors import ConfigError
from tests.support.in_process import START_MS, ManualClock
from tests.support.signed_tokens import ec_key, rsa_key, token, write_key

if TYPE_CHECKING:
    from pathlib import Path

NOW_S = START_MS // 1000
KEY, TEMPLATE, FILE = "private.key.file", "template.file", "file"


def settings(**given: str) -> ConfigValues:
    """Return settings: `claim_iss=…` stands for `sasl.oauthbearer.assertion.claim.iss`."""
    return ConfigValues(
        {f"sasl.oauthbearer.assertion.{k.replace('_', '.')}": v for k, v in given.items()}
    )


def read(assertion: str, key: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims, behind a check of the signature."""
    claims = jwt.decode(
        assertion,
        key.public_key(),
        algorithms=["RS256", "ES256"],
        options={"verify_aud": False, "verify_exp": False},
    )
    return jwt.get_unverified_header(assertion), claims


@pytest.mark.parametrize(
    ("algorithm", "key", "passphrase"),
    [("RS256", rsa_key("c"), ""), ("ES256", ec_key("c"), ""), ("es256", ec_key("c"), "söcret")],
)
def test_an_assertion_is_signed_for_a_while(
    tmp_path: Path, algorithm: str, key: Any, passphrase: str
) -> None:
    more = {"private_key_passphrase": passphrase} if passphrase else {}
    file = write_key(tmp_path / "key.pem", key, passphrase.encode())
    values = settings(
        algorithm=algorithm,
        private_key_file=file,
        claim_aud="the provider",
        claim_iss="broker",
        claim_sub="broker-0",
        **more,
    )
    assert has_assertions(values)
    assert read(assertions_of(values, ManualClock())(), key) == (
        {"alg": algorithm.upper(), "typ": "JWT"},
        {
            "aud": "the provider",
            "iss": "broker",
            "sub": "broker-0",
            "iat": NOW_S,
            "exp": NOW_S + 300,
            "nbf": NOW_S - 60,
        },
    )


def test_a_template_stands_over_settings_and_times_over_both(tmp_path: Path) -> None:
    template = tmp_path / "template.json"
    template.write_text(
        '{"header": {"kid": "k", "alg": "none"}, "payload": {"iss": "t", "exp": 1, "x": [1]}}'
    )
    clock = ManualClock()
    make = assertions_of(
        settings(
            private_key_file=write_key(tmp_path / "key.pem", rsa_key("c")),
            template_file=str(template),
            claim_iss="broker",
            claim_exp_seconds="7",
            claim_jti_include="true",
        ),
        clock,
    )
    header, first = read(make(), rsa_key("c"))
    assert header == {"alg": "RS256", "kid": "k", "typ": "JWT"}
    assert (first["iss"], first["exp"], first["x"]) == ("t", NOW_S + 7, [1])
    clock.advance(2_000)
    _, second = read(make(), rsa_key("c"))
    assert second["exp"] == NOW_S + 9
    assert first["jti"] != second["jti"]


def test_a_ready_assertion_goes_before_a_key_and_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "assertion"
    first, second = token({"sub": "1"}), token({"sub": "2"})
    file.write_text(f"\n{first}\n")
    values = settings(file=str(file), claim_iss="broker", private_key_file="/nowhere")
    make = assertions_of(values, ManualClock())
    assert make() == first
    file.write_text(second)
    assert make() == second
    file.unlink()
    with pytest.raises(ConfigError, match=f"assertion.file={file} cannot be read"):
        make()


def test_a_secret_stands_where_nothing_is_said_of_assertions() -> None:
    assert not has_assertions(settings(private_key_file="/somewhere", claim_sub="broker"))


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "an assertion needs sasl.oauthbearer.assertion.private.key.file"),
        ({FILE: "no.assertion"}, "has no assertion: "),
        ({FILE: "x" * (MESSAGE_BYTES_MAX + 1)}, f"has more than {MESSAGE_BYTES_MAX} bytes"),
        ({KEY: "no key"}, "expected a private key for RS256, in PEM"),
        ({KEY: "EC"}, "expected a private key for RS256, in PEM"),
        ({KEY: "locked"}, "expected a private key for RS256, in PEM"),
        ({KEY: "RSA", TEMPLATE: "{"}, "expected JSON"),
        ({KEY: "RSA", TEMPLATE: "[]"}, "expected JSON"),
        ({KEY: "RSA", TEMPLATE: json.dumps({"header": 5})}, "expected JSON"),
    ],
)
def test_a_file_that_is_wrong_is_named(
    tmp_path: Path, files: dict[str, str], sentence: str
) -> None:
    given = {}
    for name, content in files.items():
        path = tmp_path / name
        if content in {"RSA", "EC"}:
            write_key(path, rsa_key("c") if content == "RSA" else ec_key("c"))
        elif content == "locked":
            write_key(path, rsa_key("c"), b"secret")
        else:
            path.write_text(content)
        given[name.replace(".", "_")] = str(path)
    with pytest.raises(ConfigError) as caught:
        assertions_of(settings(**given), ManualClock())
    assert sentence in str(caught.value)
