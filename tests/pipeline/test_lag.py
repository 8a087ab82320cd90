"""`lag` beside a broker: looks, ages, a checkpoint, metrics, a terminal. No Spark and no Java."""

from __future__ import annotations

import io
import json
import shlex
import signal
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from minibroker.cli.program import run_words
from minibroker.client import groups as wire_groups
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.kafka.reader_lag import LagReader
from tests.pipeline import topics
from tests.pipeline.terminal import command, on_a_terminal
from tests.support import readme

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.testing import Broker

pytestmark = [pytest.mark.timeout(300)]

SECONDS = 180.0


@pytest.fixture
def read_topic(minibroker_address: str, topic: str) -> str:
    """Return a topic of two partitions with 50 records, of which group `of-<topic>` has read 35."""
    topics.create(minibroker_address, topic, 2, topics.FOR_EVER)
    client = topics.producer(minibroker_address)
    for number in range(50):
        client.produce(topic, b"x", partition=number % 2, timestamp=1_700_000_000_000 + number)
    assert client.flush(SECONDS) == 0
    commit(minibroker_address, topic, {0: 25, 1: 10})
    return topic


def commit(address: str, topic: str, offsets: dict[int, int], group: str | None = None) -> None:
    reader = Consumer({"bootstrap.servers": address, "group.id": group or f"of-{topic}"})
    positions = [TopicPartition(topic, *place) for place in offsets.items()]
    reader.commit(offsets=positions, asynchronous=False)
    reader.close()


def look(*words: str) -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    return run_words(["pipeline", "lag", *words], out, errors), out.getvalue(), errors.getvalue()


def test_a_script_gets_one_look(minibroker_address: str, read_topic: str) -> None:
    group = f"of-{read_topic}"
    to = ("--bootstrap", minibroker_address, "--once", "--age")
    for chosen in (("--group", group), ("--group-pattern", f"o.-{read_topic}")):
        code, out, errors = look(*to, *chosen)
        assert (code, errors) == (0, "")
        (row,) = json.loads(out)["readers"]
        assert (row["name"], row["state"], row["lag"]) == (group, "empty", 15)
        assert [
            (part["offset"], part["end"], part.get("oldest_ms")) for part in row["partitions"]
        ] == [(25, 25, None), (10, 25, 1_700_000_000_021)]
    assert json.loads(look(*to, "--topic", "no-such-topic", "--group", group)[1])["lag"] == 0


def test_one_look_has_the_ages_of_two_groups_in_one_partition(
    minibroker_address: str, read_topic: str
) -> None:
    commit(minibroker_address, read_topic, {1: 5}, f"second-{read_topic}")
    groups = f"of-{read_topic},second-{read_topic}"
    _, out, _ = look("--bootstrap", minibroker_address, "--once", "--age", "--group", groups)
    oldest = {
        reader["name"].partition("-")[0]: reader["partitions"][-1].get("oldest_ms")
        for reader in json.loads(out)["readers"]
    }
    assert oldest == {"of": 1_700_000_000_021, "second": 1_700_000_000_011}


def test_all_groups_but_those_of_sinks_are_looked_at(
    minibroker_address: str, read_topic: str
) -> None:
    names = [reader.name for reader in LagReader(Kafka(minibroker_address)).read()]
    assert f"of-{read_topic}" in names
    assert not [name for name in names if name.startswith("minibroker-sink-")]


def test_a_group_that_is_not_there_is_named(minibroker_address: str) -> None:
    code, _, errors = look("--bootstrap", minibroker_address, "--group", "nobody", "--once")
    assert (code, "there is no group 'nobody'" in errors) == (1, True)


def test_too_many_groups_are_refused_before_they_are_asked_for(
    minibroker_address: str, read_topic: str
) -> None:
    with pytest.raises(PipelineError, match="0 are asked for at most: choose some"):
        LagReader(Kafka(minibroker_address), groups=[f"of-{read_topic}"], groups_max=0).read()


def test_groups_are_asked_for_some_at_a_time(
    address: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them has a member. Kafka and minibroker list them alike."""
    monkeypatch.setattr(wire_groups, "AT_ONCE", 2)
    topics.create(address, topic)
    topics.send(address, topic, 5)
    for number in range(5):
        commit(address, topic, {0: number}, f"{topic}-{number}")
    member = Consumer({"bootstrap.servers": address, "group.id": f"{topic}-0"})
    member.subscribe([topic])
    while not member.assignment():
        member.poll(0.1)
    groups = LagReader(Kafka(address), pattern=f"{topic}-.").read()
    member.close()
    assert [(group.state, group.lag) for group in groups] == [
        ("stable", 5),
        *(("empty", lag) for lag in (4, 3, 2, 1)),
    ]


def test_a_coordinator_that_starts_is_waited_for_and_one_that_moved_is_found(
    in_process: Broker, read_topic: str
) -> None:
    reader = LagReader(Kafka(in_process.bootstrap), groups=[f"of-{read_topic}"])
    with (
        in_process.faults.add("ListGroups", error="COORDINATOR_LOAD_IN_PROGRESS", times=2),
        in_process.faults.add("OffsetFetch", error="NOT_COORDINATOR", times=2),
    ):
        assert [group.lag for group in reader.read()] == [15]
    with in_process.faults.add("OffsetFetch", error="GROUP_ID_NOT_FOUND", times=1):
        assert reader.read() == [], "it is gone by now"
    with (
        in_process.faults.add("OffsetFetch", error="GROUP_AUTHORIZATION_FAILED", times=1),
        pytest.raises(PipelineError, match="not to be had: GROUP_AUTHORIZATION_FAILED: group of-"),
    ):
        reader.read()


def test_a_job_is_as_far_as_its_last_committed_batch(
    minibroker_address: str, read_topic: str, tmp_path: Path
) -> None:
    """A batch that was begun and not committed does not count."""
    checkpoint = tmp_path / "_minibroker" / "checkpoint"
    for directory in ("offsets", "commits"):
        (checkpoint / directory).mkdir(parents=True)
    for batch, offset in ((0, 5), (1, 25)):
        position = json.dumps({read_topic: {"0": offset, "1": offset}})
        (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{position}")
    (checkpoint / "commits" / "0").write_text("v1\n{}")
    code, out, errors = look(
        "--bootstrap", minibroker_address, "--checkpoint", str(tmp_path), "--once"
    )
    assert (code, errors) == (0, "")
    (row,) = json.loads(out)["readers"]
    assert (row["name"], row["state"], row["lag"]) == (str(tmp_path), "checkpoint", 40)


def test_a_watch_goes_on_and_serves_metrics(minibroker_address: str, read_topic: str) -> None:
    group = f"of-{read_topic}"
    section = [block for block in readme.blocks() if block.section == "Watching lag"]
    _, typed = readme.commands(section)
    words = command(
        *shlex.split(typed.replace(":9308", ":0").replace("15s", "100ms"))[2:],
        *("--bootstrap", minibroker_address, "--group", group),
    )
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("metrics are at ").strip()
        assert json.loads(process.stdout.readline())["lag"] == 15
        commit(minibroker_address, read_topic, {1: 25})
        while json.loads(process.stdout.readline())["lag"]:
            pass
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            text = answer.read().decode()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (130, "")
    labels = f'{{consumergroup="{group}",partition="1",topic="{read_topic}"}}'
    assert f"kafka_consumergroup_lag{labels} 0.0\n" in text
    assert f"kafka_consumergroup_current_offset{labels} 25.0\n" in text
    assert all(json.loads(line)["lag"] == 0 for line in rest.splitlines())


def test_a_person_gets_a_table(minibroker_address: str, read_topic: str, tmp_path: Path) -> None:
    section = [block for block in readme.blocks() if block.section == "Watching lag"]
    typed, _ = readme.commands(section)
    to = ("--bootstrap", minibroker_address, "--group", f"of-{read_topic}", "--once")
    code, output = on_a_terminal(command(*shlex.split(typed)[2:], *to), tmp_path)
    assert code == 0
    lines = output.splitlines()
    assert lines[0].endswith("UTC  lag 15 offsets  1 of 1 behind")
    assert lines[2].split()[:5] == ["reader", "state", "topic", "parts", "lag"]
    assert lines[4].split()[3:7] == ["2", "15", "-", "-"]


def test_neither_spark_nor_java_is_needed(minibroker_address: str) -> None:
    code = (
        "import sys; from minibroker.cli import main; "
        f"main(['pipeline', 'lag', '--once', '--bootstrap', '{minibroker_address}']); "
        "print([m for m in sys.modules if m.split('.')[0] in ('pyspark', 'pyarrow')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    assert done.stdout.endswith("[]\n")
