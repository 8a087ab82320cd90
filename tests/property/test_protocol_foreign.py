"""Guard: foreign codecs read our bytes and write bytes that we read, for every message and version.

Two ages of kio (0.5.0 knows what Kafka 3.9 speaks, 0.6.5 the newer versions) and Apache Kafka's own
message classes (3.9.1 and 4.4.0). Each gets our bytes, must understand all of them, and must write
the same bytes again; kio's values must be ours. Ours then reads the foreign bytes back.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.protocol.primitives import Reader
from tests.support.foreign_codecs import Question, Refusal, ask_kafka, ask_kio
from tests.support.java import KAFKA_39, KAFKA_44
from tests.support.message_bytes import body_of
from tests.support.protocol_values import ValueMaker, class_of, to_dict, to_object
from tests.support.reference_codec import covers, load_specs, present

if TYPE_CHECKING:
    from tests.support.reference_codec import MessageSpec

VALUES_EACH = 3

# Versions that only an early-access build of 3.9 had; 4.x gave the same number to another layout.
KNOWN_DIFFERENCES = {
    "ReadShareGroupStateSummaryResponse v0": "Kafka 3.9's unreleased draft had no leader_epoch yet"
}

# Messages that no kio has; Kafka's own classes check them below.
UNKNOWN_TO_KIO = {
    "ApiVersions": {5},
    "TxnOffsetCommit": {6},
    "DeleteGroups": {3},
    "StreamsGroupHeartbeat": {1},
    "StreamsGroupDescribe": {1},
    "StreamsGroupTopologyDescriptionUpdate": {0},
    "UnregisterController": {0},
}
"""Messages that are new in Kafka 4.4, after kio 0.6.5. Stored records are not in kio either."""

STORED_IN_KIO = {
    "ControlRecordKey",
    "EndTxnMarker",
    "ConsumerProtocolSubscription",
    "ConsumerProtocolAssignment",
}


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    """Return every message in every version, with values that all codecs accept."""
    all_questions = []
    for spec in load_specs():
        for version in spec.versions:
            values = [ValueMaker(spec, n, tame=True).message(version) for n in range(VALUES_EACH)]
            all_questions.append(
                Question(spec, version, values, [written(spec, v, version) for v in values])
            )
    return all_questions


@pytest.fixture(scope="module")
def kio_answers(questions: list[Question]) -> dict[str, list[Any]]:
    """Return the answers of both versions of kio."""
    releases = ("0.5.0", "0.6.5")
    with ThreadPoolExecutor() as pool:  # each waits for a process of its own
        return dict(zip(releases, pool.map(ask_kio, releases, [questions] * 2), strict=True))


@pytest.fixture(scope="module")
def kafka_answers(questions: list[Question]) -> dict[str, list[Any]]:
    """Return the answers of both Kafkas."""
    return {
        "3.9.1": ask_kafka(KAFKA_39, questions, before_4=True),
        "4.4.0": ask_kafka(KAFKA_44, questions, before_4=False),
    }


def written(spec: MessageSpec, value: dict[str, Any], version: int) -> bytes:
    """Return the bytes that the generated class writes for a value."""
    return body_of(to_object(spec, value), version)


def in_order(spec: MessageSpec, value: dict[str, Any], version: int) -> list[Any]:
    """Return a value as kio shows it: fields as a list in order, nil uuids as None."""
    return _in_order(spec, spec.fields, value, version)


def _in_order(
    spec: MessageSpec, fields: list[dict[str, Any]], value: dict[str, Any], version: int
) -> list[Any]:
    problems = []
    for field in present(fields, version):
        item = value[field["name"]]
        members = spec.members(field)
        if members is not None and item is not None:
            many = isinstance(item, list)
            parts = [_in_order(spec, members, part, version) for part in (item if many else [item])]
            item = parts if many else parts[0]
        problems.append(item)
    return problems


def nil_as_none(value: Any) -> Any:
    """Return None for the nil uuid, as kio does."""
    if isinstance(value, list):
        return [nil_as_none(item) for item in value]
    return None if value == bytes(16) else value


@pytest.mark.parametrize("release", ["0.5.0", "0.6.5"])
def test_kio_reads_and_writes_the_same_bytes(
    release: str, questions: list[Question], kio_answers: dict[str, list[Any]]
) -> None:
    count, wrong = 0, []
    for question, answers in zip(questions, kio_answers[release], strict=True):
        if answers is None or (release == "0.5.0" and str(question) in KNOWN_DIFFERENCES):
            continue
        count += 1
        for value, data, answer in zip(question.values, question.inputs, answers, strict=True):
            problem = problem_with(question, value, data, answer)
            if problem:
                wrong.append(f"{question}: {problem}")
    assert not wrong, "\n".join(wrong[:20])
    assert count > 500


def problem_with(question: Question, value: dict[str, Any], data: bytes, answer: Any) -> str:
    """Return the fault of one answer of kio, empty if there is none."""
    if isinstance(answer, str):
        return answer
    read_value, output = answer
    spec, version = question.spec, question.version
    if output != data:
        return f"ours {data[:120]!r}, kio's {output[:120]!r}"
    if nil_as_none(in_order(spec, value, version)) != nil_as_none(read_value):
        return f"we wrote {value}, kio saw {read_value}"
    if to_dict(spec, class_of(spec).read(Reader(output), version), version) != value:
        return "we read kio's bytes otherwise"
    return ""


def test_messages_unknown_to_kio_are_listed(
    questions: list[Question], kio_answers: dict[str, list[Any]]
) -> None:
    values: dict[str, set[int]] = {}
    for question, old, new in zip(questions, *kio_answers.values(), strict=True):
        if old is None and new is None:
            name = question.spec.class_name
            if question.spec.key is None:
                assert name not in STORED_IN_KIO, name
                continue
            values.setdefault(name.removesuffix("Request").removesuffix("Response"), set()).add(
                question.version
            )
    assert values == UNKNOWN_TO_KIO


@pytest.mark.java
@pytest.mark.parametrize("release", ["3.9.1", "4.4.0"])
def test_kafka_reads_and_writes_the_same_bytes(
    release: str, questions: list[Question], kafka_answers: dict[str, list[Any]]
) -> None:
    count, wrong = 0, []
    for question, outputs in zip(questions, kafka_answers[release], strict=True):
        if outputs is None or (release == "3.9.1" and str(question) in KNOWN_DIFFERENCES):
            continue
        count += 1
        for data, output in zip(question.inputs, outputs, strict=True):
            if isinstance(output, Refusal):
                wrong.append(f"{question}: {output}")
            elif output != data:
                wrong.append(f"{question}: ours {data[:120]!r}, Kafka's {output[:120]!r}")
    assert not wrong, "\n".join(wrong[:20])
    assert count > 550


@pytest.mark.java
def test_every_message_and_version_is_known_to_one_kafka(
    questions: list[Question], kafka_answers: dict[str, list[Any]]
) -> None:
    unknown = [
        str(question)
        for question, *answers in zip(questions, *kafka_answers.values(), strict=True)
        if answers == [None, None]
    ]
    assert unknown == []


def test_nullable_ranges_lie_within_their_fields() -> None:
    """The values above try null wherever a spec allows it; specs allow nothing more."""
    for spec in load_specs():
        for version in spec.versions:
            for field in spec.fields:
                nullable = covers(field.get("nullable"), version)
                assert not nullable or covers(field.get("versions", "0+"), version), (spec, field)
