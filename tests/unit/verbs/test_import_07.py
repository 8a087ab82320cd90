"""`minibroker import-07`: logs into topics, the table, and the offsets of groups."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from minibroker.cli.errors import UsageError
from minibroker.tools.import_07 import importing
from minibroker.verbs.import_07 import VERB
from tests.support.logs_07 import GZIP, message, packed, write_log
from tests.support.plans import plan_from

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from minibroker.testing import Broker
    from tests.unit.verbs.conftest import Program, Ran

A, B, C = (message(text) for text in (b"a", b"bb", b"ccc"))
"""Messages of 11, 12 and 13 bytes."""


def import_logs(program: Program, directory: Path, *words: str) -> Ran:
    """Run an import of a directory; its table is beside the logs."""
    return program.run("import-07", str(directory), "--table", f"{directory}.table", *words)


def values(broker: Broker, topic: str) -> list[tuple[int, bytes | None]]:
    return [(record.partition, record.value) for record in broker.records(topic)]


def test_partitions_of_two_brokers_come_into_one_topic(
    program: Program, broker: Broker, tmp_path: Path
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    write_log(first, "two-brokers-1", [A])
    write_log(first, "two-brokers-0", [A, B], [C])
    write_log(second, "two-brokers-0", [B])
    table = str(tmp_path / "table")
    ran = program.run("import-07", f"8={first}", f"2={second}", "--table", table)
    assert (ran.code, ran.errors) == (0, "")
    assert ran.lines == [
        "two-brokers/2-0 is two-brokers-0: 1 record, 12 B",
        "two-brokers/8-0 is two-brokers-1: 3 records, 36 B",
        "two-brokers/8-1 is two-brokers-2: 1 record, 11 B",
    ]
    assert sorted(values(broker, "two-brokers")) == [
        *((0, b"bb"), (1, b"a"), (1, b"bb"), (1, b"ccc"), (2, b"a"))
    ]
    looked = program.run("import-07", "--table", table, "--position", "8-0:23")
    assert looked.lines == ["two-brokers/8-0:23 is offset 2 of two-brokers-1"]


def test_an_old_name_that_cannot_be_gets_another_one(
    program: Program, broker: Broker, tmp_path: Path
) -> None:
    write_log(tmp_path / "d", "page views-0", [A])
    write_log(tmp_path / "d", "other-0", [B])
    ran = import_logs(program, tmp_path / "d")
    assert (ran.code, "'page views' cannot be a topic" in ran.errors) == (2, True)
    ran = import_logs(program, tmp_path / "d", "--to-topic", "new-name")
    assert (ran.code, "--to-topic names one topic, and there are 2" in ran.errors) == (2, True)
    words = ("--topic", "page views", "--to-topic", "new-name", "--compression", "zstd")
    ran = import_logs(program, tmp_path / "d", *words)
    assert ran.lines == ["page views/0-0 is new-name-0: 1 record, 11 B"]
    assert values(broker, "new-name") == [(0, b"a")]


def test_a_topic_that_is_there_has_to_be_empty(
    program: Program, broker: Broker, tmp_path: Path
) -> None:
    """It gets the partitions that it lacks. Deleted records leave an empty topic, too."""
    broker.create_topic("had-records", partitions=1)
    broker.produce("had-records", ["x", "y"])
    write_log(tmp_path / "d", "had-records-0", [A, B])
    write_log(tmp_path / "d", "had-records-1", [C])
    ran = import_logs(program, tmp_path / "d")
    assert ran.code == 1
    assert "topic had-records has 2 records already" in ran.errors
    assert "minibroker topics --delete had-records" in ran.errors
    assert not (tmp_path / "d.table").exists()
    broker.call(lambda: broker._app_brokers()[0].partitions.get("had-records", 0).delete_records(2))
    assert import_logs(program, tmp_path / "d").code == 0
    words = ("--position", "0-0:11", "--position", "0-1:0")
    looked = program.run("import-07", "--table", f"{tmp_path}/d.table", *words)
    assert looked.lines == [
        "had-records/0-0:11 is offset 3 of had-records-0",
        "had-records/0-1:0 is offset 0 of had-records-1",
    ]
    again = import_logs(program, tmp_path / "d")
    assert (again.code, "d.table is there already" in again.errors) == (1, True)


def test_damage_ends_the_import_before_anything_is_made(
    program: Program, broker: Broker, tmp_path: Path
) -> None:
    write_log(tmp_path / "d", "damaged-0", [A, message(b"bb", crc=1), C, B[:5]])
    ran = import_logs(program, tmp_path / "d")
    assert ran.code == 1
    assert "00000000000000000000.kafka, byte 11: a message has CRC 0x00000001" in ran.errors
    assert program.run("topics", "damaged").code == 1
    ran = import_logs(program, tmp_path / "d", "--skip-damaged")
    assert ran.code == 0
    assert ran.errors.count("is left out") == 1
    assert ran.errors.count("was not written whole, at byte 36") == 1
    assert values(broker, "damaged") == [(0, b"a"), (0, b"ccc")]
    words = ("--position", "11", "--position", "23", "--position", "36")
    looked = program.run("import-07", "--table", f"{tmp_path}/d.table", *words)
    assert [line.split()[3] for line in looked.lines] == ["1", "1", "2"]


def test_large_messages_fit_a_new_topic_and_are_refused_by_a_small_one(
    program: Program, broker: Broker, tmp_path: Path
) -> None:
    write_log(tmp_path / "d", "large-0", [message(bytes(1_100_000)), A])
    broker.create_topic("small")
    ran = import_logs(program, tmp_path / "d", "--to-topic", "small")
    assert ran.code == 1
    assert "the largest message has 1100000 bytes: set it to 1100100 at least" in ran.errors
    assert values(broker, "small") == []
    assert import_logs(program, tmp_path / "d").code == 0
    assert [len(value or b"") for _, value in values(broker, "large")] == [1_100_000, 1]


def test_groups_of_a_file_are_committed(program: Program, broker: Broker, tmp_path: Path) -> None:
    write_log(tmp_path / "d", "read-0", [A, packed(GZIP, B, B), C])
    offsets = tmp_path / "offsets.txt"
    offsets.write_text(
        "/consumers/first/offsets/read/0-0:11\n/consumers/second/offsets/read/0-0:5\n"
        "/consumers/first/offsets/unknown/0-0:3\n/consumers/first/offsets/read/4-0:9\n"
    )
    ran = import_logs(program, tmp_path / "d", "--offsets", str(offsets))
    assert ran.code == 0
    assert ran.lines[1:] == [
        "group first: 1 partition committed",
        "group second: 1 partition committed",
    ]
    assert ran.errors.splitlines() == [
        "group second has position 5 of read/0-0: no message begins there; the group goes on at "
        "the one around it, offset 0",
        "group first has position 9 of read/4-0, which is not imported: nothing is committed for "
        "it",
    ]
    assert broker.committed("first") == {("read", 0): 1}
    assert broker.committed("second") == {("read", 0): 0}


def test_a_wrong_broker_of_a_directory_is_noticed(program: Program, tmp_path: Path) -> None:
    write_log(tmp_path / "d", "numbered-0", [A])
    offsets = tmp_path / "offsets.txt"
    offsets.write_text("/consumers/g/offsets/numbered/3-0:11\n")
    ran = import_logs(program, tmp_path / "d", "--offsets", str(offsets))
    assert ran.code == 2
    assert "positions of broker 3, and the directories are of broker 0" in ran.errors
    assert program.run("topics", "numbered").code == 1


def test_groups_may_be_committed_later(program: Program, broker: Broker, tmp_path: Path) -> None:
    """A group goes on reading 0.7 while its logs are imported; then its position has moved."""
    write_log(tmp_path / "d", "later-0", [A, B, C])
    assert import_logs(program, tmp_path / "d").code == 0
    offsets = tmp_path / "offsets.txt"
    offsets.write_text(
        "/consumers/late/offsets/later/0-0:23\n/consumers/other/offsets/later/0-0:11\n"
    )
    words = ("--table", f"{tmp_path}/d.table", "--offsets", str(offsets))
    ran = program.run("import-07", *words, "--group", "late")
    assert (ran.code, ran.lines) == (0, ["group late: 1 partition committed"])
    assert broker.committed("late") == {("later", 0): 2}
    assert program.run("groups", "other").code == 1
    ran = program.run("import-07", *words, "--group", "nobody")
    assert (ran.code, "group nobody has no position in later" in ran.errors) == (1, True)


def test_a_group_with_members_is_refused_and_the_import_stays(
    program: Program, broker: Broker, tmp_path: Path
) -> None:
    write_log(tmp_path / "d", "busy-0", [A])
    offsets = tmp_path / "offsets.txt"
    offsets.write_text("/consumers/busy/offsets/busy/0-0:11\n/consumers/quiet/offsets/busy/0-0:0\n")
    broker.create_topic("elsewhere")
    member = program.start("consume", "elsewhere", "--group", "busy", "--follow")
    try:
        assert program.run("wait", "--group", "busy", "--members", "1", "--timeout", "1m").code == 0
        ran = import_logs(program, tmp_path / "d", "--offsets", str(offsets))
    finally:
        member.terminate()
        member.communicate(timeout=60)
    assert ran.code == 1
    assert ran.lines[1:] == ["group quiet: 1 partition committed"]
    assert "the offsets of 1 group are not committed: busy (it has members" in ran.errors
    assert values(broker, "busy") == [(0, b"a")]
    words = ("--table", f"{tmp_path}/d.table", "--offsets", str(offsets))
    again = program.run("import-07", *words, "--group", "busy")
    assert again.lines == ["group busy: 1 partition committed"]
    assert broker.committed("busy")["busy", 0] == 1


def test_somebody_else_who_writes_is_noticed(
    program: Program, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "d", "shared-0", [A])
    prepare = importing.prepare_topics

    def prepare_and_write(client, targets):  # type: ignore[no-untyped-def]
        offsets = prepare(client, targets)
        broker.produce("shared", ["foreign"])
        return offsets

    monkeypatch.setattr(importing, "prepare_topics", prepare_and_write)
    ran = import_logs(program, tmp_path / "d")
    assert ran.code == 1
    assert "shared-0 ends at offset 2, expected 1: somebody else wrote to it" in ran.errors
    assert not (tmp_path / "d.table").exists()


@pytest.mark.parametrize("adds_segment", [False, True])
def test_a_broker_of_07_that_still_writes_is_noticed(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adds_segment: bool
) -> None:
    topic = f"growing-{adds_segment}"
    log = write_log(tmp_path / "d", f"{topic}-0", [A])
    prepare = importing.prepare_topics

    def prepare_and_grow(client, targets):  # type: ignore[no-untyped-def]
        name = f"{len(A):020d}.kafka" if adds_segment else f"{0:020d}.kafka"
        with (log / name).open("ab") as file:
            file.write(B)
        return prepare(client, targets)

    monkeypatch.setattr(importing, "prepare_topics", prepare_and_grow)
    ran = import_logs(program, tmp_path / "d")
    assert ran.code == 1
    assert f"{topic}-0 has changed meanwhile" in ran.errors
    assert not (tmp_path / "d.table").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing is to be done"),
        (["d", "e"], "several directories need the ids of their brokers: 0=DIR 1=DIR"),
        (["1=d", "1=e"], "several directories need the ids"),
        (["d", "--position", "5"], "--position looks up"),
        (["--position", "x/5"], "--position 'x/5': expected a position in bytes"),
        (["--json", "--zookeeper", "127.0.0.1:1"], "--json needs --position"),
        (["d", "--zookeeper", "/kafka"], "--zookeeper '': expected HOST:PORT"),
        (["d", "--group", "g"], "--group needs --zookeeper or --offsets"),
        (["--offsets", "f", "--topic", "t"], "--topic needs a log directory"),
        (["d", "--zookeeper", "z:1", "--offsets", "f"], "--zookeeper and --offsets do not go"),
    ],
)
def test_options_that_do_not_go_together(words: Sequence[str], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_from(VERB, words)
    assert sentence in str(caught.value)


def test_a_position_names_its_partition_unless_there_is_one(
    program: Program, tmp_path: Path
) -> None:
    write_log(tmp_path / "d", "many-0", [A])
    write_log(tmp_path / "d", "many-1", [A])
    assert import_logs(program, tmp_path / "d").code == 0
    table = ("import-07", "--table", f"{tmp_path}/d.table")
    several = program.run(*table, "--position", "0")
    assert (several.code, "(many/0-0, many/0-1)" in several.errors) == (1, True)
    unknown = program.run(*table, "--position", "5-0:0")
    assert (unknown.code, "no such partition: it has many/0-0" in unknown.errors) == (1, True)
    inside = program.run(*table, "--position", "0-1:5")
    assert inside.code == 1
    assert inside.lines == [
        "many/0-1:5 is inside of a message: the one around it begins at 0 (offset 0), the next one "
        "at 11 (offset 1)"
    ]


def test_a_kill_leaves_no_table_and_the_next_import_says_what_to_do(
    program: Program, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("killed")
    write_log(tmp_path / "d", "killed-0", [message(bytes(1_000)) for _ in range(5_000)])
    with broker.faults.add("Produce", hold=True, skip=1) as fault:
        process = program.start("import-07", f"{tmp_path}/d", "--table", f"{tmp_path}/d.table")
        fault.wait()
        broker.wait_for("killed", 1)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert not (tmp_path / "d.table").exists()
    ran = import_logs(program, tmp_path / "d")
    assert ran.code == 1
    assert "records already, as after an import that was killed: delete it" in ran.errors
    assert program.run("topics", "killed", "--delete").code == 0
    assert import_logs(program, tmp_path / "d").code == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["d.table"]
