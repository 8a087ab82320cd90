"""The last step of a round: compacted segments take the place of those they were made from.

A round leaves finished `….cleaned` files. This gives them their names in an order in which a crash
at any step leaves something that a start completes or undoes (`storage.segment_files`), and changes
the log's list of segments with it.

Source: Kafka LocalLog.replaceSegments.
"""

from collections.abc import Sequence

from minibroker.broker.storage import segment_files
from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.segment import Segment
from minibroker.broker.storage.tasks import SyncDirectoryTask


def replace_segments(log: PartitionLog, cleaned: Sequence[int], old: Sequence[Segment]) -> bool:
    """Put finished `….cleaned` files in the place of the closed segments `old`. On the loop.

    `cleaned`: base offsets of the files, which are synced; the first is that of the first old
    segment. Readers see the new ones when this returns, the old files go after
    `file.delete.delay.ms`. False, and nothing but the `.cleaned` files goes, where one of the old
    segments is not in service any more. Raises StorageError; everything is as it was then. Raises
    HalfChangedError where it is not, and a start has to complete it.
    """
    assert log.active_segment not in old, f"{log.name}: the active segment is not compacted"
    in_service = set(map(id, log.segments))
    disk, directory = log.disk, log.directory
    fresh = [log.new_segment(base_offset) for base_offset in cleaned]
    try:
        if not all(id(segment) in in_service for segment in old):
            segment_files.remove_cleaned(disk, directory, cleaned)
            return False
        try:
            segment_files.cleaned_to_swap(disk.files, directory, cleaned)
        except OSError:
            segment_files.remove_cleaned(disk, directory, cleaned)
            raise
    except OSError as error:
        raise log.place.failed("replace segments of", error) from error
    with log.place.whole_change("replace segments of"):
        replaced = [segment for segment in old if segment.base_offset in cleaned]
        merged = [segment for segment in old if segment.base_offset not in cleaned]
        paths = segment_files.mark_deleted(disk, directory, replaced, with_snapshots=False)
        paths += segment_files.mark_deleted(disk, directory, merged)
        segment_files.swap_to_service(disk.files, directory, cleaned)
        log.segments.replace(old, fresh)
        assert log.check_invariant()
    disk.run_later(SyncDirectoryTask(log.place))
    segment_files.remove_later(disk, paths, log.config.file_delete_delay_ms)
    return True
