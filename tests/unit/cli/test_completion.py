"""The words that fit behind those that are typed, from the declarations."""

from __future__ import annotations

import pytest

from minibroker.cli.completion import answer_for
from minibroker.cli.verbs_table import PROGRAM


def words(*typed: str) -> list[str]:
    return [word for word, _ in answer_for(PROGRAM, typed).words]


def test_first_stands_a_verb() -> None:
    assert words("") == [*PROGRAM.modules]
    assert words("se") == ["serve"]
    assert words("--") == ["--version", "--help"]
    assert words("pipeline", "co") == ["copy", "compare"]
    assert words("help", "dump") == ["dump-log"]


def test_every_word_has_a_meaning() -> None:
    assert dict(answer_for(PROGRAM, ["check-log", "--"]).words) == {
        "--strict": "report as broken also what the recovery after a crash would mend",
        "--deep": "uncompress batches and check every record",
        "--json": "one JSON object on each line",
        "--quiet": "no notes, only damage",
        "--help": "show the options",
    }


def test_a_flag_is_offered_once_unless_it_is_repeated() -> None:
    words_so_far = ["serve", "--memory", "--set", "a=b", "--loop=asyncio"]
    assert "--memory" not in words(*words_so_far, "--")
    assert "--loop" not in words(*words_so_far, "--")
    assert "--set" in words(*words_so_far, "--")
    assert "--listen" in words(*words_so_far, "")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["serve", "--log-level", "d"], ["debug"]),
        (["serve", "--log-level=w"], ["warning"]),
        (["pipeline", "archive", "--on-data-loss", "c"], ["continue"]),
        (["completion", "f"], ["fish"]),
        (["serve", "--listen", ""], []),
        (["check-log", "--", "--"], []),
        (["swerve", ""], []),
    ],
)
def test_values(typed: list[str], expected: list[str]) -> None:
    assert words(*typed) == expected


@pytest.mark.parametrize(
    ("typed", "paths", "prefix"),
    [
        (["serve", "--config", "x"], "file", ""),
        (["serve", "--config=x"], "file", "--config="),
        (["serve", "--data-dir", ""], "directory", ""),
        (["check-log", "a", ""], "directory", ""),
        (["dump-log", "--json", ""], "file", ""),
        (["serve", "--loop", ""], "", ""),
    ],
)
def test_paths_are_left_to_the_shell(typed: list[str], paths: str, prefix: str) -> None:
    answer = answer_for(PROGRAM, typed)
    assert (answer.paths, answer.prefix) == (paths, prefix)
