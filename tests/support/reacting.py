"""Real clients for the tests of faults and of time: their reactions, and their errors.

There is one interface for confluent-kafka, aiokafka and kafka-python. Every call runs in a thread
of the client's own and returns a future, so that a test can change the broker while a client waits.
An error of a broker is a `RefusedError` with Kafka's code, for every library.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import confluent_kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError as AioKafkaError

from minibroker.kafka.error_codes import ERROR_CODES, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka: Any = importlib.import_module("kafka")

DEADLINE_S = 180.0
BACKOFF_MS = 20
REQUEST_TIMEOUT_MS = 20_000
"""Time-out of requests; more than a busy machine needs for one."""

PATIENT: dict[str, dict[str, int]] = {
    "confluent": {"socket_timeout_ms": 60_000},
    "kafka-python": {"request_timeout_ms": 60_000},
    "aiokafka": {"request_timeout_ms": 60_000},
}
"""Settings of a writer that never gives up, however slow the answer."""

IMPATIENT: dict[str, dict[str, int]] = {
    client: dict.fromkeys(settings, 2_000) for client, settings in PATIENT.items()
}
"""Settings of a client that soon tries again where a broker does not read or answer."""


class RefusedError(Exception):
    """An error that the client gave its user: Kafka's code, or -1 for an error of its own."""

    def __init__(self, code: int, error: BaseException) -> None:
        super().__init__(f"{code}: {error!r}")
        self.code = code

    @property
    def name(self) -> str:
        return ErrorCode(self.code).name if self.code in ERROR_CODES.values() else "OWN"


def _code_of(error: Exception) -> int:
    if type(error).__name__.startswith("ProducerFenced"):  # aiokafka's has no number
        return ErrorCode.PRODUCER_FENCED
    return getattr(error, "errno", None) or -1


class Client:
    """Blocking calls, one at a time, in a thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, type(self).__name__)
        self._is_closing = False

    def _begin(self, call: Callable[[], Any]) -> Future[Any]:
        def run() -> Any:
            try:
                return call()
            except confluent_kafka.KafkaException as error:
                raise RefusedError(error.args[0].code(), error) from error
            except SystemError as error:  # confluent-kafka raised while it ran a callback
                cause = error.__cause__
                if not isinstance(cause, confluent_kafka.KafkaException):
                    raise
                raise RefusedError(cause.args[0].code(), cause) from error
            except (AioKafkaError, kafka.errors.KafkaError) as error:
                raise RefusedError(_code_of(error), error) from error

        return self._thread.submit(run)

    def _do(self, call: Callable[[], Any]) -> Any:
        return self._begin(call).result(DEADLINE_S)

    def close(self) -> None:
        """Close the client; queued records are lost."""
        if self._is_closing:
            return
        self._is_closing = True
        try:
            with suppress(RefusedError):  # it had been refused before, and says so once more
                self._do(self._close)
        finally:
            self._thread.shutdown()

    def _close(self) -> None:
        raise NotImplementedError


class Loop:
    """A loop in a thread, where aiokafka lives."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka")
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(DEADLINE_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)
        self._loop.close()


# --- writers ------------------------------------------------------------------------------------


class Writer(Client):
    """A producer with acks=all; idempotent, or transactional where it has an id."""

    def send(self, topic: str, value: bytes) -> Future[Any]:
        """Send a record; the future is done when the broker acknowledged it. RefusedError."""
        return self._begin(lambda: self._send(topic, value))

    def begin(self) -> None:
        self._do(self._begin_transaction)

    def commit(self) -> Future[Any]:
        return self._begin(self._commit)

    def _send(self, topic: str, value: bytes) -> None:
        raise NotImplementedError

    def _begin_transaction(self) -> None:
        raise NotImplementedError

    def _commit(self) -> None:
        raise NotImplementedError


class ConfluentWriter(Writer):
    def __init__(self, address: str, transactional_id: str | None = None, **other: Any) -> None:
        super().__init__()
        settings: dict[str, Any] = {
            "bootstrap.servers": address,
            "client.id": "confluent",
            "log_level": 0,
            "linger.ms": 0,
            "enable.idempotence": True,
            "retry.backoff.ms": BACKOFF_MS,
            "retry.backoff.max.ms": BACKOFF_MS,
            "reconnect.backoff.ms": BACKOFF_MS,
            "reconnect.backoff.max.ms": BACKOFF_MS,
            "socket.timeout.ms": REQUEST_TIMEOUT_MS,
            **{key.replace("_", "."): value for key, value in other.items()},
        }
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
        self._producer = confluent_kafka.Producer(settings)
        if transactional_id is not None:
            self._do(lambda: self._producer.init_transactions(DEADLINE_S))

    def _send(self, topic: str, value: bytes) -> None:
        errors: list[Any] = []
        self._producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
        assert self._producer.flush(DEADLINE_S) == 0
        if errors[0] is not None:
            raise confluent_kafka.KafkaException(errors[0])

    def _begin_transaction(self) -> None:
        self._producer.begin_transaction()

    def _commit(self) -> None:
        self._producer.commit_transaction(DEADLINE_S)

    def _close(self) -> None:
        self._producer.purge()
        self._producer.flush(DEADLINE_S)


class AioKafkaWriter(Writer):
    def __init__(self, address: str, transactional_id: str | None = None, **other: Any) -> None:
        super().__init__()
        self._loop = Loop()

        async def start() -> None:
            self._producer = AIOKafkaProducer(
                bootstrap_servers=address,
                client_id="aiokafka",
                enable_idempotence=True,
                transactional_id=transactional_id,
                retry_backoff_ms=BACKOFF_MS,
                **{"request_timeout_ms": REQUEST_TIMEOUT_MS, **other},
            )
            await self._producer.start()

        self._do(lambda: self._loop.run(start()))

    def _send(self, topic: str, value: bytes) -> None:
        self._loop.run(self._producer.send_and_wait(topic, value))

    def _begin_transaction(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def _commit(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def _close(self) -> None:
        try:
            self._loop.run(self._producer.stop())
        finally:
            self._loop.close()


class KafkaPythonWriter(Writer):
    def __init__(self, address: str, transactional_id: str | None = None, **other: Any) -> None:
        super().__init__()
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=address,
            client_id="kafka-python",
            enable_idempotence=True,
            transactional_id=transactional_id,
            retry_backoff_ms=BACKOFF_MS,
            reconnect_backoff_ms=BACKOFF_MS,
            reconnect_backoff_max_ms=BACKOFF_MS,
            **{"request_timeout_ms": REQUEST_TIMEOUT_MS, **other},
        )
        if transactional_id is not None:
            self._do(self._producer.init_transactions)

    def _send(self, topic: str, value: bytes) -> None:
        self._producer.send(topic, value).get(DEADLINE_S)

    def _begin_transaction(self) -> None:
        self._producer.begin_transaction()

    def _commit(self) -> None:
        self._producer.commit_transaction()

    def _close(self) -> None:
        self._producer.close(timeout=0)


# --- readers and members ------------------------------------------------------------------------


class Reader(Client):
    """A consumer: of one partition from its beginning, or a member of a group."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[bytes] = []
        self.times: list[int] = []
        """Timestamps of the records, ms."""
        self.assigned: list[int] = []
        """Its partitions after the last assignment."""
        self.revoked = 0
        """How many times partitions were revoked."""
        self.may_give_up = threading.Event()
        """Event that ends the user's work during a revocation."""
        self.may_give_up.set()

    def read(self, count: int) -> Future[Any]:
        """The future is done when the client has read this many records in all."""

        def read() -> None:
            while len(self.values) < count and not self._is_closing:
                self._poll()

        return self._begin(read)

    def poll_until(self, probe: Callable[[], bool]) -> Future[Any]:
        """Poll like an application until the probe is true."""

        def poll() -> None:
            while not probe() and not self._is_closing:
                self._poll()

        return self._begin(poll)

    def commit(self) -> Future[Any]:
        """Commit the offsets of the records that were read."""
        return self._begin(self._commit)

    def _poll(self) -> None:
        raise NotImplementedError

    def _commit(self) -> None:
        raise NotImplementedError

    def _gave_up(self) -> None:
        self.assigned = []
        self.revoked += 1
        self.may_give_up.wait(DEADLINE_S)


class ConfluentReader(Reader):
    def __init__(self, address: str, topic: str, group: str | None = None, **other: Any) -> None:
        super().__init__()
        settings = {
            "bootstrap.servers": address,
            "client.id": "confluent",
            "log_level": 0,
            "group.id": group or "none",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "retry.backoff.ms": BACKOFF_MS,
            "fetch.error.backoff.ms": BACKOFF_MS,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.ms": BACKOFF_MS,
            "reconnect.backoff.max.ms": BACKOFF_MS,
            "socket.timeout.ms": REQUEST_TIMEOUT_MS,
            "heartbeat.interval.ms": 100,
            "coordinator.query.interval.ms": 200,
            **{key.replace("_", "."): value for key, value in other.items()},
        }
        self._consumer = confluent_kafka.Consumer(settings)
        if group is None:
            place = confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)
            self._consumer.assign([place])
        else:
            self._consumer.subscribe(
                [topic],
                on_assign=lambda _, places: self._assigned(places),
                on_revoke=lambda *_: self._gave_up(),
                on_lost=lambda *_: self._gave_up(),
            )

    def _assigned(self, places: list[Any]) -> None:
        self.assigned = sorted(place.partition for place in places)

    def _poll(self) -> None:
        message = self._consumer.poll(0.05)
        if message is not None and message.error() is None:
            self.values.append(message.value())
            self.times.append(message.timestamp()[1])

    def _commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def _close(self) -> None:
        self._consumer.close()


class AioKafkaReader(Reader):
    def __init__(self, address: str, topic: str, group: str | None = None, **other: Any) -> None:
        super().__init__()
        self._loop = Loop()
        reader = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_assigned(self, assigned: Any) -> None:
                reader.assigned = sorted(partition.partition for partition in assigned)

            async def on_partitions_revoked(self, revoked: Any) -> None:
                if revoked:
                    await asyncio.to_thread(reader._gave_up)

        async def start() -> None:
            self._consumer = AIOKafkaConsumer(
                bootstrap_servers=address,
                client_id="aiokafka",
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                retry_backoff_ms=BACKOFF_MS,
                fetch_max_wait_ms=50,
                heartbeat_interval_ms=100,
                **{"request_timeout_ms": REQUEST_TIMEOUT_MS, **other},
            )
            if group is not None:
                self._consumer.subscribe([topic], listener=Listener())
            await self._consumer.start()
            if group is None:
                self._consumer.assign([TopicPartition(topic, 0)])

        self._do(lambda: self._loop.run(start()))

    def _poll(self) -> None:
        for records in self._loop.run(self._consumer.getmany(timeout_ms=50)).values():
            self.values += [record.value for record in records]
            self.times += [record.timestamp for record in records]

    def _commit(self) -> None:
        self._loop.run(self._consumer.commit())

    def _close(self) -> None:
        try:
            self._loop.run(self._consumer.stop())
        finally:
            self._loop.close()


class KafkaPythonReader(Reader):
    def __init__(self, address: str, topic: str, group: str | None = None, **other: Any) -> None:
        super().__init__()
        reader = self

        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_assigned(self, assigned: Any) -> None:
                reader.assigned = sorted(partition.partition for partition in assigned)

            def on_partitions_revoked(self, revoked: Any) -> None:
                if revoked:
                    reader._gave_up()

        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=address,
            client_id="kafka-python",
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            retry_backoff_ms=BACKOFF_MS,
            reconnect_backoff_ms=BACKOFF_MS,
            reconnect_backoff_max_ms=BACKOFF_MS,
            fetch_max_wait_ms=50,
            heartbeat_interval_ms=100,
            **{"request_timeout_ms": REQUEST_TIMEOUT_MS, **other},
        )
        if group is None:
            self._consumer.assign([kafka.TopicPartition(topic, 0)])
        else:
            self._consumer.subscribe([topic], listener=Listener())
            # Metadata before it joins, or it may never get a partition: see python_member.py.
            self._consumer.partitions_for_topic(topic)

    def _poll(self) -> None:
        for records in self._consumer.poll(timeout_ms=50).values():
            self.values += [record.value for record in records]
            self.times += [record.timestamp for record in records]

    def _commit(self) -> None:
        self._consumer.commit()

    def _close(self) -> None:
        self._consumer.close(autocommit=False)


WRITERS: dict[str, type[Any]] = {
    "confluent": ConfluentWriter,
    "aiokafka": AioKafkaWriter,
    "kafka-python": KafkaPythonWriter,
}
READERS: dict[str, type[Any]] = {
    "confluent": ConfluentReader,
    "aiokafka": AioKafkaReader,
    "kafka-python": KafkaPythonReader,
}


def opened_clients() -> Iterator[Callable[[Client], Any]]:
    """Yield a function for a fixture: clients passed to it are closed when the test ends."""
    clients: list[Client] = []

    def keep(client: Client) -> Client:
        clients.append(client)
        return client

    yield keep
    for client in clients:
        client.close()


def settle(future: Future[Any]) -> str:
    """Return how a call ended: `done`, or Kafka's name of the error."""
    try:
        future.result(DEADLINE_S)
    except RefusedError as refused:
        return refused.name
    return "done"
