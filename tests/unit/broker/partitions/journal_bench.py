"""One journal with all that it asks for: partitions, a cluster, a listener, a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.partitions.journal import Journal
from minibroker.broker.slices import run_all
from minibroker.kafka.errors import KafkaError
from tests.support.runners import TestRunner
from tests.support.waiting import eventually
from tests.unit.broker.partitions.conftest import partition_image

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.kafka.error_codes import ErrorCode
    from minibroker.kafka.records.batch import BatchHeader
    from tests.unit.broker.partitions.conftest import World

TOPIC = "__consumer_offsets"


class Coordinator:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, list[Any]]] = []
        self.events: list[str] = []
        self.fails_on: bytes | None = None

    def on_batch(self, index: int, header: BatchHeader, records: Sequence[Any]) -> None:
        if self.fails_on is not None and any(record.key == self.fails_on for record in records):
            raise ValueError("cannot apply this")
        self.batches.append((index, header.base_offset, list(records)))

    def on_loaded(self, index: int) -> None:
        self.events.append(f"loaded {index}")

    def on_unloaded(self, index: int) -> None:
        self.events.append(f"unloaded {index}")

    def keys(self) -> list[bytes | None]:
        return [record.key for _, _, records in self.batches for record in records]


class FakeCluster:
    """The part of `Cluster` that a journal uses."""

    is_controller = True

    def __init__(self, world: World) -> None:
        self.image = world.image
        self.listeners: list[Any] = []
        self.created: list[tuple[str, int, int, dict[str, str]]] = []
        self.refusal: Exception | None = None
        self._world = world

    def subscribe(self, listener: Any) -> None:
        self.listeners.append(listener)

    async def create_topic(
        self, name: str, count: int, factor: int, *, configs: dict[str, str]
    ) -> TopicImage:
        if self.refusal is not None:
            raise self.refusal
        self.created.append((name, count, factor, configs))
        topic = self._world.create(name, *(partition_image() for _ in range(count)))
        for listener in self.listeners:
            listener.on_topic_created(topic)
        return topic


class Bench:
    """One journal over a `World`; `later` holds what it gave to the worker."""

    def __init__(self, world: World, **options: Any) -> None:
        self.world = world
        self.cluster = FakeCluster(world)
        self.listener = Coordinator()
        self.later: list[Callable[[], None]] = []
        self.journal = Journal(
            TOPIC,
            cluster=self.cluster,  # type: ignore[arg-type]
            partitions=world.manager,
            clock=world.clock,
            config=world.dynamic.broker,
            worker=TestRunner(self.later.append),
            listener=self.listener,
            **options,
        )

    def append(
        self,
        index: int,
        records: Sequence[tuple[bytes, bytes | None]],
        *,
        required_acks: int = -1,
        **producer: int,
    ) -> int:
        """Write one batch now; the offset of its first record. Raises KafkaError."""
        failures: list[ErrorCode] = []
        batch = run_all(self.journal.batch_of(records, **producer))
        staged = self.journal.stage(
            index, batch, on_failed=failures.append, required_acks=required_acks
        )
        self.journal.flush()
        if failures:
            raise KafkaError(failures[0])
        return staged.first_offset

    def run_worker(self) -> None:
        for task in [*self.later]:
            self.later.remove(task)
            task()

    async def load(self) -> None:
        """Let the worker and the loop take turns until no partition is being loaded."""

        def is_loaded() -> bool:
            self.run_worker()
            return not self.journal.is_loading

        await eventually(is_loaded)
