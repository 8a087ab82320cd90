"""Seeds as their page shows them: its files are loaded, and its test passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.seeds.errors import SeedError
from minibroker.testing import Broker
from tests.support import readme
from tests.support.clients import confluent_consume
from tests.support.shell import run_command, serving

if TYPE_CHECKING:
    from pathlib import Path


def block(section: str, language: str) -> str:
    """Return the only block of a language in a section of the pages."""
    [text] = (
        block.text
        for block in readme.blocks()
        if (block.section, block.language) == (section, language)
    )
    return text


def page_lines() -> str:
    """Return the lines of the page, for a topic that no cleaner changes while a test looks."""
    return block("Lines of a seed", "json").replace("compact", "delete")


def test_the_pages_seed_and_test_in_python(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(block("Seeds", "yaml"))
    (tmp_path / "test_pasted.py").write_text(block("Seeds", "python"))
    options = "-q -W error -o asyncio_default_fixture_loop_scope=function -p no:cacheprovider"
    printed = run_command(f"python -m pytest {options}", tmp_path)
    assert "1 passed" in printed


def test_the_pages_sentence_about_a_wrong_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = block("Seeds", "yaml").replace("key: o-1\n", "key: o-1\n    partition: 7\n", 1)
    (tmp_path / "orders.yaml").write_text(text)
    with Broker() as broker, pytest.raises(SeedError) as caught:
        broker.load("orders.yaml")
    assert str(caught.value) == " ".join(block("Seeds", readme.SHELL).split())


def test_the_pages_lines(tmp_path: Path) -> None:
    (tmp_path / "orders.jsonl").write_text(page_lines())
    with Broker() as broker:
        assert broker.load(tmp_path / "orders.jsonl").records == {"orders": 3}
        assert broker.topics == {"orders": 3}
        assert broker.committed("billing") == {("orders", 0): 1}
        values = {record.value for record in broker.records("orders")}
        assert values == {b'{"id":1,"amount":12.5}', None, b"\x00\xff"}


def test_the_pages_seed_at_the_start(tmp_path: Path) -> None:
    seed = page_lines().replace('"value_base64": "AP8="', '"value": "text"')
    (tmp_path / "orders.jsonl").write_text(seed)
    serve = block("A seed at the start", readme.SHELL).strip()
    with serving(f"{serve} --listen 127.0.0.1:0", tmp_path) as address:
        assert len(confluent_consume(address, "orders", 3)) == 3


def test_the_pages_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its commands records the page's lines; address and settings are the test's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.jsonl").write_text(
        page_lines().replace('"amount": 12.5', '"email": "a@b", "card": {"number": 1}')
    )
    (tmp_path / "secret").write_text("a secret of sixteen bytes")
    commands = [block("Record a seed", readme.SHELL), *block("Record a seed", "text").splitlines()]
    with Broker(topics=["payments"]) as broker:
        broker.load("lines.jsonl")
        for number, command in enumerate(commands):
            words = command.split(" --kafka-config")[0].replace("broker:9092", broker.bootstrap)
            words = words.replace("-o orders", f"-o {number}-orders").strip()
            at = "" if "--bootstrap" in words else f" --bootstrap {broker.bootstrap}"
            skip = " --on-unmaskable skip" if "--mask" in words else ""
            run_command(words + at + skip, tmp_path)
    assert len(list(tmp_path.glob("*-orders*"))) == len(commands) == 5
