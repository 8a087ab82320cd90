"""The command: writes what is stale, or only says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol_specs.codegen import __main__ as command

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The generator writes to a directory of the test's own."""
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "generate", lambda: {tmp_path / "sub" / "made.py": "text\n"})
    return tmp_path / "sub" / "made.py"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command's exit code."""
    monkeypatch.setattr("sys.argv", ["codegen", *arguments])
    return command.main()


def test_check_says_what_is_stale_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    assert run(monkeypatch, "--check") == 1
    assert capsys.readouterr().out == "stale sub/made.py\n"
    assert not elsewhere.exists()


def test_without_options_it_writes_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    assert run(monkeypatch) == 0
    assert elsewhere.read_text() == "text\n"
    assert run(monkeypatch) == 0
    assert run(monkeypatch, "--check") == 0
    assert capsys.readouterr().out == "wrote sub/made.py\n"


def test_freeze_adds_to_the_layouts(
    monkeypatch: pytest.MonkeyPatch, elsewhere: Path, tmp_path: Path
) -> None:
    (tmp_path / "layouts.json").write_text('{"Old": {"0": "kept"}}')
    monkeypatch.setattr(command, "SPECS", tmp_path)
    monkeypatch.setattr(command, "current_digests", lambda: {"New": {"0": "added"}})
    assert run(monkeypatch, "--freeze") == 0
    assert command.frozen_digests() == {"New": {"0": "added"}, "Old": {"0": "kept"}}
