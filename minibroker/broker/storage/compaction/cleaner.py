"""When and where logs are compacted: looks for the dirtiest one, runs a round on its own thread.

Belongs to the loop's thread, as the logs do: a round is planned here, and the swap of its segments
comes back here. Between the two a thread reads and writes files; it is started for a round and ends
with it, so a broker with nothing to compact has none. One round runs at a time, whatever
`log.cleaner.threads` says (0: none does): two would share one interpreter.

    look ─► Round ─► thread: Cleaning ─► swap, on the loop ─► … ─► look

Kafka looks every `log.cleaner.backoff.ms`. Here nothing is looked at while nothing changes: who
appends has `look` called some time after, and it calls itself again while time alone may make a log
due. A look also does for compacted logs what retention does for the others, as Kafka's cleaner.

`minibroker.log.cleaner.idle.ms` is ours, for a broker on a desk: Kafka compacts no record before
its segment is full or `segment.ms` old, which takes a week by default. Here a compacted log that
got no record for so long begins a new segment, if with the old one `min.cleanable.dirty.ratio` is
passed; 0 leaves that out, and then only the segments that Kafka would close are compacted.

A log whose bytes are no log is set aside until the next start ("uncleanable"), the others go on. A
disk that refuses is reported to who owns the directories; the round is tried again later.

Source: Kafka LogCleaner, LogCleanerManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from minibroker.broker.storage import retention
from minibroker.broker.storage.compaction.cleaner_settings import CleanerMetrics, CleanerSettings
from minibroker.broker.storage.compaction.cleaning import Round
from minibroker.broker.storage.compaction.round_thread import CallSoon, RoundEnd, RoundThread
from minibroker.broker.storage.compaction.selection import Candidate, LogFacts, candidate_of
from minibroker.broker.storage.compaction.survivors import LastRecord
from minibroker.broker.storage.log_manager import LogManager
from minibroker.broker.storage.open_files import ColdError
from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.clock import Clock
from minibroker.kafka.errors import CorruptionError, HalfChangedError, MinibrokerError, StorageError
from minibroker.kafka.ids import TopicPartition

logger = logging.getLogger(__name__)

_NEVER_MS: Final = 1 << 62
"""`max.compaction.lag.ms` from here on is no limit."""
_NOTHING: Final = Candidate(0, 0, 0, 0, is_reset=False, delay_ms=0)


class Cancellable(Protocol):
    """A timer that was asked for."""

    def cancel(self) -> None: ...


class LogCleaner:
    """Compacts the logs of a `LogManager`; made and used on the loop's thread."""

    def __init__(
        self,
        logs: LogManager,
        *,
        clock: Clock,
        settings: Callable[[], CleanerSettings],
        run_after: Callable[[int, Callable[[], None]], Cancellable],
        call_soon: CallSoon,
        run_in_slices: Callable[[Iterator[object]], None],
        on_failure: Callable[[StorageError], None] | None = None,
    ) -> None:
        """`run_after` gets a delay (ms) and a call for the loop. `run_in_slices` runs a generator
        to its end, a slice at a time (`minibroker.broker.slices`).

        `on_failure` is told of a disk that refused.
        """
        self._logs = logs
        self._clock = clock
        self._settings = settings
        self._run_after = run_after
        self._call_soon = call_soon
        self._run_in_slices = run_in_slices
        self._on_failure = on_failure
        self._timer: Cancellable | None = None
        self._round: RoundThread | None = None
        self._is_closed = False
        self._is_looking = False
        self._is_wanted_again = False
        # Was another look asked for while one is under way?
        self._uncleanable: dict[TopicPartition, PartitionLog] = {}
        # Where a log ended when it was looked at, and when (monotonic seconds).
        self._last_ends: dict[TopicPartition, tuple[int, float]] = {}
        self.metrics = CleanerMetrics(clock.now_ms())

    def _arm(self, delay_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._run_after(delay_ms, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self.look()

    def look(self) -> None:
        """Begin a round over the dirtiest log that is due; without one, look again if it is only
        time that is missing. The logs are looked at in slices, so a round may begin later.
        """
        settings = self._settings()
        if self._round is not None or self._is_closed or not settings.is_enabled:
            return
        self._is_wanted_again = self._is_looking
        if not self._is_looking:
            self._is_looking = True
            self._run_in_slices(self._look(settings))

    def _look(self, settings: CleanerSettings) -> Iterator[None]:
        """Look at the logs, in steps of one log; at the end a round begins, or the timer."""
        now_ms = self._clock.now_ms()
        self.metrics.last_run_ms = now_ms
        look = _Look(now_ms)
        self._forget_gone()
        is_first = True
        try:
            for log in [log for log in self._logs.logs.values() if log.config.compact]:
                if not is_first:
                    yield
                    if self._is_closed:
                        return
                is_first = False
                # Meanwhile it may be gone, or another one of that name.
                if log.name not in self._uncleanable and _is_compacted(log):
                    self._consider(log, settings, look)
        finally:
            self._is_looking = False
        self.metrics.dirty_ratio_max = look.dirty_ratio_max
        dirtiest = look.dirtiest
        if self._is_wanted_again or (dirtiest is not None and not _is_compacted(dirtiest)):
            self.look()  # an append came, or the producers of a log, or the dirtiest log went
        elif dirtiest is None:
            if look.again_ms:
                self._arm(min(look.again_ms))
        elif not self._begin(dirtiest, settings, now_ms):
            self._arm(settings.backoff_ms)

    def _forget_gone(self) -> None:
        """Forget logs that were deleted, perhaps made again: they are judged anew."""
        logs = self._logs.logs
        self._uncleanable = {
            name: log for name, log in self._uncleanable.items() if logs.get(name) is log
        }
        self._last_ends = {
            name: last_end for name, last_end in self._last_ends.items() if name in logs
        }

    def uncleanable(self) -> dict[str, tuple[int, int]]:
        """Log directory → how many partitions are set aside there, and their dirty bytes."""
        totals = {live_directory.path: (0, 0) for live_directory in self._logs.live_directories}
        for log in self._uncleanable.values():
            count, dirty_bytes = totals.get(log.log_directory, (0, 0))
            segments = log.segments.since(max(log.clean_offset or 0, log.log_start_offset))
            closed = [
                segment.size_bytes for segment in segments if segment is not log.active_segment
            ]
            totals[log.log_directory] = count + 1, dirty_bytes + sum(closed)
        return totals

    def _consider(self, log: PartitionLog, settings: CleanerSettings, look: _Look) -> None:
        """Note in `look` whether this log is due, or when to ask again."""
        try:
            candidate = self._candidate(log, settings, look)
        except ColdError as cold:
            cold.load(self.look)  # its producers, to know what is stable
        except (MinibrokerError, OSError) as error:
            self._judge(log, error)
            look.again_ms.append(settings.backoff_ms)
        else:
            is_due = candidate.is_worth_it(log.config.min_cleanable_dirty_ratio)
            look.note(log, candidate.dirty_ratio, is_due=is_due)

    def _candidate(self, log: PartitionLog, settings: CleanerSettings, look: _Look) -> Candidate:
        """Return the round that is possible over this log. Raises ColdError, StorageError,
        OSError.
        """
        config, now_ms, again_ms = log.config, look.now_ms, look.again_ms
        if retention.delete_old_segments(log, self._logs.high_watermark_of(log), now_ms):
            again_ms.append(0)
        elif retention.may_expire(log):
            again_ms.append(settings.retention_check_ms)
        if log.log_end_offset in {log.clean_offset, log.log_start_offset}:
            self._last_ends.pop(log.name, None)
            return _NOTHING  # the usual, found without a look at producers and segments
        log.producers.require()
        facts = self._facts_of(log)
        candidate = candidate_of(facts, now_ms)
        if candidate.is_reset:
            log.note_cleaned(candidate.first_dirty_offset)
        if candidate.is_worth_it(config.min_cleanable_dirty_ratio):
            self._last_ends.pop(log.name, None)
            return candidate
        if candidate.first_dirty_offset >= log.log_end_offset:
            self._last_ends.pop(log.name, None)
            return candidate
        has_lags = config.min_compaction_lag_ms > 0 or config.max_compaction_lag_ms < _NEVER_MS
        if has_lags and candidate.first_dirty_offset < log.active_segment.base_offset:
            again_ms.append(settings.backoff_ms)
        if settings.idle_ms and self._would_be_due(facts, now_ms):
            wait_ms = self._idle_wait_ms(log, settings.idle_ms)
            if wait_ms > 0:
                again_ms.append(wait_ms)
            else:
                log.roll()
                self._last_ends.pop(log.name, None)
                return candidate_of(self._facts_of(log), now_ms)
        return candidate

    def _facts_of(self, log: PartitionLog) -> LogFacts:
        config = log.config
        return LogFacts(
            list(log.segments),
            log.log_start_offset,
            log.log_end_offset,
            min(log.last_stable_offset, self._logs.high_watermark_of(log)),
            log.clean_offset,
            config.min_compaction_lag_ms,
            config.max_compaction_lag_ms,
            config.min_cleanable_dirty_ratio,
        )

    def _would_be_due(self, facts: LogFacts, now_ms: int) -> bool:
        """Return whether the log were due if its active segment were closed."""
        if facts.stable_end < facts.log_end_offset or facts.segments[-1].size_bytes == 0:
            return False
        behind = _End(facts.log_end_offset)
        closed = candidate_of(facts._replace(segments=[*facts.segments, behind]), now_ms)
        # What is too young to be compacted stays where it is.
        reaches_end = closed.end_offset == facts.log_end_offset
        return reaches_end and closed.is_worth_it(facts.min_dirty_ratio)

    def _idle_wait_ms(self, log: PartitionLog, idle_ms: int) -> int:
        """Return how much longer nothing may come before the log counts as idle."""
        now_s = self._clock.monotonic_s()
        end_offset, since_s = self._last_ends.get(log.name, (-1, now_s))
        if end_offset != log.log_end_offset:
            since_s = now_s
            self._last_ends[log.name] = log.log_end_offset, now_s
        return int(max(0.0, since_s + idle_ms / 1000 - now_s) * 1000 + 0.5)

    def _set_aside(self, log: PartitionLog, error: Exception) -> None:
        logger.error("%s is not compacted any more before the next start: %s", log.name, error)
        self._uncleanable[log.name] = log

    def _begin(self, log: PartitionLog, settings: CleanerSettings, now_ms: int) -> bool:
        """Begin a round over this log, as it is now; False where it cannot be begun."""
        try:
            candidate = candidate_of(self._facts_of(log), now_ms)
            work = plan_round(log, candidate, now_ms)
        except (MinibrokerError, OSError) as error:
            self._judge(log, error)
            return False
        self.metrics.max_delay_ms = candidate.delay_ms
        self._round = RoundThread(
            work,
            settings,
            clock=self._clock,
            files=self._logs.disk.files,
            call_soon=self._call_soon,
            worker=self._logs.disk.of(log.log_directory).worker,
            on_end=self._ended,
        )
        self._round.start()
        return True

    def _ended(self, end: RoundEnd) -> None:
        """Take note, on the loop, that the round is over. Its result counts no more when the logs
        are closed, nor for a log that was cut behind the last swap: it may have other records.
        """
        if self._is_closed:
            return
        if self._round is not None:
            self._round.join()
            self._round = None
        log = end.work.log
        if end.end_offset is not None and end.work.is_current:
            log.note_cleaned(end.end_offset)
            self._logs.checkpoint_cleaned_later(log)
            self._note_round(end, end.end_offset)
        if end.end_offset is not None or not end.work.is_current:
            self.look()  # an error is none of the log as it is now
            return
        if end.error is not None:
            self._judge(log, end.error)
        self._arm(self._settings().backoff_ms)

    def _judge(self, log: PartitionLog, error: Exception) -> None:
        """Set a log aside for its own error, or wait for its disk.

        An error of the disk may pass or last.
        """
        cause = error.__cause__ if isinstance(error, StorageError) else error
        if not isinstance(cause, OSError) and not isinstance(error, HalfChangedError):
            if not isinstance(cause, CorruptionError):
                logger.error("compaction of %s failed", log.name, exc_info=error)
            self._set_aside(log, error)
            return
        if isinstance(error, StorageError):
            failure = error
        else:
            failure = StorageError(
                f"cannot compact {log.name} in {log.directory}: {error}",
                log_directory=log.log_directory,
                cause=error,
            )
        self._logs.note_refusal(f"compaction of {log.name}", failure)
        if self._on_failure is not None:
            self._on_failure(failure)

    def _note_round(self, end: RoundEnd, end_offset: int) -> None:
        metrics, stats = self.metrics, end.stats
        metrics.round_count += 1
        metrics.last_round_s = end.elapsed_s
        metrics.map_utilization = stats.map_utilization
        metrics.recopy_ratio = stats.bytes_written / max(stats.bytes_read, 1)
        logger.info(
            "compacted %s, offsets %d to %d: %d bytes became %d, %d records became %d, in %.1f s",
            end.work.log.name,
            end.work.first_dirty_offset,
            end_offset,
            stats.bytes_read,
            stats.bytes_written,
            stats.read_count,
            stats.kept_count,
            end.elapsed_s,
        )
        if stats.invalid_count:
            logger.warning(
                "%d records without a key were dropped from %s",
                stats.invalid_count,
                end.work.log.name,
            )

    @property
    def is_running(self) -> bool:
        return self._round is not None

    def close(self) -> None:
        """Stop a round that runs and wait for its thread; nothing is begun any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._round is not None:
            self._round.stop()
            self._round = None


def _is_compacted(log: PartitionLog) -> bool:
    """Return whether a log is in service, and its topic is compacted: a look takes a while."""
    return log.config.compact and not log.place.is_deleted


class _Look:
    """One look at the logs: the dirtiest one that is due, and when to look again."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.again_ms: list[int] = []
        self.dirty_ratio_max = 0.0
        self.dirtiest: PartitionLog | None = None
        self._dirtiest_ratio = 0.0

    def note(self, log: PartitionLog, dirty_ratio: float, *, is_due: bool) -> None:
        """Note the dirty share of a log."""
        self.dirty_ratio_max = max(self.dirty_ratio_max, dirty_ratio)
        if is_due and (self.dirtiest is None or dirty_ratio > self._dirtiest_ratio):
            self.dirtiest, self._dirtiest_ratio = log, dirty_ratio


class _End:
    """Stands behind the active segment, where the next one would begin."""

    size_bytes = 0
    max_timestamp = first_timestamp = -1

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset


def plan_round(log: PartitionLog, candidate: Candidate, now_ms: int) -> Round:
    """Return a round's facts of the log, which may change meanwhile. Raises StorageError, OSError.

    Called on the log's thread.
    """
    segments = [segment for segment in log.segments if segment.base_offset < candidate.end_offset]
    start = candidate.first_dirty_offset
    floor = log.segments.floor(start)
    last_records = {
        producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else -1, entry.epoch)
        for producer_id, entry in log.producers.loaded().producers.items()
    }
    position = 0 if floor is None else floor.offset_index.lookup(start)[1]
    return Round(
        log,
        segments,
        start,
        candidate.end_offset,
        position,
        last_records,
        now_ms,
        log.place.generation,
    )
