"""The records that this broker never writes, shown as Kafka's DumpLogSegments shows them.

They have every kind in every version, with random contents and bytes of Kafka 4.3.1's generated
classes; its tool and ours show them. (4.4.0 has one kind more.)
"""

from __future__ import annotations

import io
import json
import random
import re
import string
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.tools.dump_log import run_dump_log
from minibroker.verbs.dump_log import VERB
from tests.support.java import TOOLS_43, class_path, compiled, log_option
from tests.support.plans import plan_from
from tests.support.reference_codec import MessageSpec, covers, load_specs, present

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.java

METADATA = "org.apache.kafka.common.metadata."
REMOTE = "org.apache.kafka.server.log.remote.metadata.storage.generated."
SHARE = "org.apache.kafka.coordinator.share.generated."
CONTROL = "org.apache.kafka.common.message."
NEWEST = "UnregisterControllerRecord"
"""It came with 4.4."""
RUNS = 4
BITS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "int64": 63}


class OtherRecords:
    """The JVM: bytes for contents, and Kafka's tool."""

    def __init__(self) -> None:
        classes = compiled("OtherRecords", TOOLS_43)
        log4j = log_option("tools")
        path = class_path(TOOLS_43, classes=classes)
        self.process = subprocess.Popen(
            ["java", "-Xmx256m", "-Dfile.encoding=UTF-8", log4j, "-cp", path, "OtherRecords"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _tell(self, *words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\t".join(words) + "\n")
        self.process.stdin.flush()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"OtherRecords ended with {self.process.poll()}"
        return line

    def record(self, *words: str) -> Record:
        self._tell(*words)
        key, value = (None if word == "-" else bytes.fromhex(word) for word in self._line().split())
        return Record(0, 1_700_000_000_000, key, value)

    def dump(self, *words: str) -> str:
        self._tell("dump", *words)
        lines = []
        while (line := self._line()) != "done\n":
            lines.append(line)
        return "".join(lines)

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait(180)


@pytest.fixture(scope="module")
def kafka() -> Iterator[OtherRecords]:
    running = OtherRecords()
    yield running
    running.close()


def content_of(
    dice: random.Random, spec: MessageSpec, fields: list[dict[str, Any]], version: int
) -> dict[str, Any]:
    """Return a random content as JSON; tagged fields are there every other time."""
    return {
        camel(field["name"]): _value(dice, spec, field, version)
        for field in present(fields, version)
        if "tag" not in field or dice.random() < 0.5
    }


def camel(name: str) -> str:
    """Return Kafka's name of a field: `topic_id` → `topicId`."""
    return re.sub("_(.)", lambda match: match[1].upper(), name)


def _value(dice: random.Random, spec: MessageSpec, field: dict[str, Any], version: int) -> Any:
    if covers(field.get("nullable"), version) and dice.random() < 0.3:
        return None
    kind = field["type"]
    members = spec.members(field)
    if kind.startswith("[]"):
        item = {**field, "type": kind[2:], "nullable": None}
        return [_value(dice, spec, item, version) for _ in range(dice.randint(0, 3))]
    if members is not None:
        return content_of(dice, spec, members, version)
    if kind in BITS:
        low = 0 if kind == "uint16" else -1
        return dice.choice([low, 0, 1, dice.getrandbits(BITS[kind])])
    if kind == "bool":
        return dice.random() < 0.5
    if kind == "float64":
        return dice.choice([0.0, 0.25, 1024.0, 1e7, 123456789.5, 1e-5])
    if kind == "uuid":
        return "".join(dice.choices(string.ascii_letters + "_", k=21)) + "A"
    if kind == "bytes":
        return "AAEC/w==" if dice.random() < 0.5 else "AAE="
    return dice.choice(["", "orders", 'grün\u0001"\\', "x" * 200])


def write_log(directory: Path, records: list[Record], *, is_control: bool = False) -> str:
    """Write one batch for each record: gaps and sizes do not matter here."""
    path = directory / f"{0:020d}.log"
    content = b""
    for offset, record in enumerate(records):
        batch = build_batch([record], is_control=is_control)
        batch[:8] = offset.to_bytes(8, "big")
        content += batch
    path.write_bytes(content)
    return str(path)


def assert_same(kafka: OtherRecords, flag: str, path: str) -> str:
    output = io.StringIO()
    assert run_dump_log(plan_from(VERB, [flag, path]), output, io.StringIO()) == 0
    # Why something cannot be shown, each says in words of its own.
    mine, theirs = (
        re.sub(r"(?<=skipping\. ).*", "", text)
        for text in (output.getvalue(), kafka.dump(flag, "--files", path))
    )
    assert mine == theirs
    return mine


def specs_of(module: str) -> list[MessageSpec]:
    """Return the specs of a file of `protocol_specs/stored`, in order."""
    return [spec for spec in load_specs() if spec.module == f"stored.{module}"]


def framed(
    kafka: OtherRecords, specs: list[MessageSpec], package: str, constant: dict[str, int]
) -> list[Record]:
    dice = random.Random(7)
    records = []
    for spec in specs:
        for version in spec.versions:
            for _ in range(RUNS):
                content = content_of(dice, spec, spec.fields, version)
                content |= {name: value for name, value in constant.items() if name in content}
                name = package + spec.class_name
                records.append(kafka.record("framed", name, str(version), json.dumps(content)))
    return records


def test_metadata_of_a_kraft_controller(kafka: OtherRecords, tmp_path: Path) -> None:
    specs = [spec for spec in specs_of("cluster_metadata") if spec.class_name != NEWEST]
    records = framed(kafka, specs, METADATA, {})
    assert len(records) > 30 * RUNS
    output = assert_same(kafka, "--cluster-metadata-decoder", write_log(tmp_path, records))
    assert '"type":"REGISTER_BROKER_RECORD","version":4' in output
    assert "skipping" not in output


def test_metadata_of_tiered_storage(kafka: OtherRecords, tmp_path: Path) -> None:
    states = {"remoteLogSegmentState": 1, "remotePartitionDeleteState": 2}
    records = framed(kafka, specs_of("remote_log_metadata"), REMOTE, states)
    output = assert_same(kafka, "--remote-log-metadata-decoder", write_log(tmp_path, records))
    assert output.count("state=COPY_SEGMENT_FINISHED") >= RUNS
    assert "skipping" in output, "some are nonsense, by chance"


def test_states_of_share_groups(kafka: OtherRecords, tmp_path: Path) -> None:
    dice = random.Random(7)
    records = []
    for kind, module in enumerate(("share_snapshot", "share_update")):
        key, value = specs_of(module)
        for number in range(3 * RUNS):
            text = json.dumps(content_of(dice, value, value.fields, 0)) if number else "null"
            key_text = json.dumps(content_of(dice, key, key.fields, kind))
            names = (SHARE + value.class_name, SHARE + key.class_name)
            words = (names[0], "0", text, names[1], str(kind), key_text)
            records.append(kafka.record("keyed", *words))
    output = assert_same(kafka, "--share-group-state-decoder", write_log(tmp_path, records))
    assert "payload: <DELETE>" in output
    assert '"stateBatches":[{"firstOffset":' in output


def test_control_records_of_a_snapshot(kafka: OtherRecords, tmp_path: Path) -> None:
    dice = random.Random(7)
    records = []
    for kind, spec in enumerate(specs_of("metadata_control"), start=3):
        text = json.dumps(content_of(dice, spec, spec.fields, 0))
        records.append(kafka.record("control", str(kind), CONTROL + spec.class_name, text))
    path = write_log(tmp_path, records, is_control=True)
    output = assert_same(kafka, "--deep-iteration", path)
    assert 'SnapshotHeader {"version":' in output
