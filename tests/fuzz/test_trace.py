"""Damaged frames in a trace: each is an exchange and a line, whatever its bytes are."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.protocol.api_keys import APIS, Api
from minibroker.trace.decode import Frames, decode
from minibroker.trace.full_text import LINES_MAX, full_lines
from minibroker.trace.json_lines import DialogueError, from_json, to_json
from minibroker.trace.line import to_line
from minibroker.trace.plain_values import HIDDEN
from minibroker.trace.subject import SUBJECT_MAX
from tests.fuzz.damage import damaged
from tests.support.trace_frames import random_frames, recorded_frames

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTES_MAX = 700
"""Characters of a line beside the subjects: head, outcome, notes about damage."""
DAMAGES = 5


def broken(chance: random.Random, frames: Frames) -> Iterator[Frames]:
    """Yield the frames with damage, several times."""
    for _ in range(DAMAGES):
        yield frames._replace(
            request=damaged(chance, bytes(frames.request)),
            answer=damaged(chance, bytes(frames.answer or b"")),
        )


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_random_values_are_a_short_line(api: Api) -> None:
    for frames in random_frames(api, 1):
        exchange = decode(frames, {})
        assert exchange.request is not None, exchange.subject
        assert exchange.answer is not None, exchange.subject
        assert len(exchange.subject) <= 2 * SUBJECT_MAX + 3
        assert to_line(exchange).isprintable()


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_random_values_come_back_from_json(api: Api) -> None:
    """Passwords and keys aside: they are hidden, and read back as nothing."""
    for frames in random_frames(api, 3):
        exchange = decode(frames, {})
        line = to_json(exchange)
        again = from_json(line)
        assert HIDDEN in line or again == exchange
        assert to_json(from_json(to_json(again))) == to_json(again)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_random_values_in_full_are_lines(api: Api) -> None:
    for frames in random_frames(api, 4):
        lines = list(full_lines(decode(frames, {})))
        assert len(lines) < 2 * LINES_MAX
        assert all(line.isprintable() for line in lines)


def test_damaged_json_is_an_exchange_or_refused() -> None:
    chance = random.Random(2)
    for frames in recorded_frames()[::7]:
        line = to_json(decode(frames, {})).encode()
        for _ in range(DAMAGES):
            with contextlib.suppress(DialogueError):
                from_json(damaged(chance, line).decode("utf-8", "replace"))


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_damaged_values_are_a_line(api: Api) -> None:
    chance = random.Random(api.name)
    for whole in random_frames(api, 2):
        for frames in broken(chance, whole):
            line = to_line(decode(frames, {}))
            assert line.isprintable()
            assert len(line) < 2 * SUBJECT_MAX + NOTES_MAX


def test_damaged_dialogues_are_lines() -> None:
    chance = random.Random(1)
    for whole in recorded_frames():
        for frames in broken(chance, whole):
            assert to_line(decode(frames, {})).isprintable()
