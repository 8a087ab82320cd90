"""The token of this broker for others: from the JAAS line, or from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.sasl.oauth import (
    ERROR_HEARD,
    OAuthExchange,
    TokenRules,
    check_unsecured,
)
from minibroker.broker.security.sasl.oauth_login import (
    HANDLER_KEY,
    RETRIEVER_KEY,
    URL_KEY,
    oauth_login,
)
from minibroker.broker.security.sasl.oauth_settings import ALLOWED_URLS_KEY
from minibroker.kafka.errors import ConfigError, ProtocolError
from tests.support.in_process import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

CLOCK = ManualClock()
NOW_MS = CLOCK.now_ms()
PACKAGE = "org.apache.kafka.common.security.oauthbearer."
FILE = {HANDLER_KEY: f"{PACKAGE}OAuthBearerLoginCallbackHandler"}
OPTIONS = {
    "unsecuredLoginStringClaim_sub": "broker",
    "unsecuredLoginListClaim_scope": "|read|write",
    "unsecuredLoginNumberClaim_level": "5",
    "unsecuredLoginLifetimeSeconds": "60",
    "unsecuredLoginExtension_host": "here",
}


def test_a_broker_believes_the_token_of_another_one() -> None:
    rules = TokenRules(scope=("read", "write"))
    theirs = OAuthExchange(lambda token, now: check_unsecured(token, rules, now))
    ours = oauth_login(ConfigValues({}), OPTIONS, CLOCK).begin("host")
    first = ours.begin()
    assert b"\x01host=here\x01" in first
    assert ours.respond(theirs.respond(first, NOW_MS)) == b""
    assert (ours.is_complete, theirs.is_complete, theirs.name) == (True, True, "broker")
    assert theirs.expires_ms == NOW_MS + 60_000


def test_the_token_of_a_file_is_read_for_each_login(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    login = oauth_login(ConfigValues({**FILE, URL_KEY: file.as_uri()}), {}, CLOCK)
    for token in ("first", "second"):
        file.write_text(f" {token}\n")
        assert login.begin("host").begin() == f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    file.unlink()
    with pytest.raises(OSError, match="a token"):
        login.begin("host").begin()


def test_a_broker_that_does_not_believe_it_says_so() -> None:
    """It ends the login with an error then; one that goes on instead is no broker."""
    client = oauth_login(ConfigValues({}), OPTIONS, CLOCK).begin("host")
    client.begin()
    assert client.respond(b'{"status":"invalid_token"}') == ERROR_HEARD
    assert not client.is_complete
    with pytest.raises(ProtocolError, match="invalid_token"):
        client.respond(b"")


@pytest.mark.parametrize(
    ("settings", "options", "sentence"),
    [
        ({}, {}, "does not say where a token comes from"),
        ({}, {"unsecuredLoginStringClaim_sub": " "}, "does not say where a token comes from"),
        ({}, {**OPTIONS, "unsecuredLoginPrincipalClaimName": "mail"}, "StringClaim_mail"),
        ({}, {**OPTIONS, "unsecuredLoginStringClaim_exp": "1"}, "exp is set for each token"),
        ({}, {**OPTIONS, "unsecuredLoginNumberClaim_x": "y"}, "NumberClaim_x of the JAAS line is"),
        ({}, {**OPTIONS, "unsecuredLoginLifetimeSeconds": "-1"}, "LifetimeSeconds=-1"),
        ({HANDLER_KEY: "a.Custom"}, OPTIONS, "no Java class is loaded"),
        (FILE, {}, "or file:/PATH"),
        ({**FILE, URL_KEY: "https://issuer.example/token"}, {}, "or clientId in the JAAS line"),
        ({**FILE, URL_KEY: "ftp://issuer.example/token"}, {}, "or file:/PATH"),
        (
            {**FILE, URL_KEY: "http://a/", RETRIEVER_KEY: f"{PACKAGE}FileJwtRetriever"},
            {},
            "from there, expected file:/PATH",
        ),
        ({**FILE, URL_KEY: "http://a/", RETRIEVER_KEY: "a.Custom"}, {}, "no Java class is loaded"),
        ({**FILE, URL_KEY: "http://a/", ALLOWED_URLS_KEY: "http://b/"}, OPTIONS, "is not among"),
        ({**FILE, URL_KEY: "file://host/token"}, {}, "or file:/PATH"),
        ({**FILE, URL_KEY: "http://host:99999/"}, OPTIONS, "99999/: the token of OAUTHBEARER"),
        ({**FILE, URL_KEY: "http://[::1/"}, OPTIONS, "1/: the token of OAUTHBEARER"),
        ({**FILE, URL_KEY: "http://a b/"}, OPTIONS, "a b/: the token of OAUTHBEARER"),
        ({**FILE, URL_KEY: "http://host/ä"}, OPTIONS, "ä: the token of OAUTHBEARER"),
    ],
)
def test_a_login_without_a_token_is_refused(
    settings: dict[str, str], options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        oauth_login(ConfigValues(settings), options, CLOCK)
