"""Foreign codecs, asked in batches: two versions of kio, and Apache Kafka's own classes.

Each runs in a process of its own and is asked once for everything. A `Question` is one message in
one version with several encodings; the answer holds, per encoding, the bytes that the foreign codec
writes after it has read ours, and, from kio, the values that it saw.
"""

import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.build_files import BUILD, required
from tests.support.java import java_command
from tests.support.reference_codec import MessageSpec

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 180

MESSAGES = "org.apache.kafka.common.message"
KAFKA_CLASSES = {
    "ControlRecordKey": f"{MESSAGES}.ControlRecordTypeSchema",
    "EndTxnMarker": f"{MESSAGES}.EndTxnMarker",
    "AbortedTxn": f"{MESSAGES}.AbortedTxn",
    "ConsumerProtocolSubscription": f"{MESSAGES}.ConsumerProtocolSubscription",
    "ConsumerProtocolAssignment": f"{MESSAGES}.ConsumerProtocolAssignment",
    "ProducerSnapshot": (
        "org.apache.kafka.server.log.remote.metadata.storage.generated.ProducerSnapshot"
    ),
}
"""Stored messages whose Kafka class is not in the package of their module."""

KAFKA_PACKAGES = {
    "stored.cluster_metadata": "org.apache.kafka.common.metadata",
    "stored.metadata_control": MESSAGES,
    "stored.remote_log_metadata": "org.apache.kafka.server.log.remote.metadata.storage.generated",
    "stored.share_snapshot": "org.apache.kafka.coordinator.share.generated",
    "stored.share_update": "org.apache.kafka.coordinator.share.generated",
    "stored.transaction_log": "org.apache.kafka.coordinator.transaction.generated",
}
"""Module → package of Kafka's classes; the others are in that of the group coordinator."""


class Question(NamedTuple):
    """One message in one version, encoded several times from different values."""

    spec: MessageSpec
    version: int
    values: list[dict[str, Any]]
    inputs: list[bytes]

    def __str__(self) -> str:
        return f"{self.spec} v{self.version}"


class Refusal(str):
    """The reason why a foreign codec refused an input."""

    __slots__ = ()


def ask_kio(release: str, questions: list[Question]) -> list[Any]:
    """Return for each question None if kio has no such schema, else a list of (values, bytes) or
    text.
    """
    cases = [(*_kio_name(release, q.spec), q.version, q.inputs) for q in questions]
    worker = Path(__file__).with_name("kio_worker.py")
    library = BUILD / f"kio-{release}"
    required(library / ".done")
    done = subprocess.run(
        [sys.executable, str(worker)],
        input=pickle.dumps(cases),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(library)},
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    answers: list[Any] = pickle.loads(done.stdout)  # our own worker's
    return answers


def _kio_name(release: str, spec: MessageSpec) -> tuple[str, str]:
    name = spec.module.split(".")[1]
    if spec.key is None:
        side = "key" if spec.class_name.endswith("Key") else "value"
        special = {
            "control_record_key": "control_record_type_schema",
            "control_record_value": "end_txn_marker",
        }
        return special.get(f"{name}_{side}", name), "data"
    if name == "list_config_resources" and release == "0.5.0":
        name = "list_client_metrics_resources"  # the same API before KIP-1142 renamed it
    return name, "request" if spec.class_name.endswith("Request") else "response"


def ask_kafka(jars: Path, questions: list[Question], *, before_4: bool) -> list[Any]:
    """Return for each question None if that Kafka lacks the class or version, else bytes or
    `Refusal`s.
    """
    stream = b"".join(
        _java_text(_kafka_class(question.spec, before_4=before_4))
        + struct.pack(">hi", _kafka_version(question, before_4=before_4), len(data))
        + data
        for question in questions
        for data in question.inputs
    )
    source = Path(__file__).parent / "java" / "MessageEcho.java"
    done = subprocess.run(
        java_command(jars, str(source)),
        input=stream + _java_text(""),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    position = 0
    answers: list[Any] = []
    for question in questions:
        outputs: list[Any] = []
        for _ in question.inputs:
            output, position = _java_answer(done.stdout, position)
            outputs.append(output)
        answers.append(None if None in outputs else outputs)
    return answers


def _java_text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _java_answer(data: bytes, position: int) -> tuple[bytes | Refusal | None, int]:
    (size,) = struct.unpack_from(">i", data, position)
    position += 4
    if size == -2:
        return None, position
    if size == -1:
        (size,) = struct.unpack_from(">H", data, position)
        end = position + 2 + size
        return Refusal(data[position + 2 : end].decode()), end
    return data[position : position + size], position + size


def _kafka_class(spec: MessageSpec, *, before_4: bool) -> str:
    name = spec.class_name
    if spec.key is not None:
        if before_4:
            name = name.replace("ListConfigResources", "ListClientMetricsResources")
        return f"{MESSAGES}.{name}Data"
    if name in KAFKA_CLASSES:
        return KAFKA_CLASSES[name]
    package = KAFKA_PACKAGES.get(spec.module, "org.apache.kafka.coordinator.group.generated")
    return f"{package}.{name}"


def _kafka_version(question: Question, *, before_4: bool) -> int:
    """Return the version for Kafka 4, which takes the number of a group's key for its type."""
    name = question.spec.class_name
    is_group_key = question.spec.key is None and name.endswith("Key") and name != "ControlRecordKey"
    return 0 if is_group_key and not before_4 else question.version
