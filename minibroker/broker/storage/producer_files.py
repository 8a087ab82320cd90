"""Producer state on disk: `<offset>.snapshot` files, and the replay of what lies behind the newest.

A snapshot holds the state of every producer up to (not including) the offset in its name. One is
written at every roll (for the new segment's base offset) and at a clean close (for the log end).
Loading takes the newest that is whole and not beyond the log's end, and replays the batch headers
behind it. A partition whose producers nobody asks for loads nothing.

Source: Kafka ProducerStateManager, UnifiedLog.rebuildProducerState; FORMAT.md section 5.
"""

from __future__ import annotations

import logging
from typing import Final

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.producer_state import (
    CompletedTransaction,
    ProducerState,
    parse_snapshot,
)
from minibroker.broker.storage.segment import Segment, Segments
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import BatchHeader
from minibroker.kafka.records.control import read_marker

logger = logging.getLogger(__name__)

_NEVER_MS: Final = 1 << 62


def snapshot_path(directory: str, offset: int) -> str:
    """Return the path of the snapshot up to (not including) `offset`."""
    return f"{directory}/{names.segment_file(offset, names.SNAPSHOT)}"


def snapshot_offsets(files: Files, directory: str) -> list[int]:
    """Return the offsets of the snapshots in the directory, ascending. Raises OSError."""
    return offsets_in(files.list_files(directory))


def offsets_in(file_names: list[str]) -> list[int]:
    """Return the offsets of the snapshots among these names, ascending."""
    offsets = []
    for name in file_names:
        if name.endswith(names.SNAPSHOT):
            offset = names.base_offset_of(name)
            if offset is not None:
                offsets.append(offset)
    return sorted(offsets)


def write_content(files: Files, path: str, content: bytes) -> None:
    """Make `content` all that is in a snapshot. Not synced; a torn one is found by its CRC.

    Hold the log's `names_lock`: a worker must not write one for records that the loop has
    truncated, nor into the directory of a namesake. Raises OSError.
    """
    handle = files.open(path, create=True)
    try:
        files.truncate(handle, 0)
        files.write_all(handle, [content], 0)
    finally:
        files.close(handle)


def remove_snapshots(files: Files, directory: str, offsets: list[int]) -> None:
    """Remove the snapshots of these offsets; absent ones are passed by. Raises OSError."""
    for offset in offsets:
        try:
            files.remove(snapshot_path(directory, offset))
        except FileNotFoundError:
            continue  # removed by hand meanwhile: what was wanted


def load_state(
    files: Files,
    directory: str,
    segments: Segments,
    *,
    state: ProducerState,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
    expiration_ms: int,
) -> None:
    """Bring `state` to what it was at `end_offset`. Raises CorruptionError for the log, OSError.

    Where a snapshot is damaged, the one before it is taken. Nothing is changed on the disk, so any
    thread may call this with segments of its own.

    A producer expires by the timestamps of its records. Those may be old in records that came just
    now, and the producer may send them again. So none expires here while the log was written to
    within `expiration_ms`: the next look at expired producers is after the start.
    """
    state.clear()
    if now_ms - segments.last.modified_ms < expiration_ms:
        expiration_ms = _NEVER_MS
    replay_from = log_start_offset
    for offset in reversed(snapshot_offsets(files, directory)):
        if offset > end_offset:
            continue
        if offset < log_start_offset:
            break
        path = snapshot_path(directory, offset)
        try:
            state.load_snapshot(files.read_all(path), offset, now_ms, expiration_ms)
        except FileNotFoundError:
            continue  # superseded by a newer one, and removed meanwhile
        except CorruptionError as error:
            logger.warning("producer snapshot %s is left out: %s", path, error)
            continue
        replay_from = offset
        break
    if replay_from < end_offset:
        replay(segments, state, replay_from, end_offset)
    state.commit()


def replay(segments: Segments, state: ProducerState, start: int, end: int) -> None:
    """Note every batch with a producer id from offset `start` up to `end`. The batches behind it
    are not looked at: recovery may still have to cut it.
    """
    for segment in segments.since(start):
        if segment.base_offset >= end:
            return
        wanted_offset = max(start, segment.base_offset)
        batch = segment.find_batch(wanted_offset, segment.peek_position(wanted_offset))
        if batch is None:
            continue
        for position, header in segment.headers(batch[0]):
            if header.base_offset >= end:
                return
            if header.producer_id >= 0:
                note_batch(state, segment, position, header)
            if header.last_offset + 1 >= end:
                return


def note_batch(
    state: ProducerState, segment: Segment, position: int, header: BatchHeader
) -> CompletedTransaction | None:
    """Note one stored batch that has a producer id; the transaction it ended, if it did."""
    if not header.is_control:
        state.append(header, "replication")
        return None
    marker = read_marker(segment.read(position, header.size_bytes))
    if marker is None:
        return None
    return state.append_marker(header, marker, "replication")


def remove_damaged(files: Files, directory: str, offsets: list[int], synced_to: int) -> list[int]:
    """Remove the snapshots from offset `synced_to` on that a crash tore. Return the offsets of the
    others. Raises OSError.

    The one at `synced_to` can be torn, too: a roll wrote it after the records were synced.
    """
    damaged = []
    for offset in offsets:
        if offset >= synced_to:
            path = snapshot_path(directory, offset)
            try:
                parse_snapshot(files.read_all(path))
            except CorruptionError as error:
                logger.warning("producer snapshot %s is removed: %s", path, error)
                damaged.append(offset)
    remove_snapshots(files, directory, damaged)
    return [offset for offset in offsets if offset not in damaged]


def remove_strays(
    files: Files,
    directory: str,
    offsets: list[int],
    *,
    base_offsets: list[int],
    recovery_point: int,
    end_offset: int,
) -> list[int]:
    """Remove snapshots that nothing needs, of those at `offsets` (ascending). Return the others.

    These stay: snapshots at the start of a segment, the newest one up to the recovery point (the
    next start after a kill begins there), and the newest one up to the log's end. Raises OSError.
    """
    if not offsets:
        return offsets
    needed_offsets = {offset for offset in base_offsets if offset <= end_offset}
    for limit in (min(recovery_point, end_offset), end_offset):
        needed_offsets.add(max((offset for offset in offsets if offset <= limit), default=-1))
    remove_snapshots(
        files, directory, [offset for offset in offsets if offset not in needed_offsets]
    )
    return [offset for offset in offsets if offset in needed_offsets]
