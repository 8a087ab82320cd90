"""Lines of the log: one for each event, whatever a client calls itself."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.evidence import (
    DeletionEvidence,
    EvidenceKind,
    deletion_request,
    marked_topic,
    moved_replica,
)
from minibroker.broker.log_lines import VALUE_MAX, LogLines
from minibroker.kafka.foreign_text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator


EVENT = "2026-11-29 12:00:00,000 ERROR   minibroker: broker 0 is hacked"


@pytest.fixture
def written() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """Yield a logger, and what it wrote."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogLines())
    logger = logging.getLogger("minibroker.test_log_lines")
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.INFO)
    yield logger, stream
    logger.removeHandler(handler)
    logger.propagate = True


@pytest.mark.parametrize(
    ("text", "escape"),
    [
        ("plain", "plain"),
        ("größe 表", "größe 表"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[2J\x00\x7f", r"\x1b[2J\x00\x7f"),
        ("\u202e\u2028\x85", r"\u202e\u2028\x85"),
        ("\ud800", r"\ud800"),
    ],
)
def test_a_character_without_a_glyph_is_an_escape(text: str, escape: str) -> None:
    assert printable(text) == escape


def test_a_name_with_a_newline_is_one_line(written: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = written
    logger.info("group %s has %d members", f"g\n{EVENT}", 2)
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(rf"INFO    minibroker.test_log_lines: group g\n{EVENT} has 2 members")


def test_a_long_name_does_not_hide_what_stands_behind_it(
    written: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, stream = written
    logger.info("%s and %r: refused", "x" * 32_767, "y" * 32_767)
    line = stream.getvalue()
    assert line.endswith("characters more): refused\n")
    assert "x… (30767 characters more) and 'y" in line
    assert len(line) < 2 * VALUE_MAX + 200


def test_a_traceback_has_no_line_that_looks_like_an_event(
    written: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, stream = written
    try:
        raise ValueError(f"a\n{EVENT}\x1b[2J")
    except ValueError:
        logger.exception("it failed")
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("it failed")
    assert rest[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in rest)
    assert rest[-1] == rf"    {EVENT}\x1b[2J"


def test_an_event_stays_as_it_is_for_others(written: tuple[logging.Logger, io.StringIO]) -> None:
    logger, _ = written
    events: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = events.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.info("group %s", "a\nb")
    logger.removeHandler(handler)
    assert events[0].args == ("a\nb",)
    assert events[0].getMessage() == "group a\nb"


# The evidence of a deletion says in one sentence who asked for it.


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        (
            marked_topic("/admin/delete_topics/t"),
            "the topic is marked in /admin/delete_topics (/admin/delete_topics/t)",
        ),
        (
            deletion_request(EvidenceKind.STOP_REPLICA, 2, 7),
            "a StopReplica request deletes the replica (controller 2, epoch 7)",
        ),
        (
            deletion_request(EvidenceKind.LEADER_DURING_DELETE, 2, 7),
            "an UpdateMetadata request gives the topic's partitions the leader -2 "
            "(controller 2, epoch 7)",
        ),
        (
            moved_replica([1, 2], 5),
            "the partition has its replicas on other brokers (replicas [1, 2], leader epoch 5)",
        ),
    ],
)
def test_the_evidence_is_one_sentence(evidence: DeletionEvidence, sentence: str) -> None:
    assert str(evidence) == sentence
