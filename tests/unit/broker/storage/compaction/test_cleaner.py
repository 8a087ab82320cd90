"""Compaction: settings, metrics, time, thread, and rounds that fail."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.storage import names
from minibroker.broker.storage.compaction import cleaner as cleaner_module
from minibroker.broker.storage.compaction.cleaner import LogCleaner
from minibroker.broker.storage.compaction.cleaner_settings import (
    CleanerMetrics,
    CleanerSettings,
    cleaner_settings,
)
from minibroker.broker.storage.compaction.round_thread import THREAD_NAME
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.record_checks import AppendRules
from minibroker.kafka.errors import StorageError
from tests.support.compaction import put
from tests.support.evidence import MARKED
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    abandon,
    config,
    open_manager,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.broker.storage.partition_log import PartitionLog


WAIT_S = 180
SETTINGS = CleanerSettings(True, 1 << 20, 0.9, 1 << 19, 1e300, 15_000, 1000, 300_000)


class Timer:
    """A call that was asked for."""

    def __init__(self, delay_ms: int, call: Callable[[], None]) -> None:
        self.delay_ms = delay_ms
        self.call = call
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class World:
    """A log manager, a cleaner, and a loop that turns when the test says so."""

    def __init__(self, path: Path, **overrides: object) -> None:
        self.clock = ManualClock()
        self.topic = config(cleanup_policy="compact", **overrides)
        self.manager = open_manager(str(path), clock=self.clock, topic=self.topic)
        self.timers: list[Timer] = []
        self.calls: queue.Queue[Callable[[], None]] = queue.Queue()
        self.failures: list[StorageError] = []
        self.settings = SETTINGS
        self.steps: Iterator[object] | None = None
        self.is_held = False
        self.cleaner = LogCleaner(
            self.manager,
            clock=self.clock,
            settings=lambda: self.settings,
            run_after=self._run_after,
            call_soon=self.calls.put,
            run_in_slices=self.run_in_slices,
            on_failure=self.failures.append,
        )

    def run_in_slices(self, steps: Iterator[object]) -> None:
        """Run all steps of a look, or only the first, and hold the others."""
        if self.is_held:
            self.steps = steps
            next(steps)
        else:
            for _ in steps:
                pass

    def _run_after(self, delay_ms: int, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(delay_ms, call))
        return self.timers[-1]

    def log(self, topic: str = "t") -> PartitionLog:
        return self.manager.create_log(topic, 0, TOPIC_ID, self.topic)

    def turn_until_done(self) -> None:
        """Run what the thread asks for until there is none."""
        while self.cleaner.is_running:
            self.calls.get(timeout=WAIT_S)()

    def look(self) -> None:
        self.cleaner.look()
        self.turn_until_done()

    @property
    def armed_ms(self) -> list[int]:
        return [timer.delay_ms for timer in self.timers if not timer.is_cancelled]

    def close(self) -> None:
        self.cleaner.close()
        abandon(self.manager)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    new_world = World(tmp_path / "data")
    yield new_world
    new_world.close()


def fill(log: PartitionLog, count: int = 10) -> None:
    for number in range(count):
        put(log, (b"a", b"%d" % number))


def test_a_dirty_log_is_compacted_on_a_thread_of_its_own(world: World) -> None:
    log = world.log()
    fill(log)
    log.roll()
    world.cleaner.look()
    assert world.cleaner.is_running
    names_of_threads = {thread.name for thread in threading.enumerate()}
    assert THREAD_NAME in names_of_threads
    world.turn_until_done()
    assert values_of(log) == [b"9"]
    assert log.clean_offset == 10
    assert THREAD_NAME not in {thread.name for thread in threading.enumerate()}
    checkpoint = Path(world.manager.directories[0].path, names.CLEANER_OFFSETS).read_text()
    assert checkpoint == "0\n1\nt 0 10\n"
    assert world.armed_ms == []


def test_the_checkpoint_is_known_after_a_start(tmp_path: Path) -> None:
    world = World(tmp_path / "data")
    fill(world.log())
    world.log().roll()
    world.look()
    world.cleaner.close()
    world.manager.close()
    again = World(tmp_path / "data")
    assert again.log().clean_offset == 10
    again.look()
    assert again.cleaner.metrics.round_count == 0
    again.close()


def test_the_dirtiest_goes_first_and_then_the_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger=cleaner_module.__name__)
    cleaner, dirty = world.log("cleaner"), world.log("dirty")
    fill(cleaner)
    put(cleaner, (b"big", b"x" * 500))
    cleaner.roll()
    world.look()
    fill(cleaner, 20)
    cleaner.roll()
    fill(dirty)
    dirty.roll()
    caplog.clear()
    world.look()
    order = [
        record.args[0].topic for record in caplog.records if record.msg.startswith("compacted")
    ]  # type: ignore[union-attr,index]
    assert order == ["dirty", "cleaner"]


def test_a_log_below_the_ratio_waits(world: World) -> None:
    log = world.log()
    put(log, (b"big", b"x" * 5000))
    log.roll()
    world.look()
    rounds = world.cleaner.metrics.round_count
    fill(log)
    log.roll()
    world.look()
    assert world.cleaner.metrics.round_count == rounds
    assert 0 < world.cleaner.metrics.dirty_ratio_max < 0.5
    fill(log, 100)
    log.roll()
    world.look()
    assert values_of(log) == [b"x" * 5000, b"99"]


def test_a_quiet_log_is_compacted_within_the_idle_time(world: World) -> None:
    log = world.log()
    fill(log)
    world.look()
    assert world.armed_ms == [1000], "it was just written to"
    world.clock.now += 400
    world.look()
    assert world.armed_ms[-1] == 600
    put(log, (b"a", b"new"))
    world.clock.now += 600
    world.look()
    assert world.armed_ms[-1] == 1000, "not quiet any more"
    world.clock.now += 1000
    world.look()
    assert values_of(log) == [b"new"]
    world.timers.clear()
    world.look()
    assert world.armed_ms == [], "nothing is left to wait for"


def test_without_an_idle_time_the_active_segment_stays(world: World) -> None:
    world.settings = SETTINGS._replace(idle_ms=0)
    fill(world.log())
    world.clock.now += 10_000_000
    world.look()
    assert len(values_of(world.log())) == 10
    assert world.armed_ms == []


def test_a_quiet_log_below_the_ratio_is_not_rolled(world: World) -> None:
    log = world.log()
    put(log, (b"big", b"x" * 5000))
    log.roll()
    world.look()
    world.timers.clear()
    fill(log)
    world.look()
    assert world.armed_ms == []
    assert log.active_segment.base_offset == 1


def test_young_records_are_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path / "data", min_compaction_lag_ms=60_000)
    log = world.log()
    fill(log)
    log.roll()
    world.look()
    assert len(values_of(log)) == 10
    assert world.armed_ms == [SETTINGS.backoff_ms]
    world.clock.now += 60_001
    world.look()
    assert values_of(log) == [b"9"]
    world.close()


def test_an_open_transaction_is_not_compacted(world: World) -> None:
    log = world.log()
    put(log, (b"a", b"1"), producer_id=1, sequence=0, is_transactional=True)
    put(log, (b"a", b"2"))
    log.roll()
    world.look()
    assert len(values_of(log)) == 2


def test_it_may_be_switched_off(world: World) -> None:
    world.settings = SETTINGS._replace(is_enabled=False)
    fill(world.log())
    world.log().roll()
    world.look()
    assert len(values_of(world.log())) == 10


def damage(log: PartitionLog) -> None:
    path = Path(log.segments.first.log_path)
    content = bytearray(path.read_bytes())
    content[61] = 0x7E
    path.write_bytes(content)


def test_a_damaged_log_is_set_aside_and_the_others_go_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = world.log("bad"), world.log("good")
    for log in (bad, good):
        fill(log)
        log.roll()
    damage(bad)
    world.look()
    while not world.cleaner.metrics.round_count:
        world.look()
    assert values_of(good) == [b"9"]
    assert "bad-0 is not compacted any more" in caplog.text
    assert world.cleaner.metrics.by_name(NOW_MS + 5)["time-since-last-run-ms"] == 5
    dirty_bytes = (
        sum(segment.size_bytes for segment in bad.segments) - bad.active_segment.size_bytes
    )
    assert dirty_bytes > 0
    assert world.cleaner.uncleanable() == {bad.log_directory: (1, dirty_bytes)}
    deleted = world.manager.delete("bad", 0, MARKED)
    assert deleted is not None
    world.look()
    assert list(world.cleaner.uncleanable().values()) == [(0, 0)]


def test_a_disk_that_refuses_is_reported_and_tried_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    log = world.log()
    fill(log)
    log.roll()
    blocker = Path(log.directory, f"{0:020d}.log.cleaned")
    blocker.mkdir()
    world.look()
    (failure,) = world.failures
    assert failure.log_directory == log.log_directory
    assert isinstance(failure.__cause__, OSError)
    assert world.armed_ms == [SETTINGS.backoff_ms]
    for _ in range(3):
        world.look()
    assert [line for line in caplog.messages if "compaction of t-0" in line] == [
        f"compaction of t-0: {failure}"
    ]
    assert len(world.failures) == 4
    blocker.rmdir()
    world.look()
    assert values_of(log) == [b"9"]


def test_a_deleted_log_ends_its_round(world: World) -> None:
    log = world.log()
    fill(log)
    log.roll()
    world.cleaner.look()
    task = world.manager.delete("t", 0, MARKED)
    world.turn_until_done()
    assert task is not None
    task()
    assert world.failures == []
    assert list(world.cleaner.uncleanable().values()) == [(0, 0)]


def compact_no_more(log: PartitionLog) -> None:
    """Change the policy of the log's topic, as Kafka's LogManager.updateTopicConfig does."""
    policy = config(cleanup_policy="delete")
    log.update_config(policy, AppendRules(policy))


def test_a_log_that_is_compacted_no_more_keeps_its_records(world: World) -> None:
    """Its topic got another policy during the round."""
    log = world.log()
    fill(log)
    log.roll()
    world.cleaner.look()
    compact_no_more(log)
    world.turn_until_done()
    assert len(values_of(log)) == 10
    assert log.clean_offset is None


def test_a_look_begins_no_round_over_a_log_that_is_compacted_no_more(tmp_path: Path) -> None:
    """The topics of a log that was looked at, and of one that was not, got another policy."""
    world = World(tmp_path)
    logs = [world.log(f"t{number}") for number in range(2)]
    for log in logs:
        fill(log)
        log.roll()
    world.is_held = True
    world.cleaner.look()
    for log in logs:
        compact_no_more(log)
    steps, world.is_held = world.steps, False
    assert steps is not None
    assert list(steps) == []
    assert not world.cleaner.is_running
    world.close()


def test_after_close_nothing_is_begun(world: World) -> None:
    log = world.log()
    fill(log)
    log.roll()
    world.cleaner.close()
    world.cleaner.look()
    assert not world.cleaner.is_running
    assert len(values_of(log)) == 10


def test_a_round_that_ended_as_the_broker_stopped_writes_nothing(world: World) -> None:
    """Its directories may be another broker's by the time the loop hears of it."""
    log = world.log()
    fill(log)
    log.roll()
    world.cleaner.look()
    world.calls.get(timeout=WAIT_S)()  # the swap
    ended = world.calls.get(timeout=WAIT_S)
    world.cleaner.close()
    checkpoint = Path(world.manager.directories[0].path, names.CLEANER_OFFSETS)
    old_text = checkpoint.read_text()
    ended()
    assert checkpoint.read_text() == old_text
    assert world.armed_ms == []


def test_the_logs_of_a_directory_that_fails_in_a_look_are_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them finds out; the others' files are not changed any more."""
    logs = [world.log(topic) for topic in ("a", "b")]
    for log in logs:
        fill(log)
        log.roll()
        log.advance_log_start(10)
    directory = world.manager.directories[0].path
    refusal = StorageError("gone", log_directory=directory, cause=OSError(5, "Input/output error"))

    def refuse(log: PartitionLog) -> int:
        if log is logs[0]:
            raise refusal
        return log.log_end_offset

    monkeypatch.setattr(world.manager, "high_watermark_of", refuse)
    monkeypatch.setattr(
        world.cleaner, "_on_failure", lambda _: world.manager.fail_directory(directory)
    )
    world.cleaner.look()
    assert not world.cleaner.is_running
    assert [log.segments.base_offsets for log in logs] == [[0, 10], [0, 10]]


def test_retention_of_compacted_logs_is_done_here(tmp_path: Path) -> None:
    world = World(tmp_path / "data", retention_ms=-1)
    log = world.log()
    fill(log)
    log.roll()
    fill(log)
    log.advance_log_start(10)
    world.look()
    assert log.segments.base_offsets[0] == 10
    world.close()


def test_truncation_takes_the_clean_offset_back(world: World) -> None:
    log = world.log()
    fill(log)
    log.roll()
    world.look()
    assert log.clean_offset == 10
    log.truncate_to(4)
    assert log.clean_offset == 4


def test_a_log_that_is_cut_behind_the_last_swap_is_not_taken_for_clean(world: World) -> None:
    """A follower's log grows anew before the loop hears that the round has ended."""
    log = world.log()
    fill(log)
    log.roll()
    world.cleaner.look()
    world.calls.get(timeout=WAIT_S)()  # the swap
    ended = world.calls.get(timeout=WAIT_S)
    log.truncate_to(5)
    for number in range(5):
        put(log, (b"b", b"%d" % number))
    log.roll()
    ended()
    world.turn_until_done()
    assert values_of(log) == [b"4"]
    assert log.clean_offset == 10


class CuttingFiles(Files):
    """Files of a round during whose first read the log is cut."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self.is_cut = False

    def pread(self, fd: int, size: int, position: int) -> bytes:  # type: ignore[override]
        if not self.is_cut:
            self.is_cut = True
            self._log.truncate_to(5)
        return super().pread(fd, size, position)


def test_a_log_that_is_cut_while_it_is_read_is_not_set_aside(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round takes its file for a damaged one, which ends too early."""
    log = world.log()
    fill(log)
    log.roll()
    files = CuttingFiles(log)
    monkeypatch.setattr(world.manager.disk, "files", files)
    world.cleaner.look()
    ended = world.calls.get(timeout=WAIT_S)
    assert files.is_cut
    log.roll()
    ended()
    world.turn_until_done()
    assert list(world.cleaner.uncleanable().values()) == [(0, 0)]
    assert values_of(log) == [b"4"]


def test_a_look_is_made_in_steps_of_one_log(tmp_path: Path) -> None:
    """Between two steps the loop serves clients; logs may go meanwhile, and be appended to."""
    world = World(tmp_path)
    logs = [world.log(f"t{number}") for number in range(3)]
    for log in logs:
        put(log, (b"a", b"1"))
        put(log, (b"a", b"2"))
        log.roll()
    world.is_held = True
    world.cleaner.look()
    assert world.steps is not None
    assert not world.cleaner.is_running
    assert (
        world.manager.delete("t0", 0, MARKED) is not None
    )  # it was looked at: as dirty as the others
    put(logs[1], (b"a", b"3"))
    world.cleaner.look()  # noted, for after this one
    steps, world.is_held = world.steps, False
    for _ in steps:
        pass
    world.turn_until_done()
    assert values_of(logs[1]) == [b"2", b"3"]
    assert values_of(logs[2]) == [b"2"]
    assert world.failures == []
    world.close()


def test_nothing_is_begun_by_a_look_that_a_stop_meets(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number in range(2):
        log = world.log(f"t{number}")
        put(log, (b"a", b"1"))
        put(log, (b"a", b"2"))
        log.roll()
    world.is_held = True
    world.cleaner.look()
    world.cleaner.close()
    assert world.steps is not None
    assert list(world.steps) == []
    assert not world.cleaner.is_running
    abandon(world.manager)


def test_kafkas_defaults() -> None:
    assert cleaner_settings(BrokerConfig()) == CleanerSettings(
        True, 134217728, 0.9, 524288, 1.7976931348623157e308, 15000, 1000, 300000
    )


def test_it_is_off_without_threads_too() -> None:
    assert not cleaner_settings(BrokerConfig({"log.cleaner.threads": "0"})).is_enabled
    assert not cleaner_settings(BrokerConfig({"log.cleaner.enable": "false"})).is_enabled


def test_metrics_have_kafkas_names() -> None:
    metrics = CleanerMetrics(1000)
    metrics.map_utilization, metrics.recopy_ratio, metrics.dirty_ratio_max = 0.5, 0.25, 0.75
    metrics.last_round_s, metrics.max_delay_ms = 3.9, 2500
    assert metrics.by_name(1234) == {
        "max-buffer-utilization-percent": 50,
        "cleaner-recopy-percent": 25,
        "max-clean-time-secs": 3,
        "max-compaction-delay-secs": 2,
        "max-dirty-percent": 75,
        "time-since-last-run-ms": 234,
        "DeadThreadCount": 0,
    }
