"""One transactional id without a broker: commands in, answers and stored states out.

The coordinator is the product's, over the product's journal and a log in a directory of the test.
The clock is moved by commands, the cluster returns producer ids, and the sender holds markers back
until the command `markers`.

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

What is stored is read from the journal's log and shown as `state id/epoch …`; `next=` names the
producer id that follows when the markers are there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.internal_topics import TRANSACTIONS_TOPIC
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.partitions.journal_partition import decode_batches
from minibroker.broker.transactions.coordinator import TransactionCoordinator
from minibroker.broker.transactions.records import decode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import NO_PRODUCER_ID, TopicPartition
from tests.scenario.surroundings import ManualTimers
from tests.scenario.transcripts import words_of
from tests.support.runners import TestRunner
from tests.unit.broker.partitions.conftest import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from minibroker.broker.cluster.image import MetadataImage
    from minibroker.broker.partitions.markers import EndOfTransaction
    from minibroker.broker.transactions.state import TransactionMetadata

ID = "t"
TIMEOUT_MS = 60_000
LOOK_OFTEN = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1"}
WHOLE = 1 << 24


class HeldMarkers:
    """Replaces the `MarkerSender`: an outcome is everywhere when the test says so."""

    def __init__(self) -> None:
        self._on_done: dict[str, Callable[[], None]] = {}

    def add(
        self,
        transactional_id: str,
        _marker: EndOfTransaction,
        _partitions: Iterable[TopicPartition],
        on_done: Callable[[], None],
    ) -> None:
        self._on_done[transactional_id] = on_done

    async def close(self) -> None:
        """Do nothing: the journal has the missing markers."""

    def bring(self) -> None:
        """Bring its marker to every partition."""
        for transactional_id in list(self._on_done):
            self._on_done.pop(transactional_id)()


class Cluster:
    """The part of a cluster that the coordinator uses; `version` is `transaction.version`."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.version = 2
        self.features = self
        self.producer_ids = self
        self._last_producer_id = 0

    def level(self, _feature: str) -> int:
        return self.version

    def next(self) -> int:
        """Return a producer id that was not given out."""
        self._last_producer_id += 1
        return self._last_producer_id

    def subscribe(self, _listener: Any) -> None:
        """Do nothing: this cluster does not change."""


class TransactionsRig:
    """Gives commands to a coordinator; `close` it."""

    def __init__(self, directory: Path) -> None:
        self._runner = asyncio.Runner()
        self._world = World(directory)
        self._world.create(TRANSACTIONS_TOPIC)
        self._cluster_ = Cluster(self._world.image)
        self._shown_offset = 0
        self.lines: list[str] = []
        self._runner.run(self._start())

    def close(self) -> None:
        """Stop everything and close the log."""
        self._runner.run(self._coordinator.close())
        self._runner.close()
        self._world.logs.close()
        self._world.files.forget_pins()

    async def _start(self) -> None:
        self._timers = ManualTimers(self._world.clock)
        self._markers_ = HeldMarkers()
        work: list[Callable[[], None]] = []
        arguments: dict[str, Any] = {
            "cluster": self._cluster_,
            "partitions": self._world.manager,
            "clock": self._world.clock,
            "timers": self._timers,
            "dynamic": DynamicConfig(BrokerConfig(LOOK_OFTEN)),
            "worker": TestRunner(work.append),
            "markers": None,
            "peers": _Nobody(),
        }
        self._coordinator = TransactionCoordinator(**arguments)
        self._coordinator._sender = self._markers_  # type: ignore[assignment]
        self._coordinator.start()
        while work:
            work.pop(0)()
            await asyncio.sleep(0)

    def __call__(self, command: str) -> list[str]:
        self.lines = []
        plain, options = words_of(command)
        play: Callable[[list[str], dict[str, str]], Awaitable[str | None]]
        play = getattr(self, f"_{plain[0]}")

        async def run() -> str | None:
            answer = await play(plain[1:], options)
            await asyncio.gather(*self._coordinator._fence_tasks)
            return answer

        try:
            answer = self._runner.run(run())
        except KafkaError as error:
            answer = error.code.name
        self._show_stored()
        if answer is not None:
            self.lines.append(answer)
        return self.lines

    def _show_stored(self) -> None:
        """Show the new records of the journal since the last command."""
        partition = self._world.partition(TRANSACTIONS_TOPIC)
        stored = partition.read(self._shown_offset, WHOLE, isolation_level=0)
        part = decode_batches(stored.records, self._shown_offset, None)
        self._shown_offset = part.next_offset
        for _, records in part.batches:
            for record in records:
                entry = decode(record.key, record.value)
                assert entry is not None
                assert entry[1] is not None
                self.lines.append(f"stored: {_line_of(entry[1])}")

    @property
    def _has_stored(self) -> bool:
        return self._world.partition(TRANSACTIONS_TOPIC).log_end_offset > self._shown_offset

    async def _cluster(self, _: list[str], options: dict[str, str]) -> str:
        self._cluster_.version = int(options["version"])
        return "ok"

    async def _init(self, _: list[str], options: dict[str, str]) -> str:
        expected = _owner(options) if "id" in options else None
        timeout_ms = int(options.get("timeout", TIMEOUT_MS))
        producer = await self._coordinator.initialize(ID, timeout_ms, expected)
        return "answer: {}/{}".format(*producer)

    async def _add(self, plain: list[str], options: dict[str, str]) -> str | None:
        names = [_partition(word) for word in plain if word != "v2"]
        self._coordinator.add_partitions(
            ID, *_owner(options), names, client_version=2 if "v2" in plain else 0
        )
        return None if self._has_stored else "ok, was in it"

    async def _verify(self, plain: list[str], options: dict[str, str]) -> str:
        names = [_partition(word) for word in plain]
        missing = self._coordinator.partitions_not_added(ID, *_owner(options), names)
        return "not in it: " + " ".join(map(str, missing)) if missing else "ok"

    async def _commit(self, plain: list[str], options: dict[str, str]) -> str | None:
        return await self._end(plain, options, is_commit=True)

    async def _abort(self, plain: list[str], options: dict[str, str]) -> str | None:
        return await self._end(plain, options, is_commit=False)

    async def _end(
        self, plain: list[str], options: dict[str, str], *, is_commit: bool
    ) -> str | None:
        is_second = "v2" in plain
        ended = self._coordinator.end(
            ID, *_owner(options), is_commit=is_commit, client_version=2 if is_second else 0
        )
        after = ended if isinstance(ended, tuple) else await ended
        producer = " {}/{}".format(*after) if after[0] != NO_PRODUCER_ID else ""
        if self._has_stored:
            return f"answer:{producer}" if producer else None
        return f"answer: as before,{producer}" if producer else "answer: as before"

    async def _markers(self, *_: object) -> None:
        self._markers_.bring()

    async def _advance(self, plain: list[str], _: dict[str, str]) -> None:
        self._timers.run_until(self._world.clock.ms + int(plain[0]))

    async def _epoch(self, plain: list[str], _: dict[str, str]) -> None:
        store = self._coordinator._store
        index, metadata = store.get(ID)
        store.write(index, metadata._replace(producer_epoch=int(plain[0])))

    async def _restart(self, *_: object) -> str:
        self._coordinator.journal.close()
        await self._coordinator.close()
        await self._start()
        return f"loaded: {_line_of(self._coordinator.describe(ID))}"


class _Nobody:
    """No other broker is a coordinator."""

    send_markers = None


def _line_of(metadata: TransactionMetadata) -> str:
    line = f"{metadata.state.title} {metadata.producer_id}/{metadata.producer_epoch}"
    if metadata.next_producer_id >= 0:
        line += f" next={metadata.next_producer_id}"
    partitions = " ".join(str(partition) for partition in sorted(metadata.partitions))
    return f"{line} [{partitions}]" if partitions else line


def _owner(options: dict[str, str]) -> tuple[int, int]:
    return int(options["id"]), int(options["epoch"])


def _partition(word: str) -> TopicPartition:
    topic, _, index = word.rpartition("-")
    return TopicPartition(topic, int(index))
