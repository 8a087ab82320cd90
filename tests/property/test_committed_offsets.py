"""Committed offsets against a plain model, with restarts at any point.

Offsets never go back unless a client asked for it. Offsets of a transaction are invisible before
its marker, then all are visible at once. The log behind the store is a list of batches; a restart
replays it into a fresh store, as a load does.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from minibroker.broker.groups.offsets import CommittedOffset, OffsetStore
from minibroker.broker.groups.records import decode_record, encode_offset_key, encode_offset_value
from minibroker.kafka.ids import NO_PRODUCER_ID

KEYS = st.tuples(st.sampled_from(["g", "h"]), st.sampled_from(["t", "u"]), st.integers(0, 1))
PRODUCERS = st.integers(1, 3)
OFFSETS = st.integers(0, 2**40)


class CommittedOffsets(RuleBasedStateMachine):
    """The store under test, the log that made it, and the offsets that a client should see."""

    def __init__(self) -> None:
        super().__init__()
        self.store = OffsetStore()
        self.log: list[tuple[int, list[tuple[bytes, bytes | None]]] | tuple[int, bool]] = []
        self.next_offset = 0
        self.visible: dict[tuple[str, str, int], tuple[int, int]] = {}
        """Key → (offset, place in the log)."""
        self.pending: dict[int, dict[tuple[str, str, int], tuple[int, int]]] = {}

    def _write(self, producer_id: int, records: list[tuple[bytes, bytes | None]]) -> None:
        self.log.append((producer_id, records))
        self._replay(self.store, producer_id, records, self.next_offset)
        self.next_offset += len(records)

    @staticmethod
    def _replay(
        store: OffsetStore,
        producer_id: int,
        records: list[tuple[bytes, bytes | None]],
        first_offset: int,
    ) -> None:
        for record_offset, (key, value) in enumerate(records, first_offset):
            entry = decode_record(key, value, record_offset)
            assert entry is not None
            store.replay(entry.key, entry.value, producer_id)

    @rule(commits=st.dictionaries(KEYS, OFFSETS, min_size=1, max_size=3))
    def commit(self, commits: dict[tuple[str, str, int], int]) -> None:
        """Commit offsets: the last commit counts."""
        for place, (key, offset) in enumerate(commits.items(), self.next_offset):
            self.visible[key] = offset, place
        self._write(NO_PRODUCER_ID, _records(commits))

    @rule(producer_id=PRODUCERS, commits=st.dictionaries(KEYS, OFFSETS, min_size=1, max_size=3))
    def commit_in_transaction(
        self, producer_id: int, commits: dict[tuple[str, str, int], int]
    ) -> None:
        offsets = self.pending.setdefault(producer_id, {})
        for place, (key, offset) in enumerate(commits.items(), self.next_offset):
            offsets[key] = offset, place
        self._write(producer_id, _records(commits))

    @rule(producer_id=PRODUCERS, is_commit=st.booleans())
    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        for key, (offset, place) in self.pending.pop(producer_id, {}).items():
            if is_commit and self.visible.get(key, (0, -1))[1] < place:
                self.visible[key] = offset, place
        self.log.append((producer_id, is_commit))
        self.next_offset += 1
        self.store.complete_transaction(producer_id, is_commit=is_commit)

    @rule(key=KEYS)
    def delete(self, key: tuple[str, str, int]) -> None:
        self.visible.pop(key, None)
        for offsets in self.pending.values():
            offsets.pop(key, None)
        self._write(NO_PRODUCER_ID, [(encode_offset_key(*key), None)])

    @rule()
    def restart(self) -> None:
        store = OffsetStore()
        offset = 0
        for producer_id, event in self.log:
            if isinstance(event, bool):
                store.complete_transaction(producer_id, is_commit=event)
                offset += 1
            else:
                self._replay(store, producer_id, event, offset)
                offset += len(event)
        self.store = store

    @invariant()
    def everybody_sees_what_was_committed(self) -> None:
        for group_id in ("g", "h"):
            for topic in ("t", "u"):
                for partition in (0, 1):
                    key = group_id, topic, partition
                    stored = self.store.get(*key)
                    expected = self.visible.get(key)
                    assert (None if stored is None else stored.offset) == (
                        None if expected is None else expected[0]
                    )
                    is_held = any(key in offsets_of_id for offsets_of_id in self.pending.values())
                    assert self.store.has_pending(*key) is is_held
        assert self.store.committed_count == len(self.visible)


def _records(commits: dict[tuple[str, str, int], int]) -> list[tuple[bytes, bytes | None]]:
    return [
        (encode_offset_key(*key), encode_offset_value(CommittedOffset(offset, -1, "", 0)))
        for key, offset in commits.items()
    ]


CommittedOffsets.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestCommittedOffsets = CommittedOffsets.TestCase
