"""Lines of the log for what a disk refuses again and again: one at once, then a number."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from minibroker.broker.storage.refusals import QUIET_S, Refusals
from minibroker.kafka.errors import StorageError

if TYPE_CHECKING:
    import pytest

    from tests.unit.broker.partitions.conftest import World


def refusal(code: int = errno.ENOSPC, directory: str = "/data") -> StorageError:
    cause = OSError(code, os.strerror(code))
    return StorageError(f"cannot append: {cause}", log_directory=directory, cause=cause)


def test_the_first_refusal_is_a_line_and_the_next_ones_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals()
    for number in range(200):
        refusals.note(f"partition t-{number % 4}", refusal(), 100.0 + number * 0.04)
    sentence = "cannot append: [Errno 28] No space left on device"
    assert caplog.messages == [f"partition t-0: {sentence}"]
    refusals.note("partition t-1", refusal(), 100.0 + QUIET_S)
    assert caplog.messages[1:] == [
        f"partition t-1: {sentence} (and 199 times since the last such line)"
    ]
    refusals.note("partition t-2", refusal(), 100.0 + 2 * QUIET_S)
    assert caplog.messages[2:] == [f"partition t-2: {sentence}"]


def test_another_error_and_another_directory_have_lines_of_their_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals()
    for error in (refusal(), refusal(errno.EMFILE), refusal(directory="/other"), refusal()):
        refusals.note("partition t-0", error, 100.0)
    assert len(caplog.messages) == 3


def test_damage_is_a_line_of_its_own_for_each_partition(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for number in (0, 1, 0, 1):
        damage = StorageError("ends inside the batch", log_directory="/data")
        refusals.note(f"partition t-{number}", damage, 100.0)
    assert [line.split(":")[0] for line in caplog.messages] == ["partition t-0", "partition t-1"]


def test_a_full_disk_writes_one_line_for_the_appends_that_it_refuses(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("t")
    world.append(b"a")
    world.manager.commit()
    world.files.fail_at, world.files.fail_count = world.files.call_count + 1, 1_000_000
    for _ in range(50):
        claim = world.append(b"b")
        world.manager.commit()
        assert claim.error_code == 56
    assert len([line for line in caplog.messages if "cannot append to t-0" in line]) == 1
    world.files.fail_at = -1
    world.append(b"c")
    world.manager.commit()
    assert world.partition().high_watermark == 2
