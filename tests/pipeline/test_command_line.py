"""`minibroker pipeline …` as a person or a script runs it: a process, a terminal, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.pipeline import topics
from tests.pipeline.terminal import SECONDS, command, on_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_dry_run_shows_the_plan(minibroker_address: str, topic: str, tmp_path: Path) -> None:
    """It answers at once, because it needs no Spark; nothing is made."""
    topics.create(minibroker_address, topic, 3)
    topics.send(minibroker_address, topic, 7)
    example = tmp_path / "example.json"
    example.write_text('{"a": 1}')
    to = ("--bootstrap", minibroker_address, "--dry-run")
    for words, sentence in (
        (("archive", "--topic", topic, "--to", "./out", *to), "7 offsets, from the beginning"),
        (("archive", "--topic", topic, "--to", "s3a://lake/out", *to), "up to 7 offsets: how far"),
        (
            (
                *("rollup", "--topic", topic, "--window", "1m30s", "--agg", "count(*)"),
                *("--example", str(example), "--to", "./out", *to),
            ),
            "of 1 min 30 s, by record.timestamp",
        ),
    ):
        done = subprocess.run(
            command(*words),
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=SECONDS,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{words[0]} ")
        assert f"{topic} (3 partitions)" in done.stdout
        assert sentence in done.stdout
        assert done.stdout.endswith("nothing was done: --dry-run\n")
    assert [path.name for path in tmp_path.iterdir()] == ["example.json"]


def test_a_script_gets_lines_of_json_and_ctrl_c_ends_after_the_batch(
    minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """Reported batches are in the archive, and the next run repeats none.

    Spark's pages are served on 127.0.0.1 and on no other address of this machine. No batch starts
    `readlink`, which Hadoop would do for each file of a checkpoint.
    """
    topics.create(minibroker_address, topic)
    topics.send(minibroker_address, topic, 50)
    words = ("archive", "--topic", topic, "--to", str(tmp_path / "out"), "--follow", "--ui")
    calls_file = tmp_path / "asked"
    programs = program_that_tells("readlink", calls_file, tmp_path / "bin")
    with subprocess.Popen(
        command(*words, "--bootstrap", minibroker_address, "--master", "local[1]"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        starting = json.loads(process.stdout.readline())
        assert (starting["starting"], starting["brokers"]) == ("archive", minibroker_address)
        pages = json.loads(process.stdout.readline())["ui"]
        with urllib.request.urlopen(pages, timeout=SECONDS) as page:
            assert b"minibroker pipeline" in page.read()
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(pages.replace("127.0.0.1", "127.0.0.2"), timeout=SECONDS)
        first = json.loads(process.stdout.readline())
        assert (first["batch"], first["rows"], first["lag"]) == (0, 50, 0)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to Spark and its workers, too
        rest, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (130, "")
    assert [json.loads(line)["rows"] for line in rest.splitlines()] in ([], [0])
    assert (tmp_path / "out" / "_minibroker" / "checkpoint" / "commits" / "0").exists()
    assert not calls_file.exists(), calls_file.read_text()


def test_a_person_gets_one_line_and_a_last_sentence(
    minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    topics.create(minibroker_address, topic)
    topics.send(minibroker_address, topic, 50)
    words = ("archive", "--topic", topic, "--to", "out", "--bootstrap", minibroker_address)
    code, output = on_a_terminal(command(*words, "--master", "local[1]"), tmp_path)
    assert code == 0
    pieces = output.split("\r\x1b[K")
    assert pieces[0].endswith(f": asking {minibroker_address}, then starting Spark (local[1])\r\n")
    assert pieces[1:4] == ["asking the brokers", "starting Spark", "first batch"]
    assert re.fullmatch(r"50 rows  [\d,]+ rows/s  lag 0", pieces[4])
    assert re.fullmatch(r"50 records archived to out in .*\r\n", pieces[-1])


def test_no_java_is_one_sentence(minibroker_address: str, topic: str, tmp_path: Path) -> None:
    topics.create(minibroker_address, topic)
    done = subprocess.run(
        command("archive", "--topic", topic, "--to", "out", "--bootstrap", minibroker_address),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=SECONDS,
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["starting"] == "archive"
    assert done.stderr.startswith("minibroker pipeline archive: no Java: Spark needs Java 17")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def program_that_tells(name: str, log: Path, directory: Path) -> Path:
    """Return `directory`, with a program `name` in it that logs each call before its work."""
    directory.mkdir()
    script = directory / name
    script.write_text(f'#!/bin/sh\necho "$@" >>{log}\nexec {shutil.which(name)} "$@"\n')
    script.chmod(0o755)
    return directory
