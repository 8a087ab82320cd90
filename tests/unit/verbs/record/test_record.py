"""`minibroker record`: a topic in files is the topic, its committed records, and nothing else."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from minibroker.cli.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE
from minibroker.cli.program import run_words
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.seeds import encoding
from minibroker.testing import Broker
from minibroker.verbs.record import shared_encoder
from minibroker.verbs.streams import ProgressLine
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from minibroker.rig.topic_records import TopicRecord

SECRET = "0123456789abcdef"
WHEN = 1_795_262_400_000
CONFIG = {"message.max.bytes": 8 << 20, "log.retention.ms": -1}
FORMS = ("seed.jsonl", "seed")
"""Names of outputs: JSON lines, and a directory of segment files."""


@pytest.fixture(scope="module")
def sources() -> Iterator[Broker]:
    with Broker(config=CONFIG) as broker:
        yield broker


@pytest.fixture
def source(sources: Broker, monkeypatch: pytest.MonkeyPatch) -> Broker:
    monkeypatch.setenv("MINIBROKER_MASK_SECRET", SECRET)
    sources.reset()
    return sources


@pytest.fixture(scope="module")
def targets() -> Iterator[Broker]:
    with Broker(config=CONFIG) as broker:
        yield broker


@pytest.fixture
def target(targets: Broker) -> Broker:
    targets.reset()
    return targets


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new directory, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(source: Broker, *words: str) -> tuple[int, str]:
    """Run the verb; return its exit code and what it wrote."""
    errors = io.StringIO()
    words = ("record", *words, "--bootstrap", source.bootstrap)
    code = run_words(words, io.StringIO(), errors)
    return code, errors.getvalue()


def record(source: Broker, path: Path, *words: str) -> str:
    """Record a topic `t`; return what the verb wrote."""
    code, facts = run(source, "t", "-o", str(path), *words)
    assert code == EXIT_OK, facts
    return facts


def contents(records: list[TopicRecord]) -> list[tuple[object, ...]]:
    """Return everything of records but their offsets."""
    return [(r.partition, r.timestamp, r.key, r.value, r.headers) for r in records]


def lines_in(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("form", FORMS)
def test_recorded_and_loaded_records_are_the_same(
    tmp_path: Path, source: Broker, target: Broker, form: str
) -> None:
    source.create_topic("t", 3, {"compression.type": "gzip", "segment.ms": 77_000})
    odd = [None, "", 'a\0\n\x1b\u2028"\\', b"\xff\x00\xfe", '{"a":1}', '{"a": 1}', '{"a":1.50}']
    odd += ['{"a":1,"a":2}', "[1,2]", '["\\ud800"]', '{"a":"\u00fc\u2028"}', "{", "17", "null"]
    odd += ["x" * (5 << 20), '{"n":123456789012345678901234567890}', '{"n":-0}', '{"n":NaN}']
    headers = [("h", b"1"), ("h", None), ("", b"\xff"), ("\u00fc", b""), ("h", b"1")]
    for number, value in enumerate(odd):
        key = "k" if number == 0 else value if number % 2 else b"\xffkey"
        source.produce(
            "t",
            value,
            key=key if len(key or "") < 100 else "k",
            headers=headers if number % 3 else (),
            partition=number % 3,
            timestamp=WHEN + number,
        )
    facts = record(source, tmp_path / form)
    assert f"{len(odd)} records of 1 topic in {tmp_path / form}" in facts
    target.load(tmp_path / form)
    assert target.topics == {"t": 3}
    assert contents(target.records("t")) == contents(source.records("t"))
    configs = target.call(
        lambda: dict(target._app_brokers()[0].cluster.image.configs["topics"]["t"])
    )
    assert configs == {
        "compression.type": "gzip",
        "segment.ms": "77000",
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }


@pytest.mark.parametrize("form", FORMS)
def test_records_of_transactions_count_when_they_are_committed(
    tmp_path: Path, source: Broker, target: Broker, form: str
) -> None:
    source.create_topic("t")
    settings = {"bootstrap.servers": source.bootstrap, "linger.ms": 0}
    producers = {
        name: Producer({**settings, "transactional.id": name}) for name in ("a", "b", "open")
    }
    for name, producer in producers.items():
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("t", f"{name} 1")
        producer.flush(10)
    producers["b"].abort_transaction(10)
    producers["a"].commit_transaction(10)
    record(source, tmp_path / form)
    # The last stable offset is before the open transaction.
    producers["open"].commit_transaction(10)
    record(source, tmp_path / f"later-{form}")
    for name, expected in ((form, [b"a 1"]), (f"later-{form}", [b"a 1", b"open 1"])):
        target.reset()
        target.load(tmp_path / name)
        assert [r.value for r in target.records("t", isolation="read_committed")] == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_compacted_topic_is_recorded_with_its_gaps(
    tmp_path: Path, source: Broker, target: Broker, form: str
) -> None:
    with Broker(topics=["t:1:cleanup.policy=compact"]) as compacted:
        for number in range(6):
            compacted.produce("t", f"v{number}", key=f"k{number % 2}", timestamp=WHEN)
        compacted.produce("t", None, key="k0", timestamp=WHEN)
        compacted.clock.advance(minutes=5)  # the cleaner begins after a moment without records
        wait_until(lambda: len(compacted.records("t")) < 4, "t-0 is compacted")
        record(compacted, tmp_path / form)
        records = contents(compacted.records("t"))
    target.load(tmp_path / form)
    assert contents(target.records("t")) == records


@pytest.mark.parametrize("form", FORMS)
def test_the_brokers_time_is_kept_in_the_files(tmp_path: Path, source: Broker, form: str) -> None:
    source.create_topic("t", 1, {"message.timestamp.type": "LogAppendTime"})
    source.produce("t", "a", timestamp=5)
    record(source, tmp_path / form)
    [appended] = source.records("t")
    assert appended.timestamp > WHEN - 10**12
    with Broker(topics=["plain"]) as broker:
        if form == "seed.jsonl":
            assert lines_in(tmp_path / form)[1]["timestamp"] == appended.timestamp
        else:
            (tmp_path / form / "topics.jsonl").unlink()
            broker.load(tmp_path / form)
            assert broker.records("t")[0].timestamp == appended.timestamp


@pytest.mark.parametrize("form", FORMS)
def test_times_and_last_offsets_choose_records(
    tmp_path: Path, source: Broker, target: Broker, form: str
) -> None:
    for number in range(10):
        source.produce("t", str(number), timestamp=WHEN + 1000 * number)
    since, until = str(WHEN + 3000), str(WHEN + 7000)
    for words, expected in (
        (("--since", since, "--until", until), b"3456"),
        (("--last", "3"), b"789"),
        (("--last", "3", "--until", str(WHEN + 8000)), b"7"),
        (("--since", since, "--last", "100"), b"3456789"),
    ):
        target.reset()
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}-{form}"
        record(source, path, *words)
        target.load(path)
        assert b"".join(r.value or b"" for r in target.records("t")) == expected


def test_a_batch_is_cut_where_the_recording_begins(
    tmp_path: Path, source: Broker, target: Broker
) -> None:
    batch = build_batch([Record(n, WHEN, b"k", b"%d" % n) for n in range(10)], codec="gzip")
    logs = tmp_path / "logs" / "t-0"
    logs.mkdir(parents=True)
    (logs / "00000000000000000000.log").write_bytes(batch)
    source.load(logs.parent)
    record(source, tmp_path / "seed", "--last", "4")
    [path] = (tmp_path / "seed" / "t-0").iterdir()
    assert path.name == "00000000000000000006.log"
    target.load(tmp_path / "seed")
    assert [r.value for r in target.records("t")] == [b"6", b"7", b"8", b"9"]


def test_whole_batches_are_kept_as_they_are(tmp_path: Path, source: Broker) -> None:
    batch = build_batch([Record(n, WHEN, b"k", b"%d" % n) for n in range(10)], codec="zstd")
    logs = tmp_path / "logs" / "t-0"
    logs.mkdir(parents=True)
    (logs / "00000000000000000000.log").write_bytes(batch)
    source.load(logs.parent)
    record(source, tmp_path / "seed")
    log_bytes = (tmp_path / "seed" / "t-0" / "00000000000000000000.log").read_bytes()
    assert (
        log_bytes[16:] == batch[16:]
    )  # but for offset and leader epoch, which its broker has written


def test_processes_make_the_same_file(
    tmp_path: Path, source: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.create_topic("t", 3)
    for partition in range(3):
        values = [{"id": number, "card": f"{number:016d}"} for number in range(300)]
        source.produce("t", values, key="k", partition=partition, timestamp=WHEN)
    words = ("--mask", "card=hash", "--sample", "50%")
    record(source, tmp_path / "one.jsonl", *words)
    monkeypatch.setattr(shared_encoder, "SHARED_FROM", 1)
    monkeypatch.setattr(shared_encoder.os, "sched_getaffinity", lambda _: {0, 1, 2})
    record(source, tmp_path / "three.jsonl", *words)
    assert (tmp_path / "three.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def test_masks_change_keys_values_and_headers(tmp_path: Path, source: Broker) -> None:
    value = {"email": "a@b.example", "card": "4111111111111111", "items": [{"sku": "x"}]}
    source.produce("t", value, key="k", headers={"user": "u"}, timestamp=WHEN)
    rules = "email=null, card=last4, items.sku=fixed:s, key=mask, headers.user=drop, phone?=hash"
    record(source, tmp_path / "s.jsonl", "--mask", rules)
    line = lines_in(tmp_path / "s.jsonl")[1]
    masked = {"email": None, "card": "************1111", "items": [{"sku": "s"}]}
    assert (line["key"], line["value"], "headers" in line) == ("x", masked, False)
    record(source, tmp_path / "selected.jsonl", "--select", "items.sku")
    assert lines_in(tmp_path / "selected.jsonl")[1]["value"] == {"items": [{"sku": "x"}]}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--mask", "crd=hash"), "--mask crd=hash: no record has crd (did you mean card?)"),
        (("--select", "crd"), "--select crd: no record has crd (did you mean card?)"),
        (("--mask", "card=hash"), "record t-0 offset 1 is not written: its value cannot be masked"),
    ],
)
def test_records_that_cannot_be_masked_leave_no_file(
    tmp_path: Path, source: Broker, form: str, words: tuple[str, ...], sentence: str
) -> None:
    source.produce("t", {"card": "1"})
    if words[1] == "card=hash":
        source.produce("t", "no JSON")
    code, facts = run(source, "t", "-o", str(tmp_path / form), *words)
    assert (code, sentence in facts) == (EXIT_FAILED, True), facts
    assert list(tmp_path.iterdir()) == []


def test_records_that_cannot_be_masked_may_be_left_out(tmp_path: Path, source: Broker) -> None:
    source.produce("t", ["no JSON", {"card": "1234"}])
    facts = record(source, tmp_path / "s.jsonl", "--mask", "card=mask", "--on-unmaskable", "skip")
    assert [line.get("value") for line in lines_in(tmp_path / "s.jsonl")] == [
        None,
        {"card": "nnnn"},
    ]
    assert "1 record could not be masked" in facts


def test_a_record_that_is_too_long_for_a_line_is_named(
    tmp_path: Path, source: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "LINE_BYTES_MAX", 1 << 20)
    source.produce("t", ["small", "\0" * 200_000, "small"])
    code, facts = run(source, "t", "-o", str(tmp_path / "s.jsonl"))
    assert (code, "record t-0 offset 1 is a line of more than 1 MB" in facts) == (
        EXIT_FAILED,
        True,
    )
    record(source, tmp_path / "segments")


def test_a_sample_is_the_same_in_every_run(tmp_path: Path, source: Broker) -> None:
    source.create_topic("t", 2)
    for number in range(200):
        source.produce("t", str(number), key=f"k{number % 20}", timestamp=WHEN)
    names = ("a.jsonl", "b.jsonl", "by-key.jsonl")
    for name in names[:2]:
        record(source, tmp_path / name, "--sample", "25%")
    record(source, tmp_path / names[2], "--sample", "25%", "--sample-by", "key")
    first, second, by_key = (lines_in(tmp_path / name)[1:] for name in names)
    assert first == second
    assert 20 < len(first) < 80
    assert len(by_key) == 10 * len({line["key"] for line in by_key})


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("-o", "s.jsonl"), EXIT_USAGE, "TOPIC is missing: for instance orders"),
        (("t",), EXIT_USAGE, "--output is missing: for instance --output orders.jsonl"),
        (("absent", "-o", "s.jsonl"), EXIT_FAILED, "there is no topic absent"),
        (("t", "-o", "t.yaml"), EXIT_FAILED, "-o t.yaml: expected a file that ends in .jsonl"),
        (("t", "-o", "a/b/c"), EXIT_FAILED, "-o a/b/c cannot be made: No such file"),
        (("t", "-o", "there.jsonl"), EXIT_FAILED, "-o there.jsonl exists: remove it, or give"),
        (("t", "-o", "s", "--sample-by", "key"), EXIT_USAGE, "--sample-by has no effect without"),
        (("t", "-o", "s", "--since", "soon"), EXIT_USAGE, "--since 'soon' is no moment"),
        (("t", "-o", "s", "--last", "0"), EXIT_USAGE, "--last"),
    ],
)
def test_wrong_words_are_a_sentence_and_no_file(
    directory: Path, source: Broker, words: tuple[str, ...], code: int, sentence: str
) -> None:
    source.create_topic("t")
    (directory / "there.jsonl").touch()
    ended, facts = run(source, *words)
    assert (ended, sentence in facts) == (code, True), facts
    assert [path.name for path in directory.iterdir()] == ["there.jsonl"]


def test_a_hash_without_a_secret_is_refused(
    tmp_path: Path, source: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MINIBROKER_MASK_SECRET")
    source.produce("t", {"card": "1"})
    code, facts = run(source, "t", "-o", str(tmp_path / "s"), "--mask", "card=hash")
    assert (code, "a hash needs a secret" in facts) == (EXIT_FAILED, True)


@pytest.mark.parametrize("form", FORMS)
def test_ctrl_c_leaves_nothing(
    tmp_path: Path, source: Broker, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    source.produce("t", ["a", "b"])
    monkeypatch.setattr(ProgressLine, "show", interrupt)
    code, facts = run(source, "t", "-o", str(tmp_path / form))
    assert (code, facts) == (EXIT_INTERRUPTED, "minibroker record: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_progress_is_for_a_terminal(tmp_path: Path, source: Broker) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    source.produce("t", ["a", "b"])
    terminal = Terminal()
    words = ("record", "t", "-o", str(tmp_path / "s.jsonl"), "--bootstrap", source.bootstrap)
    assert run_words(words, io.StringIO(), terminal) == EXIT_OK
    assert terminal.getvalue().startswith("\r\x1b[K100 %, ")
    assert "\r" not in record(source, tmp_path / "quiet.jsonl")
