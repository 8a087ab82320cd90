"""The peer without Spark: librdkafka and Arrow in one process, as one would write it by hand.

Messages come by the thousand, one Python object each, and become Arrow columns and Parquet files.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, TopicPartition

MESSAGES: Final = 10_000
"""Messages of one call, and rows of one Arrow batch."""
WAIT_S: Final = 1.0
ROWS: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
    ]
)


def read_alone(address: str, topic: str, partitions: int) -> int:
    """Read a topic to its end; return the number of records."""
    return sum(batch.num_rows for batch in batches(address, topic, partitions))


def write_alone(address: str, topic: str, partitions: int, directory: Path) -> None:
    """Write a topic into one Parquet file."""
    directory.mkdir()
    with pq.ParquetWriter(directory / "all.parquet", ROWS, compression="snappy") as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in batches(address, topic, partitions):
            waiting.append(batch)
            if len(waiting) * MESSAGES >= 1 << 17:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))


def batches(address: str, topic: str, partitions: int) -> Iterator[pa.RecordBatch]:
    """Yield the records of a topic as Arrow batches."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "alone",
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "queued.min.messages": "100000",
            "fetch.queue.backoff.ms": "5",
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    ended = 0
    try:
        while ended < partitions:
            messages = consumer.consume(MESSAGES, WAIT_S)
            records = [message for message in messages if message.error() is None]
            for message in messages:
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                    ended += 1
            if records:
                columns = [
                    [message.key() for message in records],
                    [message.value() for message in records],
                    [message.topic() for message in records],
                    [message.partition() for message in records],
                    [message.offset() for message in records],
                    [message.timestamp()[1] for message in records],
                ]
                pairs = zip(columns, ROWS, strict=True)
                arrays = [pa.array(column, field.type) for column, field in pairs]
                yield pa.RecordBatch.from_arrays(arrays, schema=ROWS)
    finally:
        consumer.close()
