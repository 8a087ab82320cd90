"""The ready file: whole, and never written through a name that somebody else has made."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from minibroker.broker.ready_file import write_ready_file

LINE = "minibroker listening on 127.0.0.1:1\n"


def test_it_takes_the_place_of_an_older_file(tmp_path: Path) -> None:
    file = tmp_path / "ready"
    for lines in (LINE, LINE * 2):
        write_ready_file(str(file), lines)
        assert file.read_text() == lines
    assert [path.name for path in tmp_path.iterdir()] == ["ready"]


@pytest.mark.parametrize("name", ["ready", "ready.part"])
def test_a_link_of_somebody_else_is_not_followed(tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (tmp_path / name).symlink_to(precious)
    write_ready_file(str(tmp_path / "ready"), LINE)
    assert precious.read_text() == "kept"
    assert (tmp_path / "ready").read_text() == LINE
    assert not (tmp_path / "ready").is_symlink()


def test_a_link_to_nowhere_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "ready").symlink_to(tmp_path / "elsewhere")
    write_ready_file(str(tmp_path / "ready"), LINE)
    assert not (tmp_path / "elsewhere").exists()
    assert (tmp_path / "ready").read_text() == LINE


def test_a_pipe_gets_the_lines(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    lines: list[str] = []
    reader = Thread(target=lambda: lines.append(pipe.read_text()))
    reader.start()
    write_ready_file(str(pipe), LINE)
    reader.join(60)
    assert lines == [LINE]


def test_a_pipe_of_another_user_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if os.geteuid() == 0:
        os.chown(pipe, 1, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: pipe.stat().st_uid + 1)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OSError, match="it is no pipe of this user"):
        write_ready_file(str(pipe), LINE)
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_a_name_that_cannot_be_taken_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "ready").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_ready_file(str(tmp_path / "ready"), LINE)
    assert [path.name for path in tmp_path.iterdir()] == ["ready"]
