"""The table for a terminal."""

from __future__ import annotations

from minibroker.pipeline.verbs.inspect.facts import (
    CodecFacts,
    GroupLag,
    Inspection,
    PartitionFacts,
    TopicFacts,
)
from minibroker.pipeline.verbs.inspect.text import table, text

TOPIC = TopicFacts(
    "orders",
    (
        PartitionFacts(0, 900, 9_000, 5, 904, 0, 60_000, keys=3, out_of_order=2),
        PartitionFacts(1, 100, 1_000, 0, 99, 0, 50_000, keys=3),
        PartitionFacts(2),
    ),
    smallest_bytes=1,
    median_bytes=10,
    largest_bytes=1_000,
)


def test_the_whole_of_a_topic() -> None:
    topic = TOPIC._replace(
        codecs=(
            CodecFacts("zstd", 2, 4, 900, 1024, 4096),
            CodecFacts("none", 1, 100, 100, 1024, 512),
        ),
        groups=(GroupLag("readers", "empty", 250, 3, 1),),
    )
    assert text(Inspection("there", 0, True, (topic,))) == (
        "orders: 1,000 records, 9.8 KiB of keys and values, 3 partitions, sizes 1 to 1,000 bytes, "
        "half of\n  them up to 10, 1 min from 1970-01-01 00:00:00 UTC\n"
        "\n"
        "  partition  records  share    bytes  offsets  keys  out of order     last record, UTC\n"
        "  ---------  -------  -----  -------  -------  ----  ------------  -------------------\n"
        "  0              900  2.70x  8.8 KiB   5..904     3             2  1970-01-01 00:01:00\n"
        "  1              100  0.30x   1000 B    0..99     3             0  1970-01-01 00:00:50\n"
        "  2                0  0.00x      0 B        -     0             0                    -\n"
        "\n"
        "  codec  format  batches  records   stored        unfolded\n"
        "  -----  ------  -------  -------  -------  --------------\n"
        "  zstd       v2        4      900  1.0 KiB         4.0 KiB\n"
        "  none       v1      100      100  1.0 KiB           512 B\n"
        "  all                              2.0 KiB  4.5 KiB (2.2x)\n"
        "\n"
        "  group    state  lag  of the topic  partitions never read\n"
        "  -------  -----  ---  ------------  ---------------------\n"
        "  readers  empty  250          25 %                      1\n"
        "\n"
        "! Skewed: partition 0 holds 90 % of the records, 2.7 times the fair share of 3 "
        "partitions.\n"
        "! Partition 2 holds no record.\n"
        "- 2 records (0.2 %) have an earlier timestamp than one before them in their partition, "
        "0 ms at most.\n"
        "- Compression (zstd) makes 4.5 KiB of records into 2.0 KiB, 2.2 to 1.\n"
        "- 100 records are in the message formats of before Kafka 0.11.\n"
        "- Group “readers” (empty) is 250 offsets behind the end.\n"
    )


def test_sentences_are_broken_at_words() -> None:
    late = PartitionFacts(0, 900_000, 9_000, out_of_order=299_000, most_behind_ms=3_723_000)
    shown_text = text(Inspection("there", 0, False, (TOPIC._replace(partitions=(late,)),)))
    assert max(len(line) for line in shown_text.splitlines()) <= 100
    assert "in their partition, 1 h 2\n  min at most.\n" in shown_text


def test_topics_stand_apart_and_none_is_said() -> None:
    two = Inspection("there", 0, False, (TOPIC, TOPIC._replace(topic="other")))
    assert "\n\nother: 1,000 records" in text(two)
    assert text(Inspection("/data", 0, True, ())) == "/data holds no topics.\n"


def test_one_record_and_records_of_one_size_are_told_as_such() -> None:
    topic = TopicFacts(
        "t", (PartitionFacts(0, 1, 32, 0, 0, 0, 0),), smallest_bytes=32, largest_bytes=32
    )
    shown_text = text(Inspection("there", 0, False, (topic,)))
    assert shown_text.startswith(
        "t: 1 record, 32 B of keys and values, 1 partition, of 1970-01-01 00:00:00 UTC\n"
    )
    several = topic._replace(partitions=(PartitionFacts(0, 3, 96, 0, 2, 0, 0),))
    assert ", 1 partition, each of 32 B, of 1970" in text(Inspection("there", 0, False, (several,)))


def test_a_column_is_as_wide_as_its_widest_cell() -> None:
    assert table([("name", "n"), ("a", "12345")]) == [
        "  name      n",
        "  ----  -----",
        "  a     12345",
    ]
    texts = table([("n", "key"), ("a", "b"), ("c", "long key")], words=["key"])
    assert texts[2:] == ["  a  b", "  c  long key"]
