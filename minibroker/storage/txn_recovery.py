"""Transaction indexes after a crash: made again from the markers in the checked segments.

An abort marker is in the log before its entry is in the index, and the two are different files: a
kill may come between them, a power cut may take either. Without its entry an aborted transaction
would be read as if it were committed. Runs at the end of `recovery`, and only where a checked
segment has markers or an index.

Source: Kafka LogSegment.recover, LogSegment.updateTxnIndex.
"""

from minibroker.records.batch import BatchHeader
from minibroker.storage import producer_files
from minibroker.storage.files import Files
from minibroker.storage.producer_state import ProducerState
from minibroker.storage.segment import Segment
from minibroker.storage.segments import Segments
from minibroker.storage.txn_index import AbortedTransaction, aborted_transaction


def rebuild_txn_indexes(
    files: Files,
    directory: str,
    segments: Segments,
    recovered: list[Segment],
    *,
    state: ProducerState,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
    expiration_ms: int,
) -> None:
    """Make the transaction indexes of the segments `recovered` (the newest ones of `segments`) say
    what their markers say; `state` is a fresh one, and used up. Raises CorruptionError, OSError.
    """
    begin = max(recovered[0].base_offset, log_start_offset)
    producer_files.load_state(
        files,
        directory,
        segments,
        state=state,
        log_start_offset=log_start_offset,
        end_offset=begin,
        now_ms=now_ms,
        expiration_ms=expiration_ms,
    )
    for segment in recovered:
        segment.txn_index.replace(_aborted_in(segment, state, begin, log_end_offset))


def _aborted_in(
    segment: Segment, state: ProducerState, begin: int, end: int
) -> list[AbortedTransaction]:
    """What the abort markers of a segment ended, as far as it is between the offsets."""
    found: list[AbortedTransaction] = []
    for position, header in segment.headers():
        if header.last_offset < begin or not _has_producer(header):
            continue
        if header.base_offset >= end:
            break
        completed = producer_files.note_batch(state, segment, position, header)
        state.on_high_watermark(header.last_offset + 1)
        if completed is not None and completed.is_aborted:
            found.append(aborted_transaction(completed))
    return found


def _has_producer(header: BatchHeader) -> bool:
    return header.magic == 2 and header.producer_id >= 0
