"""One transactional id on a table: commands in, answers and stored states out; no broker around it.

| command                                        | what it is                                     |
|------------------------------------------------|------------------------------------------------|
| cluster version=N                              | `transaction.version`, 2 unless said           |
| init [timeout=MS] [id=N epoch=N]               | InitProducerId, with what the client believes  |
| add PARTITION … id=N epoch=N [v2]              | AddPartitionsToTxn, v2: of the second protocol |
| verify PARTITION … id=N epoch=N                | the broker's question before an append         |
| commit / abort id=N epoch=N [v2]               | EndTxn                                         |
| markers                                        | every partition got its marker                 |
| advance MS                                     | time goes by; what is overdue is aborted       |
| epoch N                                        | as if the epoch had come so far                |
| restart                                        | everything is read again from the journal      |

What is stored is shown as `state id/epoch …`; `->` names what follows when the markers are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.errors import KafkaError
from minibroker.ids import TopicPartition
from minibroker.transactions import state
from minibroker.transactions.records import decode, encode_key, encode_value
from minibroker.transactions.state import ONGOING, PREPARED, TransactionMetadata
from tests.scenario.transcripts import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

START_MS = 1_000
TIMEOUT_MS = 60_000


class TransactionsRig:
    """Plays the coordinator: writes what a step gives, and nothing else."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.version = 2
        self.last_producer_id = 0
        self.metadata: TransactionMetadata | None = None
        self.journal: list[tuple[bytes, bytes | None]] = []
        self.said: list[str] = []

    def __call__(self, command: str) -> list[str]:
        self.said = []
        plain, named = words_of(command)
        play: Callable[[list[str], dict[str, str]], None] = getattr(self, f"_{plain[0]}")
        try:
            play(plain[1:], named)
        except KafkaError as error:
            self.said.append(error.code.name)
        return self.said

    def _new_id(self) -> int:
        self.last_producer_id += 1
        return self.last_producer_id

    def _known(self) -> TransactionMetadata:
        assert self.metadata is not None, "init comes first"
        return self.metadata

    def _store(self, after: TransactionMetadata) -> None:
        self.journal.append((encode_key("t"), encode_value(after, self.version)))
        self.metadata = after
        partitions = " ".join(str(one) for one in sorted(after.partitions))
        line = f"stored: {after.state.title} {after.producer_id}/{after.producer_epoch}"
        if after.next_producer_id >= 0:
            line += f" next={after.next_producer_id}"
        self.said.append(f"{line} [{partitions}]" if partitions else line)

    def _cluster(self, _: list[str], named: dict[str, str]) -> None:
        self.version = int(named["version"])
        self.said.append("ok")

    def _init(self, _: list[str], named: dict[str, str]) -> None:
        expected = (int(named["id"]), int(named["epoch"])) if "id" in named else None
        found = self.metadata
        if found is None:
            found = TransactionMetadata("t", self._new_id())
        elif found.state == ONGOING:
            state.check_initializable(found, expected)
            self._fence(found)
            self.said.append("CONCURRENT_TRANSACTIONS")
            return
        after = state.initialize(
            found,
            timeout_ms=int(named.get("timeout", TIMEOUT_MS)),
            expected=expected,
            new_producer_id=self._new_id() if found.is_epoch_exhausted else -1,
            now_ms=self.now_ms,
        )
        self._store(after)
        self.said.append(f"answer: {after.producer_id}/{after.producer_epoch}")

    def _fence(self, found: TransactionMetadata) -> None:
        needs_id = found.is_epoch_exhausted and self.version >= state.VERSION_OF_EPOCH_BUMP
        self._store(
            state.fence(
                found,
                broker_version=self.version,
                new_producer_id=self._new_id() if needs_id else -1,
                now_ms=self.now_ms,
            )
        )

    def _add(self, plain: list[str], named: dict[str, str]) -> None:
        is_second = "v2" in plain
        names = [_partition(word) for word in plain if word != "v2"]
        after = state.add_partitions(
            self._known(),
            int(named["id"]),
            int(named["epoch"]),
            names,
            client_version=2 if is_second else 0,
            now_ms=self.now_ms,
        )
        if after is None:
            self.said.append("ok, was in it")
        else:
            self._store(after)

    def _verify(self, plain: list[str], named: dict[str, str]) -> None:
        missing = state.partitions_not_added(
            self._known(),
            int(named["id"]),
            int(named["epoch"]),
            [_partition(word) for word in plain],
        )
        self.said.append("not in it: " + " ".join(map(str, missing)) if missing else "ok")

    def _commit(self, plain: list[str], named: dict[str, str]) -> None:
        self._end(plain, named, is_commit=True)

    def _abort(self, plain: list[str], named: dict[str, str]) -> None:
        self._end(plain, named, is_commit=False)

    def _end(self, plain: list[str], named: dict[str, str], *, is_commit: bool) -> None:
        found = self._known()
        is_second = "v2" in plain
        after = state.end(
            found,
            int(named["id"]),
            int(named["epoch"]),
            is_commit=is_commit,
            client_version=2 if is_second else 0,
            new_producer_id=self._new_id() if is_second and found.is_epoch_exhausted else -1,
            now_ms=self.now_ms,
        )
        if after is None:
            self.said.append(f"answer: as before, {found.producer_id}/{found.producer_epoch}")
            return
        self._store(after)
        if is_second:
            then = state.complete(after, self.now_ms)
            self.said.append(f"answer: {then.producer_id}/{then.producer_epoch}")

    def _markers(self, *_: object) -> None:
        found = self._known()
        if found.state in PREPARED:
            self._store(state.complete(found, self.now_ms))

    def _advance(self, plain: list[str], _: dict[str, str]) -> None:
        self.now_ms += int(plain[0])
        if self.metadata is not None and self.metadata.is_overdue(self.now_ms):
            self._fence(self.metadata)

    def _epoch(self, plain: list[str], _: dict[str, str]) -> None:
        self._store(self._known()._replace(producer_epoch=int(plain[0])))

    def _restart(self, *_: object) -> None:
        self.metadata = None
        for key, value in self.journal:
            found = decode(key, value)
            assert found is not None
            self.metadata = found[1]
        known = self._known()
        self.said.append(f"loaded: {known.state.title} {known.producer_id}/{known.producer_epoch}")


def _partition(word: str) -> TopicPartition:
    topic, _, index = word.rpartition("-")
    return TopicPartition(topic, int(index))
