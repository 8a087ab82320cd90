"""Leader epochs of batches before the first epoch that a log knows, read from the batches.

Needed by a start after a crash. Retention cuts the epochs with the log and stores them at once; the
names of the deleted segments are synced later. A power cut between the two brings segments back
whose epochs are forgotten. The name of a new checkpoint can be lost, too.

Differs from Kafka, whose LogLoader adds epochs behind the recovery point only: to a follower it
names no epoch for such records.
"""

from typing import TYPE_CHECKING

from minibroker.broker.storage.checked_batches import checked_batches
from minibroker.broker.storage.epochs import LeaderEpochs

if TYPE_CHECKING:
    from minibroker.broker.storage.disk import Disk
    from minibroker.broker.storage.segment import Segment
    from minibroker.broker.storage.segments import Segments


def with_earlier_epochs(
    disk: "Disk", segments: "Segments", known: LeaderEpochs, *, start_offset: int, end_offset: int
) -> LeaderEpochs:
    """Return `known` with the epochs of the batches before it; `known` itself where it reaches back
    to the log's start, or where these batches have none.

    `start_offset`, `end_offset`: of the log. Reads batch headers only, and of a log that has
    messages of formats 0 or 1 there at most the segment with the last of them. Raises OSError.
    """
    entries = known.entries
    until = min(entries[0][1], end_offset) if entries else end_offset
    if until <= start_offset:
        return known
    earlier: list[tuple[int, int]] = []
    for segment in reversed(segments.since(start_offset)):
        if segment.base_offset < until:
            found, has_old_formats = _epochs_in(disk, segment, start_offset, until)
            earlier = [*found, *earlier]
            if has_old_formats:
                break  # these formats have no epochs, and an append of one ends the history
    if not earlier:
        return known
    whole = LeaderEpochs()
    for epoch, first_offset in (*earlier, *entries):
        whole.assign(epoch, first_offset)
    return whole


def _epochs_in(
    disk: "Disk", segment: "Segment", start_offset: int, until: int
) -> tuple[list[tuple[int, int]], bool]:
    """Return (epoch, first offset) of the batches of a segment from `start_offset` to `until`, and
    whether there are messages of formats 0 or 1; then only of the batches behind them.
    """
    found: list[tuple[int, int]] = []
    has_old_formats = False
    batches = checked_batches(
        disk,
        segment.log_path,
        0,
        segment.size_bytes,
        expected_offset=segment.base_offset,
        max_offset=segment.max_offset,
        trusted_below=until,
    )
    for _, fields in batches:
        base_offset, epoch, magic, last_offset = (
            fields[0],
            fields[2],
            fields[3],
            fields[0] + fields[6],
        )
        if base_offset >= until:
            break
        if last_offset < start_offset:
            continue
        if magic < 2:
            found.clear()
            has_old_formats = True
        elif epoch >= 0 and (not found or epoch > found[-1][0]):
            found.append((epoch, max(base_offset, start_offset)))
    return found, has_old_formats
