"""Signed tokens; Kafka's own answers are in the dialogues (golden/sasl.json)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.sasl.key_set import parse_jwks
from minibroker.broker.security.sasl.oauth import OAuthToken
from minibroker.broker.security.sasl.signed_token import (
    ALGORITHMS,
    SignedRules,
    UnknownKeyError,
    check_signed,
)
from minibroker.client.assertion import assertions_of, has_assertions
from minibroker.kafka.errors import ConfigError, ProtocolError
from minibroker.kafka.oauthbearer import MESSAGE_BYTES_MAX, TokenError
from tests.support.in_process import START_MS, ManualClock
from tests.support.signed_tokens import (
    AUDIENCE,
    FAR_S,
    ISSUER,
    ec_key,
    encoded,
    jwks,
    public_pem,
    rsa_key,
    token,
    with_signature,
    write_key,
)

if TYPE_CHECKING:
    from pathlib import Path


NOW_MS = 1_800_000_000_500
NOW_S = NOW_MS // 1000
RULES = SignedRules(issuer=ISSUER, audiences=frozenset({AUDIENCE}))
KEYS = parse_jwks(json.dumps(jwks()).encode())


def check(text: str, rules: SignedRules = RULES) -> OAuthToken:
    return check_signed(text, KEYS, rules, NOW_MS)


def test_a_token_names_its_user_and_ends() -> None:
    assert check(token({"sub": " ä ", "exp": FAR_S + 0.9})) == OAuthToken("ä", FAR_S * 1000)


def test_other_claims_may_have_name_and_scope() -> None:
    rules = RULES._replace(name_claim="mail", scope_claim="scp")
    assert check(token({"mail": "a@b", "scope": [1]}), rules).name == "a@b"
    with pytest.raises(TokenError, match="claim mail is missing"):
        check(token(), rules)
    with pytest.raises(TokenError, match="blank or comes twice"):
        check(token({"mail": "a", "scp": ["x", "x"]}), rules)


@pytest.mark.parametrize(
    ("claims", "is_taken"),
    [
        ({"exp": NOW_S - 29}, True),
        ({"exp": NOW_S - 30}, False),
        ({"nbf": NOW_S + 30}, True),
        ({"nbf": NOW_S + 31}, False),
        ({"iat": NOW_S + 1000}, True),
    ],
)
def test_clocks_may_be_apart(claims: dict[str, Any], is_taken: bool) -> None:
    text = token(claims)
    if is_taken:
        assert check(text).name == "alice"
    else:
        with pytest.raises(TokenError, match=r"expired|not valid yet"):
            check(text)


@pytest.mark.parametrize("secret", [public_pem(), public_pem().strip(), b"", b"alice"])
@pytest.mark.parametrize("key_id", ["rsa", None, "shared"])
def test_a_public_key_is_no_secret(secret: bytes, key_id: str | None) -> None:
    """The attack: HS256 with the bytes of the key that verifies RS256."""
    forged = with_signature(token(header={"alg": "HS256", "kid": key_id}), secret)
    with pytest.raises(TokenError):
        check(forged)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, 5, ["RS256"]])
def test_no_algorithm_signs_nothing(algorithm: object) -> None:
    signed = token(header={"alg": algorithm})
    for text in (signed, signed.rpartition(".")[0] + ".", signed.rpartition(".")[0] + ".AA"):
        with pytest.raises(TokenError):
            check(text)


def test_none_is_no_algorithm() -> None:
    assert not any(name.lower() == "none" for name in ALGORITHMS)


@pytest.mark.parametrize(
    "header", [{"b64": False}, {"b64": False, "crit": ["b64"]}, {"b64": True, "crit": ["b64"]}]
)
def test_a_token_has_its_claims_in_base64(header: dict[str, Any]) -> None:
    with pytest.raises(TokenError):
        check(token(header=header))


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b"null", b"[" * 20_000, b'{"exp":NaN}', b'{"exp":' + b"9" * 5000 + b"}", b"\xff"],
)
def test_claims_that_say_nothing_are_an_error_of_the_token(payload: bytes) -> None:
    with pytest.raises(TokenError):
        check(token(payload=payload))


@pytest.mark.parametrize("text", ["", ".", "..", "a.b.c", "a.b", "a.b.c.d", "." * 1000, "é.b.c"])
def test_a_text_that_is_no_token_is_an_error_of_the_token(text: str) -> None:
    with pytest.raises(TokenError):
        check(text)


def test_a_number_of_great_length_is_bounded() -> None:
    assert check(token(payload=json.dumps({**json.loads(CLAIMS), "exp": 1e308}).encode()))


CLAIMS = json.dumps({"sub": "a", "iss": ISSUER, "aud": AUDIENCE, "iat": 1})


def test_an_audience_counts_where_none_is_expected() -> None:
    nobody = RULES._replace(audiences=frozenset())
    assert check(token({"aud": None}), nobody).name == "alice"
    with pytest.raises(TokenError, match="another audience"):
        check(token(), nobody)
    assert check(token({"aud": 5}), nobody._replace(any_audience=True)).name == "alice"


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(UnknownKeyError) as unknown:
        check(token(header={"kid": "new"}))
    assert unknown.value.key_id == "new"
    with pytest.raises(UnknownKeyError):
        check(token(key="ec", header={"alg": "ES384"}))


def test_a_scope_that_is_no_text_ends_the_connection() -> None:
    with pytest.raises(ProtocolError):
        check(token({"scope": ["read", 5]}))


def test_a_token_is_not_in_the_error() -> None:
    """A reader of the log could log in with it."""
    changed = token().rpartition(".")[0] + "." + encoded(b"another signature")
    with pytest.raises(TokenError) as refused:
        check(changed)
    assert changed.split(".")[1] not in str(refused.value)


# Assertions of this broker: signed by its key, or ready in a file.


ASSERTED_S = START_MS // 1000
KEY, TEMPLATE, FILE = "private.key.file", "template.file", "file"


def settings(**options: str) -> ConfigValues:
    """Return settings: `claim_iss=…` stands for `sasl.oauthbearer.assertion.claim.iss`."""
    return ConfigValues(
        {f"sasl.oauthbearer.assertion.{k.replace('_', '.')}": v for k, v in options.items()}
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
    assert read(assertions_of(values, ManualClock().now_ms)(), key) == (
        {"alg": algorithm.upper(), "typ": "JWT"},
        {
            "aud": "the provider",
            "iss": "broker",
            "sub": "broker-0",
            "iat": ASSERTED_S,
            "exp": ASSERTED_S + 300,
            "nbf": ASSERTED_S - 60,
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
        clock.now_ms,
    )
    header, first = read(make(), rsa_key("c"))
    assert header == {"alg": "RS256", "kid": "k", "typ": "JWT"}
    assert (first["iss"], first["exp"], first["x"]) == ("t", ASSERTED_S + 7, [1])
    clock.advance(2_000)
    _, second = read(make(), rsa_key("c"))
    assert second["exp"] == ASSERTED_S + 9
    assert first["jti"] != second["jti"]


def test_a_ready_assertion_goes_before_a_key_and_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "assertion"
    first, second = token({"sub": "1"}), token({"sub": "2"})
    file.write_text(f"\n{first}\n")
    values = settings(file=str(file), claim_iss="broker", private_key_file="/nowhere")
    make = assertions_of(values, ManualClock().now_ms)
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
    options = {}
    for name, content in files.items():
        path = tmp_path / name
        if content in {"RSA", "EC"}:
            write_key(path, rsa_key("c") if content == "RSA" else ec_key("c"))
        elif content == "locked":
            write_key(path, rsa_key("c"), b"secret")
        else:
            path.write_text(content)
        options[name.replace(".", "_")] = str(path)
    with pytest.raises(ConfigError) as caught:
        assertions_of(settings(**options), ManualClock().now_ms)
    assert sentence in str(caught.value)
