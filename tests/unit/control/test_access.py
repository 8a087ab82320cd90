"""The tokens of the control API: what each may ask."""

from __future__ import annotations

import pytest

from minibroker.control.access import Access
from minibroker.control.messages import HttpError, HttpRequest


def status_of(
    access: Access, method: str = "GET", path: str = "/clock", **headers: str
) -> tuple[int, str]:
    """Return the status of a request and the sentence of a refusal."""
    try:
        access.check(HttpRequest(method, path, {}, headers))
    except HttpError as error:
        return error.status, str(error)
    return 200, ""


def test_without_a_token_pages_of_a_browser_are_refused() -> None:
    open_access = Access()
    for headers in ({"origin": "http://evil.example"}, {"host": "evil.example:9093"}):
        status, sentence = status_of(open_access, "POST", "/reset", **headers)
        assert status == 403
        assert "--control-token" in sentence
    for host in ("localhost:9093", "127.0.0.1", "[::1]:5"):
        assert status_of(open_access, "POST", host=host)[0] == 200


def test_on_a_secured_broker_only_the_token_may_change_something() -> None:
    """A program on this machine has no login at the broker: it may look, and no more."""
    local = Access(is_secured=lambda: True)
    assert status_of(local)[0] == 200
    for method, path in (("POST", "/reset"), ("POST", "/clock"), ("DELETE", "/faults")):
        status, sentence = status_of(local, method, path)
        assert status == 403
        assert sentence == (
            f"{method} {path} needs a token, because the broker has listeners or an authorizer"
            " that ask who a client is: set one with --control-token @FILE"
        )
    with_token = Access("full", is_secured=lambda: True)
    assert status_of(with_token, "POST", "/reset", authorization="Bearer full")[0] == 200


def test_the_full_token_may_do_everything() -> None:
    access = Access("full", "read")
    for method in ("GET", "POST", "DELETE"):
        right = {"authorization": "Bearer full", "host": "broker.example", "origin": "x"}
        assert status_of(access, method, **right)[0] == 200


def test_the_reading_token_only_reads() -> None:
    access = Access("full", "read")
    assert status_of(access, authorization="Bearer read")[0] == 200
    for method in ("POST", "DELETE"):
        status, sentence = status_of(access, method, "/faults", authorization="Bearer read")
        assert status == 403
        assert sentence == (
            f"this token only reads (GET): {method} needs the token of --control-token"
        )


def test_the_reading_token_alone_lets_nobody_change_anything() -> None:
    access = Access(None, "read")
    assert status_of(access, authorization="Bearer read")[0] == 200
    status, sentence = status_of(access, "POST", authorization="Bearer read")
    assert status == 403
    assert "which is not set" in sentence
    assert status_of(access, "POST", authorization="Bearer None")[0] == 401


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ful", "Bearer fulll", "full", "Basic full"]
)
def test_another_token_is_refused(header: str) -> None:
    access = Access("full", "read")
    status, sentence = status_of(access, authorization=header)
    assert status == 401
    assert "--control-read-token" in sentence
    assert status_of(access, path="/health/live", authorization=header)[0] == 200


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(guess: bytes, token: bytes) -> bool:
        compared.append(token)
        return guess == token

    monkeypatch.setattr("hmac.compare_digest", compare)
    status_of(Access("full", "read"), authorization="Bearer full")
    status_of(Access("full", "read"), authorization="Bearer wrong")
    assert compared == [b"Bearer full", b"Bearer read"] * 2


SAME = {"host": "localhost:9093", "origin": "http://localhost:9093"}
FOREIGN = (
    {"host": "localhost:9093", "origin": "http://localhost:9094"},
    {"host": "localhost:9093", "origin": "null"},
    {"host": "localhost:9093", "sec-fetch-site": "cross-site"},
    {"host": "localhost:9093", "sec-fetch-site": "same-site"},
    {"host": "rebound.example:9093", "sec-fetch-site": "same-origin"},
    {"host": "rebound.example:9093", "origin": "http://rebound.example:9093"},
)


def test_the_own_page_is_served_without_a_token() -> None:
    local = Access()
    for method in ("GET", "POST", "DELETE"):
        assert status_of(local, method, **SAME)[0] == 200
        fetch_headers = {**SAME, "sec-fetch-site": "same-origin"}
        assert status_of(local, method, **fetch_headers)[0] == 200


@pytest.mark.parametrize("headers", FOREIGN)
def test_the_page_of_another_server_neither_reads_nor_changes(headers: dict[str, str]) -> None:
    for method in ("GET", "POST"):
        access = Access()
        with pytest.raises(HttpError) as refusal:
            access.check(HttpRequest(method, "/topics", {}, headers))
        assert refusal.value.status == 403
        access.check(HttpRequest("GET", "/console/console.js", {}, headers))


def test_a_typed_address_reads_and_changes_nothing() -> None:
    typed = {"host": "localhost:9093", "sec-fetch-site": "none"}
    assert status_of(Access(), "GET", **typed)[0] == 200
    assert status_of(Access(), "POST", **typed)[0] == 403


def test_a_page_that_only_reads_leaves_programs_their_rights() -> None:
    access = Access("full", page_only_reads=True)
    token = {"authorization": "Bearer full"}
    assert status_of(access, "POST", **token)[0] == 200
    assert status_of(access, "GET", **token, **SAME)[0] == 200
    for page in (SAME, {"sec-fetch-site": "same-origin"}):
        status, sentence = status_of(access, "POST", **token, **page)
        assert (status, "--console-read-only" in sentence) == (403, True)
        request = HttpRequest("GET", "/views", {}, {**token, **page})
        assert access.why_read_only(request) == sentence
