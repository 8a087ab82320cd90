"""The texts of `minibroker pipeline --help` and of `--help` of its commands."""

from __future__ import annotations

from typing import Final

PIPELINE_HELP: Final = """\
minibroker pipeline: topics into files and back with Apache Spark, on this machine or on a cluster

  minibroker pipeline archive (--topic T... | --pattern P) --to DIR [--follow]
                   [--format parquet|json|csv|iceberg|delta] [--every 5m] [--target-file-size 128MB]
  minibroker pipeline replay --from DIR --to-topic T [--topic T...] [--speed 1x...max]
                   [--keep-timestamps] [--keep-partitions] [--checkpoint DIR]
  minibroker pipeline rollup --topic T --window 1m --agg EXPR... [--by EXPR...] [--watermark 10m]
                   (--schema FILE | --example FILE) --to topic|DIR [--bad-records DIR] [--follow]
  minibroker pipeline maintain --to DIR [--target-file-size 128MB] [--keep 7d]
  minibroker pipeline inspect (--topic T... | --log-dir DIR) [--report FILE.html]

`minibroker pipeline COMMAND --help` explains the flags. Works with minibroker and with any Kafka.
Needs: pip install 'minibroker[pipeline]', and Java 17 or newer.
"""

_COMMON: Final = """\
  --bootstrap HOST:PORT[,...]
                          the broker (127.0.0.1:9092)
  --kafka KEY=VALUE       a setting of the Kafka client, such as security.protocol=SSL; may be
                          given more than once
  --kafka-config FILE     settings of the Kafka client in a properties file, as Kafka's own tools
                          take it (client.properties): passwords stay out of the list of processes
  --source minibroker|connector
                          read topics with minibroker's own source, or with Spark's connector,
                          which needs its jars
  --jars FILE[,...]       jars for Spark
  --packages G:A:V[,...]  jars by their Maven coordinates, for instance
                          org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0
  --master URL            where Spark runs (local[*]: here, on all cores); on a cluster, paths are
                          on Spark's default file system, and local ones must be shared
  --conf KEY=VALUE        a setting of Spark; may be given more than once
  --dry-run               show the plan and do nothing
"""

_ENDS: Final = """\
On a terminal one line shows the progress; otherwise each batch is one JSON line on stdout. A line
without "batch" is a note, for instance about a new topic or about open windows. Ctrl-C ends the job
after the running batch. Exit codes: 0; 1 for an error, with one sentence that says why; 2 for wrong
usage; 130 after Ctrl-C.
"""

ARCHIVE_HELP: Final = f"""\
minibroker pipeline archive: copy topics into files, each record exactly once

  --topic T[,...]         topics to copy; may be given more than once
  --pattern P             or all topics whose whole name this (Java) regular expression matches
  --to DIR                directory of the files; a path or a URL that Spark can write, such as
                          s3a://bucket/dir
  --follow                do not end: go on with new records
  --format parquet|json|csv|iceberg|delta
                          format of the files (parquet), or a table; json and csv hold bytes as
                          base64; tables need: pip install 'minibroker[tables]'
  --every DURATION        with --follow, time between two batches (tables: 1m, files: none)
  --target-file-size SIZE size of a file of Parquet or of a table, about (128MB)
  --catalog KEY=VALUE     a property of PyIceberg for the catalogue of an iceberg table, such as
                          type=rest; may be given more than once (none: DIR is the catalogue)
  --table NAMESPACE.NAME  name of the table in that catalogue
  --batch-rows N          records of a batch, at most (2000000)
  --on-data-loss fail|continue
                          reaction if records were removed from a topic before they were copied
                          (fail)
  --on-recreated fail|read
                          reaction if a topic was deleted and made again since the last run
                          (fail); read: read it from its start
{_COMMON}
The files are in DIR/topic=T/date=YYYY-MM-DD, by the date of the record in UTC, with key, value,
partition, offset, timestamp, timestampType (0: by the producer, 1: by the broker) and headers.
The same command again goes on where the last one ended, and also copies new partitions.
A table has the same columns. Its readers see whole batches, each once, with any tool. Iceberg
(date left out; hidden partitions by topic and day): Spark reads DIR, DuckDB iceberg_scan('DIR'),
PyIceberg StaticTable.from_metadata('DIR'). Delta: Spark, DuckDB delta_scan('DIR'), deltalake.
Every file below DIR/topic=... is committed, and DIR can be moved: read it with Spark, pyarrow, or
DuckDB as 'DIR/topic=*/date=*/*.parquet'. DIR/_minibroker has the checkpoint and the lists of files,
and hidden files of batches that are not committed. Archives of earlier versions go on as they are:
there DIR/_spark_metadata lists the files that count.

{_ENDS}
  minibroker pipeline archive --topic orders --to archive
  minibroker pipeline archive --pattern 'orders-.*' --to archive --follow
  minibroker pipeline archive --topic orders --to ./orders --format iceberg --follow --every 5m
"""

REPLAY_HELP: Final = f"""\
minibroker pipeline replay: copy archived records into a topic, each exactly once

  --from DIR              directory that `pipeline archive` has written: files, or an Iceberg or
                          Delta table whose catalogue is the directory
  --to-topic T            topic to write; it is made if it does not exist, see below
  --topic T[,...]         topics to copy, if the archive has several
  --speed max|1x|60x|0.5x as fast as possible (max), as recorded (1x), faster or slower
  --keep-timestamps       records keep their timestamps (the topic's retention counts by them);
                          otherwise they get the time of the replay
  --keep-partitions       records keep their partitions; otherwise the key decides, as usual
  --checkpoint DIR        directory of the progress (FROM/_minibroker/replays/TOPIC)
  --batch-rows N          records of a batch and its transactions, at most (500000)
{_COMMON}
A topic that does not exist is made, with as many partitions as the archived topic had and the
cluster's defaults for everything else. For other settings make the topic first. With
--keep-timestamps the topic's retention (a week by default) soon deletes old records.
Records of a partition are written in their order, in transactions. The same command again goes on
where the last one ended, also after a kill; when all is written it writes nothing. Give another
--checkpoint to replay the same archive once more.
With a speed, due records are written about once a second.

{_ENDS}
  minibroker pipeline replay --from archive --to-topic orders-copy
  minibroker pipeline replay --from archive --to-topic load-test --speed 10x
  minibroker pipeline replay --from archive --to-topic orders --keep-timestamps --keep-partitions
"""

ROLLUP_HELP: Final = f"""\
minibroker pipeline rollup: aggregate a topic of JSON values over windows of time

  --topic T               topic to read
  --window DURATION       length of a window, for instance 30s, 1m, 1h30m or 1d
  --slide DURATION        time between the begins of two windows (the length: none overlap)
  --by EXPR               a group, a Spark SQL expression such as country or lower(name) AS name;
                          may be given more than once
  --agg EXPR              an aggregate, such as 'sum(amount) AS revenue' or 'count(*) AS orders';
                          may be given more than once
  --time EXPR             time of the event, such as 'timestamp_millis(at)' (the record's timestamp)
  --watermark DURATION    longest delay of a record (10m); later ones are left out and counted
  --schema FILE           the fields of a value: DDL such as 'id BIGINT, amount DOUBLE', or
                          Spark's schema as JSON; in a file, or as it is
  --example FILE          or example values, one JSON object on each line
  --to TOPIC|DIR          a topic, or a directory, which must have a / in it (./out)
  --format parquet|json|csv
                          format of files (parquet)
  --bad-records DIR       directory for values that do not fit the schema; without it the first
                          such value ends the job
  --checkpoint DIR        directory of progress and open windows (TO/_minibroker/checkpoint);
                          needed with a topic
  --follow                do not end: go on with new records
  --every DURATION        with --follow, time between two batches (none)
  --batch-rows N          records of a batch, at most (2000000)
  --on-data-loss fail|continue
                          reaction if records were removed from the topic before they were read
                          (fail)
  --on-recreated fail|read
                          reaction if a topic was deleted and made again since the last run
                          (fail); read: read it from its start
{_COMMON}
In expressions, names are fields of the value. The record itself has record.key, record.partition,
record.offset, record.timestamp and record.headers.
The watermark is the latest time seen, less --watermark. A window is final when the watermark has
passed its end; then it is written once. Windows that are open when a run ends stay in the
checkpoint. A directory also gets them as provisional rows, in files named provisional-..., so that
readers of the directory find every record in a window. The next run replaces these rows. With
--follow, and in a topic, there are only final windows.
In a topic each window and group is a JSON object; its key has the window's begin and the group.

{_ENDS}
  minibroker pipeline rollup --topic orders --example order.json --window 1m \\
      --by country --agg 'sum(amount) AS revenue' --agg 'count(*) AS orders' --to ./revenue
"""

INSPECT_HELP: Final = f"""\
minibroker pipeline inspect: show statistics of topics, as a table and as a page with plots

  --topic T[,...]         topics to read; may be given more than once
  --log-dir DIR           or a data directory of minibroker or Kafka, with no broker running
  --report FILE.html      write a page that opens without a network
{_COMMON}
Shows records, bytes and rates over time, sizes, keys and skew between partitions, timestamps out
of order, lag of groups, compression ratio, duplicates and gaps of producers.

Exit codes: 0; 1 for an error, with one sentence that says why; 2 for wrong usage; 130 after Ctrl-C.

  minibroker pipeline inspect --topic orders
  minibroker pipeline inspect --log-dir minibroker-data --topic orders --report orders.html
"""

MAINTAIN_HELP: Final = """\
minibroker pipeline maintain: merge small files of an archive, drop old versions and left-overs

  --to DIR                directory that `pipeline archive` has written
  --target-file-size SIZE size of a merged file, about (128MB)
  --keep DURATION         readers can go on with a version of a table for so long (7d)
  --catalog KEY=VALUE     as of archive, for an iceberg table in a catalogue
  --table NAMESPACE.NAME  its name there
  --dry-run               show what would be done and do nothing

Safe beside a running archive and after a kill, and no Spark is needed. Files of Parquet, JSON and
CSV archives are not merged: their readers would see rows twice or not at all meanwhile. Left-overs
of killed runs are removed. Neither a broker nor Spark is asked.

Exit codes: 0; 1 for an error, with one sentence that says why; 2 for wrong usage.

  minibroker pipeline maintain --to ./orders-table
"""

HELP: Final = {
    "maintain": MAINTAIN_HELP,
    "archive": ARCHIVE_HELP,
    "replay": REPLAY_HELP,
    "rollup": ROLLUP_HELP,
    "inspect": INSPECT_HELP,
}
