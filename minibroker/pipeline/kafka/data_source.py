"""The data source `minibroker`: topics as tables, read and written without a line of the JVM.

    spark.read.format("minibroker").option("kafka.bootstrap.servers", "localhost:9092")
         .option("subscribe", "orders").load()

Options are in `options`, columns in `schemas`. Spark makes one of these in the Python processes
beside its driver; what it returns goes to the tasks by pickle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from minibroker.pipeline.kafka import options, schemas
from minibroker.pipeline.kafka.source.batch import BatchReader, FilteredReader
from minibroker.pipeline.kafka.source.stream import StreamReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
    from pyspark.sql.types import StructType

NAME = "minibroker"


class TopicSource(DataSource):
    """Reads and writes topics in batches and as streams.

    Options: see `minibroker.pipeline.kafka.options` and, of the sink,
    `minibroker.pipeline.kafka.sink.options`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of a record, or of a range. Raises PipelineError."""
        if options.emits_ranges(self.options):
            return schemas.RANGE
        return schemas.record_schema(include_headers=options.includes_headers(self.options))

    def reader(self, schema: StructType) -> BatchReader:
        """Return the reader of `spark.read`. Raises PipelineError."""
        if options.pushes_filters(self.options):
            return FilteredReader(self.options)
        return BatchReader(self.options)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802  Spark's name
        """Return the reader of `spark.readStream`. Raises PipelineError."""
        return StreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of `frame.write`. Raises PipelineError."""
        from minibroker.pipeline.kafka.sink.writers import batch_writer  # noqa: PLC0415  readers need none

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802  Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        """Return the writer of `frame.writeStream`. Raises PipelineError."""
        from minibroker.pipeline.kafka.sink.writers import stream_writer  # noqa: PLC0415  readers need none

        return stream_writer(self.options, schema, overwrite=overwrite)
