"""The logs that a broker of Kafka 0.7 wrote, imported: every position finds its record.

`kafka_07/consumer.json` has the positions that its own consumer committed behind each message, and
the message that a fetch from each began with. `recovery.json` has where the broker cut the logs
with a damaged end on which it started.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from minibroker.cli.program import run_words
from minibroker.kafka.errors import CorruptionError
from minibroker.testing import Broker
from minibroker.tools.import_07.logs import (
    BrokerDirectory,
    LogNotes,
    messages_of,
    partition_logs,
)
from tests.support.logs_07 import BROKER, write_log

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGS: Final = Path(__file__).parent / "kafka_07"
RECORDED: Final = json.loads((LOGS / "consumer.json").read_text())
RECOVERED: Final = json.loads((LOGS / "recovery.json").read_text())
UNFINISHED: Final = ("torn-message", "torn-length", "zeros")
"""Ends that a power cut leaves."""
TOPICS: Final = ("plain", "packed", "nested", "old")


class Imported:
    """A broker with the records, and the table."""

    def __init__(self, broker: Broker, table: Path) -> None:
        self.broker = broker
        self.table = table

    def values(self, topic: str, partition: int) -> list[str]:
        """Return the values of a partition in the order of their offsets."""
        records = [each for each in self.broker.records(topic) if each.partition == partition]
        return [(each.value or b"").decode() for each in sorted(records, key=lambda r: r.offset)]

    def places(self, *positions: str) -> list[dict[str, Any]]:
        """Return what the program says about positions."""
        words = [word for position in positions for word in ("--position", position)]
        out = io.StringIO()
        run_words(["import-07", "--table", str(self.table), "--json", *words], out, io.StringIO())
        return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    table = tmp_path_factory.mktemp("import") / "table"
    with Broker() as broker:
        words = ["import-07", f"{BROKER}={LOGS}", "--table", str(table)]
        errors = io.StringIO()
        code = run_words([*words, "--bootstrap", broker.bootstrap], io.StringIO(), errors)
        assert (code, errors.getvalue()) == (0, "")
        yield Imported(broker, table)


@pytest.mark.parametrize("topic", TOPICS)
def test_the_records_are_the_messages(imported: Imported, topic: str) -> None:
    all_values = [value for value, _ in RECORDED[topic]["read"]]
    partitions = range(2 if topic == "plain" else 1)
    values = [imported.values(topic, partition) for partition in partitions]
    assert sorted(value for part in values for value in part) == sorted(all_values)
    for part in values:  # a consumer of 0.7 may change between partitions
        assert part == [value for value in all_values if value in part]
    assert {each.timestamp for each in imported.broker.records(topic)} == {-1}


@pytest.mark.parametrize("topic", TOPICS)
def test_every_committed_position_finds_the_next_record(imported: Imported, topic: str) -> None:
    next_values = RECORDED[topic]["next"]
    positions = [each for each in next_values if (LOGS / f"{topic}-{each[2]}").exists()]
    assert len(positions) >= len(RECORDED[topic]["read"]) // 2
    places = imported.places(*(f"{topic}/{position}" for position in positions))
    for position, place in zip(positions, places, strict=True):
        assert place["kind"] in ("message", "end")
        values = imported.values(topic, place["new_partition"])
        value = values[place["offset"]] if place["offset"] < len(values) else None
        assert value == next_values[position], position


def test_a_set_is_read_again_from_its_first_message(imported: Imported) -> None:
    """The consumer had read two of three messages in the set at 36 when it committed 36."""
    committed = {value: positions[0] for value, positions in RECORDED["packed"]["read"]}
    assert committed["packed 3"] == f"{BROKER}-0:36"
    (place,) = imported.places(f"packed/{committed['packed 3']}")
    assert imported.values("packed", 0)[place["offset"]] == "packed 2"


@pytest.mark.parametrize("topic", RECOVERED)
def test_a_damaged_end_begins_where_the_broker_cuts(topic: str, tmp_path: Path) -> None:
    """The broker drops all behind it. Here a write that was not finished goes, the rest is said."""
    recovered = RECOVERED[topic]
    write_log(tmp_path, "t-0", [bytes.fromhex(recovered["log"])])
    (log,) = partition_logs([BrokerDirectory(0, str(tmp_path))])
    cuts: list[int] = []

    class Notes(LogNotes):
        def torn(self, path: Path, at: int, size_bytes: int) -> None:
            cuts.append(at)

    if topic in UNFINISHED:
        assert [message.end for message in messages_of(log, Notes())] == [recovered["size_after"]]
        assert cuts == [recovered["size_after"]]
    else:
        with pytest.raises(CorruptionError, match=f"byte {recovered['size_after']}: "):
            list(messages_of(log, Notes()))
        assert cuts == []
