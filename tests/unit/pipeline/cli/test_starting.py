"""A command before its job: the line that it starts with, the file of its page."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from minibroker.cli.parser import parse
from minibroker.pipeline.cli import page_file
from minibroker.pipeline.cli.interrupting import ctrl_c_sets, when_set
from minibroker.pipeline.command_line import announce
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.options.declaration import Arguments
from minibroker.pipeline.verbs.table import VERBS

if TYPE_CHECKING:
    from pathlib import Path


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def of(words: str) -> Arguments:
    name, *rest = words.split()
    return VERBS[name].arguments(parse(VERBS[name], rest))


ARCHIVE = "archive --topic a --to x --bootstrap h:1 --kafka sasl.password=secret --catalog a=b"
ARCHIVE += " --table n.t --format iceberg --master local[2]"


def test_a_script_gets_a_line_of_json() -> None:
    out, errors = io.StringIO(), io.StringIO()
    announce(of(ARCHIVE), out, errors)
    assert json.loads(out.getvalue()) == {
        "starting": "archive",
        "options": ["--to x", "--topic a", "--format iceberg", "--catalog a=…", "--table n.t"],
        "brokers": "h:1",
        "master": "local[2]",
    }
    assert errors.getvalue() == ""


def test_a_person_gets_a_sentence() -> None:
    out, errors = Terminal(), Terminal()
    announce(of("replay --from x --to-topic a"), out, errors)
    assert out.getvalue() == (
        "replay --from x --to-topic a: asking 127.0.0.1:9092, then starting Spark (local[*])\n"
    )
    assert errors.getvalue() == ""


def test_the_one_answer_of_a_verb_stays_alone_on_stdout() -> None:
    out, errors = io.StringIO(), io.StringIO()
    announce(of("compare orders ./archive"), out, errors)
    assert out.getvalue() == ""
    assert errors.getvalue().startswith("compare orders ./archive: asking 127.0.0.1:9092, then ")


def test_files_of_a_broker_are_read_without_one() -> None:
    out, errors = io.StringIO(), io.StringIO()
    announce(of("inspect --log-dir x --bootstrap h:1"), out, errors)
    assert errors.getvalue() == "inspect --log-dir x: starting Spark (local[*])\n"


def test_a_verb_without_spark_starts_nothing() -> None:
    out, errors = io.StringIO(), io.StringIO()
    announce(of("lag --once"), out, errors)
    announce(of("maintain --to x"), out, errors)
    assert out.getvalue() + errors.getvalue() == ""


def test_the_first_ctrl_c_asks_and_the_second_one_ends() -> None:
    stop = threading.Event()
    old_handler = signal.getsignal(signal.SIGINT)
    with ctrl_c_sets(stop):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(60)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012  it comes when Python looks
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(60)
    assert signal.getsignal(signal.SIGINT) is old_handler


def test_a_call_is_made_once_the_end_is_asked_for() -> None:
    stop, is_called = threading.Event(), threading.Event()
    with when_set(stop, is_called.set):
        assert not is_called.is_set()
        stop.set()
        assert is_called.wait(60)


def test_a_page_is_written_where_it_can_be(tmp_path: Path) -> None:
    path = str(tmp_path / "page.html")
    page_file.check(None)
    page_file.check(path)
    page_file.write(path, "<p>ä</p>")
    assert (tmp_path / "page.html").read_bytes() == "<p>ä</p>".encode()


def test_the_sentence_names_the_page_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"nowhere/page\.html cannot be written: its dir"):
        page_file.check(str(tmp_path / "nowhere" / "page.html"))
    with pytest.raises(PipelineError, match=f"{tmp_path} cannot be written: Is a directory"):
        page_file.write(str(tmp_path), "")


def test_a_page_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with path.open() as reader:
        page_file.write(str(path), "new")
        assert (reader.read(), path.read_text()) == ("old", "new")
    assert list(tmp_path.iterdir()) == [path]
