"""Staged appends: what a commit lets readers see, and what becomes of those that a disk refuses."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from tests.support.in_process import START_MS, batch_of
from tests.unit.broker.partitions.conftest import Claim, partition_image

if TYPE_CHECKING:
    from tests.unit.broker.partitions.conftest import World


def test_an_append_is_seen_after_the_commit(world: World) -> None:
    world.create("t")
    claim = world.append(b"a", b"b")
    assert world.partition().high_watermark == 0
    world.manager.commit()
    assert world.partition().high_watermark == 2
    assert (claim.error_code, claim.base_offset) == (0, 0)
    assert world.change_count == 1


def test_a_commit_of_nothing_does_nothing(world: World) -> None:
    world.create("t")
    world.manager.commit()
    assert world.change_count == 0


def test_a_failed_write_fails_what_it_held_and_nothing_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("t", partition_image(), partition_image())
    lost = [world.append(b"a"), world.append(b"b")]
    kept = world.append(b"c", index=1)
    world.fail_next_write()
    world.manager.commit()
    for claim in lost:
        assert claim.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (claim.base_offset, claim.log_start_offset) == (-1, -1)
    assert (kept.error_code, kept.base_offset) == (0, 0)
    assert world.partition(index=0).high_watermark == 0
    assert world.partition(index=1).high_watermark == 1
    errors = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "t-0" in errors[0].getMessage()
    again = world.append(b"a")
    world.manager.commit()
    assert (again.error_code, again.base_offset) == (0, 0)


def test_entries_written_before_the_failure_are_not_lost(world: World) -> None:
    world.create("t")
    written = world.append(b"a")
    world.partition().log.write_staged()
    lost = world.append(b"b")
    world.fail_next_write()
    world.manager.commit()
    assert (written.error_code, written.base_offset) == (0, 0)
    assert lost.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.partition().high_watermark == 1


def test_an_append_that_fails_inside_the_log_takes_the_staged_ones_with_it(world: World) -> None:
    world.create("t")
    first = world.append(b"a")
    world.fail_next_write()
    world.append(b"x" * 600_000)
    with pytest.raises(KafkaError) as caught:
        world.append(b"x" * 600_000)  # more than is staged without writing
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    second = world.append(b"b")
    world.manager.commit()
    assert (second.error_code, second.base_offset) == (0, 0)
    assert first.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.partition().high_watermark == 1


def test_an_append_that_another_caller_failed_to_write_is_lost_although_its_offset_is_taken(
    world: World,
) -> None:
    """Retention, the cleaner and moves write what is staged, too; a later append then gets the
    offset of the one that was lost."""
    world.create("t")
    lost = world.append(b"a")
    world.fail_next_write()
    with pytest.raises(StorageError):
        world.partition().log.write_staged()
    written = world.append(b"b")
    world.manager.commit()
    assert lost.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (written.error_code, written.base_offset) == (0, 0)
    assert world.partition().high_watermark == 1


def test_a_repetition_of_a_lost_batch_is_lost_too(world: World) -> None:
    world.create("t")
    first = world.append(b"a")
    second = world.append(b"a")
    world.fail_next_write()
    world.manager.commit()
    assert {first.error_code, second.error_code} == {ErrorCode.KAFKA_STORAGE_ERROR}


def test_an_entry_whose_callback_fails_costs_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("t", partition_image(), partition_image())

    class Broken(Claim):
        @property
        def error_code(self) -> int:
            return 0

        @error_code.setter
        def error_code(self, code: int) -> None:
            if code:
                raise RuntimeError("a bug")

    append = world.partition().append
    append(memoryview(batch_of(b"a")), 1, START_MS, Broken())  # type: ignore[arg-type]
    lost = world.append(b"b")
    kept = world.append(b"c", index=1)
    world.fail_next_write()
    world.manager.commit()
    assert (lost.error_code, kept.error_code) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert world.partition(index=1).high_watermark == 1
    assert "a bug" in caplog.text


def test_reading_writes_what_is_staged_first(world: World) -> None:
    world.create("t")
    claim = world.append(b"a")
    read = world.partition().read(0, 1000, isolation_level=0, min_one_batch=True)
    assert len(read.records) > 0
    assert claim.error_code == 0
    assert world.manager.appends.staged == []
