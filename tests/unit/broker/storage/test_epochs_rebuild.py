"""Epochs read again from batches: as far back as the log goes, and none that a format lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.epochs import LeaderEpochs, with_earlier_epochs
from minibroker.broker.storage.record_checks import AppendRules
from tests.support.logs import append, config

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog

    NewLog = Callable[..., PartitionLog]

EPOCHS = [2, 2, 4, 4, 4, 7]
"""Leader epochs of six batches with one record each."""


def log_of(new_log: NewLog) -> PartitionLog:
    """Return a log of `EPOCHS` with two batches in each segment."""
    log = new_log()
    for number, epoch in enumerate(EPOCHS):
        if number in (2, 4):
            log.roll()
        append(log, b"x", leader_epoch=epoch)
    return log


def history(*entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


def rebuilt(log: PartitionLog, known: LeaderEpochs, start_offset: int = 0) -> LeaderEpochs:
    return with_earlier_epochs(
        Disk(), log.segments, known, start_offset=start_offset, end_offset=log.log_end_offset
    )


@pytest.mark.parametrize(
    ("known", "start_offset", "expected"),
    [
        ([(7, 5)], 0, [(2, 0), (4, 2), (7, 5)]),
        ([(4, 4), (7, 5)], 0, [(2, 0), (4, 2), (7, 5)]),
        ([(4, 4), (7, 5)], 1, [(2, 1), (4, 2), (7, 5)]),
        ([(7, 5)], 3, [(4, 3), (7, 5)]),
        ([], 0, [(2, 0), (4, 2), (7, 5)]),
        ([(9, 6)], 0, [(2, 0), (4, 2), (7, 5), (9, 6)]),
    ],
)
def test_epochs_reach_back_to_the_start_of_the_log(
    new_log: NewLog,
    known: list[tuple[int, int]],
    start_offset: int,
    expected: list[tuple[int, int]],
) -> None:
    log = log_of(new_log)
    assert rebuilt(log, history(*known), start_offset).entries == expected


def test_a_history_from_the_start_on_stays_as_it_is(new_log: NewLog) -> None:
    log = log_of(new_log)
    known = history((2, 0), (7, 5))
    assert rebuilt(log, known) is known


def test_a_later_epoch_than_the_first_known_one_is_not_believed(new_log: NewLog) -> None:
    log = log_of(new_log)
    assert rebuilt(log, history((3, 4), (7, 5))).entries == [(2, 0), (3, 4), (7, 5)]


def test_messages_of_old_formats_end_the_history(new_log: NewLog) -> None:
    """Epochs before these messages are not read: the append of the messages forgot them."""
    log = new_log()
    append(log, b"new", leader_epoch=2)
    log.roll()
    old = config(message_format_version="0.10.2")
    log.update_config(old, AppendRules(old))
    append(log, b"old", leader_epoch=3)
    log.update_config(config(), AppendRules(config()))
    append(log, b"new", leader_epoch=4)
    append(log, b"new", leader_epoch=5)
    assert log.epochs.history.entries == [(4, 2), (5, 3)]
    known = history((5, 3))
    assert rebuilt(log, known).entries == [(4, 2), (5, 3)]


def test_a_log_of_old_formats_has_no_epochs(new_log: NewLog) -> None:
    log = new_log(message_format_version="0.10.2")
    append(log, b"old", leader_epoch=3)
    known = LeaderEpochs()
    assert rebuilt(log, known) is known
