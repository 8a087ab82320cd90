"""Flags and variables of the control API: tokens, files of tokens, what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.control import TOKEN_FILE_BYTES_MAX, ControlOptions
from minibroker.kafka.errors import ConfigError
from minibroker.verbs.serve.settings import build
from minibroker.verbs.serve.verb import parse_serve

if TYPE_CHECKING:
    from pathlib import Path


def options_of(*words: str, **environment: str) -> ControlOptions | None:
    """Return the options of `serve` with these words and variables."""
    return build(parse_serve(words), environment)[1].control


def test_addresses() -> None:
    assert options_of() is None
    for text, host in (
        ("127.0.0.1:1", "127.0.0.1"),
        ("localhost:1", "localhost"),
        ("[::1]:1", "::1"),
    ):
        options = options_of("--control", text)
        assert options == ControlOptions(host, 1)
        assert options.address == text


def test_other_machines_need_a_token() -> None:
    with pytest.raises(
        ConfigError, match=r"0\.0\.0\.0:9093 can be reached .* --control-token @FILE"
    ):
        options_of("--control", "0.0.0.0:9093")
    for variable, token, read_token in (
        ("MINIBROKER_CONTROL_TOKEN", "a", None),
        ("MINIBROKER_CONTROL_READ_TOKEN", None, "a"),
    ):
        options = options_of("--control", "0.0.0.0:9093", **{variable: "a"})
        assert options == ControlOptions("0.0.0.0", 9093, token, read_token)


def test_a_token_in_a_file(tmp_path: Path) -> None:
    for name, text in (("full", "secret-1\n"), ("read", "secret-2")):
        (tmp_path / name).write_text(text)
    options = options_of(
        *("--control", "127.0.0.1:1", "--control-tls", "SSL"),
        *("--control-token", f"@{tmp_path}/full"),
        MINIBROKER_CONTROL_READ_TOKEN=f"@{tmp_path}/read",
        MINIBROKER_CONTROL_TOKEN="the flag wins",
    )
    assert options == ControlOptions("127.0.0.1", 1, "secret-1", "secret-2", "SSL")


@pytest.mark.parametrize("flag", ["--control-token", "--control-read-token"])
def test_tokens_that_cannot_be(flag: str, tmp_path: Path) -> None:
    for content, sentence in (
        (b"two words", "may have only ASCII letters"),
        ("tök".encode(), "may have only ASCII letters"),
        (b" \n", "the file is empty"),
        (b"x" * (TOKEN_FILE_BYTES_MAX + 1), "larger than 4096 bytes"),
    ):
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(ConfigError, match=f"{flag} @{tmp_path}/token: .*{sentence}") as raised:
            options_of("--control", "127.0.0.1:1", flag, f"@{tmp_path}/token")
        assert "words" not in str(raised.value)
    with pytest.raises(ConfigError, match=f"{flag} @/nowhere cannot be read: No such file"):
        options_of("--control", "127.0.0.1:1", flag, "@/nowhere")


def test_two_tokens_have_to_differ() -> None:
    with pytest.raises(ConfigError, match="are the same token"):
        options_of(
            "--control", "127.0.0.1:1", "--control-token", "a", MINIBROKER_CONTROL_READ_TOKEN="a"
        )


@pytest.mark.parametrize("flag", ["--control-token", "--control-read-token", "--control-tls"])
def test_flags_without_the_api(flag: str) -> None:
    with pytest.raises(ConfigError, match=f"{flag} needs --control HOST:PORT"):
        options_of(flag, "a")
