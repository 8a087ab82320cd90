"""The recorded outcome of each situation on three Apache Kafka 3.9.1, in `kafka-3.9.1.json`.

`make situations` plays everything on Kafka and on mixed clusters, and compares.
`MINIBROKER_RECORD=1 make situations` plays on Kafka and writes the file, with `ARGS='-k NAME'` one
situation of it. In `make test` Kafka plays only the situations of `BESIDE_KAFKA`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.compat_cluster.playing import Record

FILE: Final = Path(__file__).parent / "kafka-3.9.1.json"
IS_RECORDING: Final = os.environ.get("MINIBROKER_RECORD") == "1"
PLAYS_ALL_ON_KAFKA: Final = IS_RECORDING or os.environ.get("MINIBROKER_KAFKA_CLUSTER") == "1"

BESIDE_KAFKA: Final = frozenset(
    {
        "the_leader_is_killed",
        "a_follower_is_killed",
        "the_only_replica_is_killed",
        "min_insync_two_of_two_replicas",
        "the_preferred_leader_comes_back",
        "an_idempotent_producer_meets_a_new_leader",
        "a_partition_moves_to_other_brokers",
        "replicas_get_another_order",
        "elections_that_are_not_needed",
    }
)
"""Situations of two episodes that each run plays on Kafka too: the recording is still true."""


def load() -> dict[str, Record]:
    """Return the record of each situation."""
    records: dict[str, Record] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return records


def write(name: str, record: Record) -> None:
    """Replace the record of one situation in the file: a note a line, situations by name."""
    records = {**load(), name: record}
    situations = []
    for record_name in sorted(records):
        notes = ",\n".join(
            f"  {json.dumps(label)}: {json.dumps(value, sort_keys=True)}"
            for label, value in records[record_name].items()
        )
        situations.append(f" {json.dumps(record_name)}: {{\n{notes}\n }}")
    FILE.write_text("{\n" + ",\n".join(situations) + "\n}\n")
