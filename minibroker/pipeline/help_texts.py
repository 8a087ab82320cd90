"""What `minibroker pipeline --help` and its commands say."""

from __future__ import annotations

from typing import Final

PIPELINE_HELP: Final = """\
minibroker pipeline: topics into files and back with Apache Spark, on this machine or on a cluster

  minibroker pipeline archive (--topic T... | --pattern P) --to DIR [--follow]
                   [--format parquet|json|csv]
  minibroker pipeline replay --from DIR --to-topic T [--topic T...] [--speed 1x...max]
                   [--keep-timestamps] [--keep-partitions] [--checkpoint DIR]
  minibroker pipeline rollup --topic T --window 1m --agg EXPR... [--by EXPR...] [--watermark 10m]
                   (--schema FILE | --example FILE) --to topic|DIR [--bad-records DIR] [--follow]
  minibroker pipeline inspect (--topic T... | --log-dir DIR) [--report FILE.html]

`minibroker pipeline COMMAND --help` explains the flags. Works with minibroker and with any Kafka.
Needs: pip install 'minibroker[pipeline]', and Java 17 or newer.
"""

_COMMON: Final = """\
  --bootstrap HOST:PORT[,...]
                          the broker (127.0.0.1:9092)
  --kafka KEY=VALUE       a setting of the Kafka client, such as security.protocol=SSL; may be
                          given more than once
  --source minibroker|connector
                          how topics are read: by minibroker's own source, or by Spark's connector,
                          which needs its jars
  --jars FILE[,...]       jars for Spark
  --packages G:A:V[,...]  jars by their Maven coordinates, for instance
                          org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0
  --master URL            where Spark runs (local[*]: here, on all cores)
  --conf KEY=VALUE        a setting of Spark; may be given more than once
  --dry-run               say what would be done, and do nothing
"""

_ENDS: Final = """\
On a terminal one line shows how far it is; otherwise each batch is one JSON line on stdout. A line
without "batch" tells something else: a topic that was made, what became of windows. Ctrl-C ends
after the running batch. Exit codes: 0, 1 when it cannot be done (one sentence says why), 2
for wrong usage, 130 after Ctrl-C.
"""

ARCHIVE_HELP: Final = f"""\
minibroker pipeline archive: copy topics into files, each record exactly once

  --topic T[,...]         what to copy; may be given more than once
  --pattern P             or all topics whose whole name this (Java) regular expression matches
  --to DIR                where to; a path or a URL that Spark can write, such as s3a://bucket/dir
  --follow                do not end: go on with what is produced from now on
  --format parquet|json|csv
                          of the files (parquet); json and csv hold bytes as base64
  --batch-rows N          records of a batch, at most (2000000)
  --on-data-loss fail|continue
                          when records were removed from a topic before they were copied (fail)
{_COMMON}
Files lie in DIR/topic=T/date=YYYY-MM-DD, by the date of the record in UTC, with key, value,
partition, offset, timestamp, timestampType (0: by the producer, 1: by the broker) and headers.
The same command again goes on where the last one ended, and takes new partitions, too.
DIR/_minibroker has the checkpoint and DIR/_spark_metadata says which files count: read DIR as a
whole with Spark, or look at it with any tool for Parquet.

{_ENDS}
  minibroker pipeline archive --topic orders --to archive
  minibroker pipeline archive --pattern 'orders-.*' --to archive --follow
"""

REPLAY_HELP: Final = f"""\
minibroker pipeline replay: copy archived records into a topic, each exactly once

  --from DIR              what `pipeline archive` has written
  --to-topic T            where to; a topic that is not there is made, see below
  --topic T[,...]         of an archive of several topics: those to copy
  --speed max|1x|60x|0.5x as fast as it goes (max), as it happened, faster or slower
  --keep-timestamps       records keep their timestamps (the topic's retention counts by them);
                          otherwise they get the time of the replay
  --keep-partitions       records keep their partitions; otherwise the key decides, as usual
  --checkpoint DIR        where to remember how far it is (FROM/_minibroker/replays/TOPIC)
  --batch-rows N          records of a batch and its transactions, at most (500000)
{_COMMON}
A topic that is not there is made, with as many partitions as the archived topic had and the
cluster's defaults for everything else; to choose, make it before. With --keep-timestamps old
records go as soon as the topic's retention (a week by default) says so.
Records of a partition are written in their order, in transactions. The same command again goes on
where the last one ended, also after it was killed; when all is written it writes nothing. Give
another --checkpoint to replay the same archive once more.
With a speed, what is due is written about once a second.

{_ENDS}
  minibroker pipeline replay --from archive --to-topic orders-copy
  minibroker pipeline replay --from archive --to-topic load-test --speed 10x
  minibroker pipeline replay --from archive --to-topic orders --keep-timestamps --keep-partitions
"""

ROLLUP_HELP: Final = f"""\
minibroker pipeline rollup: aggregate a topic of JSON values over windows of time

  --topic T               what to read
  --window DURATION       how long a window is, for instance 30s, 1m, 1h30m or 1d
  --slide DURATION        how far apart windows begin (as long as they are: none overlap)
  --by EXPR               a group, a Spark SQL expression such as country or lower(name) AS name;
                          may be given more than once
  --agg EXPR              an aggregate, such as 'sum(amount) AS revenue' or 'count(*) AS orders';
                          may be given more than once
  --time EXPR             when it happened, such as 'timestamp_millis(at)' (the record's timestamp)
  --watermark DURATION    how late a record may come (10m); later ones are left out and counted
  --schema FILE           the fields of a value: DDL such as 'id BIGINT, amount DOUBLE', or
                          Spark's schema as JSON; in a file, or as it is
  --example FILE          or values as they are, one JSON object a line
  --to TOPIC|DIR          where to: a topic, or a directory, which must have a / in it (./out)
  --format parquet|json|csv
                          of files (parquet)
  --bad-records DIR       where values go that do not fit the schema; without it the first one ends
                          the job
  --checkpoint DIR        where to keep progress and open windows (TO/_minibroker/checkpoint);
                          needed with a topic
  --follow                do not end: go on with what is produced from now on
  --batch-rows N          records of a batch, at most (2000000)
  --on-data-loss fail|continue
                          when records were removed from the topic before they were read (fail)
{_COMMON}
In expressions, names are fields of the value; of the record itself there are record.key,
record.partition, record.offset, record.timestamp and record.headers.
A window is final when the watermark has passed its end: the latest time seen, less --watermark.
It is then written once. Windows that are open when a run ends stay in the checkpoint. In a
directory they are also written, as provisional rows in files named provisional-...: readers of the
directory find each record that was read in one window. The next run replaces these rows. With
--follow, and in a topic, there are only final windows.
To a topic goes a JSON object per window and group; its key has the window's begin and the group.

{_ENDS}
  minibroker pipeline rollup --topic orders --example order.json --window 1m \\
      --by country --agg 'sum(amount) AS revenue' --agg 'count(*) AS orders' --to ./revenue
"""

INSPECT_HELP: Final = f"""\
minibroker pipeline inspect: what is in topics, as a table and as a page with plots

  --topic T[,...]         topics to read; may be given more than once
  --log-dir DIR           or a data directory of minibroker or Kafka, with no broker running
  --report FILE.html      write a page that opens without a network
{_COMMON}
Shows records, bytes and rates over time, sizes, keys and skew between partitions, timestamps out
of order, lag of groups, compression ratio, duplicates and gaps of producers.

Exit codes: 0, 1 when it cannot be done (one sentence says why), 2 for wrong usage, 130 after
Ctrl-C.

  minibroker pipeline inspect --topic orders
  minibroker pipeline inspect --log-dir minibroker-data --topic orders --report orders.html
"""

HELP: Final = {
    "archive": ARCHIVE_HELP,
    "replay": REPLAY_HELP,
    "rollup": ROLLUP_HELP,
    "inspect": INSPECT_HELP,
}
