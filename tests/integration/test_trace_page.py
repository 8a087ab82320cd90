"""The page about conversations, its commands run on a capture of real clients."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient

from tests.support import readme
from tests.support.shell import run_command, serving
from tests.support.wire import WireClient

PAGE = readme.ROOT / "docs" / "how-to" / "trace.md"
SERVE = "--serve"
if TYPE_CHECKING:
    import pytest

CAPTURE = Path(__file__).parents[1] / "golden" / "captures" / "clients.pcap"


def answers_of(command: str, directory: Path) -> str:
    """Return the versions that a scripted broker answers; its port is a free one."""
    with serving(command.replace(":9092", ":0"), directory) as address:
        host, _, port = address.rpartition(":")
        with WireClient(host, int(port)) as client:
            return str(client.call("api_versions", 3, client_software_name="any")["api_keys"][0])


def read_metadata(bootstrap_servers: str) -> None:
    """Be the service of the example."""
    client = AdminClient({"bootstrap.servers": bootstrap_servers})
    assert client.list_topics("orders", timeout=60).topics["orders"].partitions


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(CAPTURE, tmp_path / "kafka.pcap")
    printed = {
        command: answers_of(command, tmp_path)
        if SERVE in command
        else run_command(command, tmp_path)
        for block in readme.blocks([PAGE])
        for command in readme.commands([block])
        if command.startswith("minibroker")
    }
    *printed_lines, seed, served = printed.values()
    first, page, svg, errors, slow, full, json_lines, dialogue = printed_lines
    assert page == svg == ""
    assert "gets orders-0" in (tmp_path / "rebalance.svg").read_text()
    assert "Conversation in kafka.pcap" in (tmp_path / "conversation.html").read_text()
    assert len(first.splitlines()) == 55
    assert "MEMBER_ID_REQUIRED" in errors
    assert "orders" in slow
    assert "assignment: orders-0 orders-1 orders-2" in full
    assert json_lines == ""
    assert dialogue.splitlines() == [line for line in first.splitlines() if " shop → " in line]
    monkeypatch.chdir(tmp_path)
    (example,) = (block for block in readme.blocks([PAGE]) if block.language == "python")
    space: dict[str, Any] = {"run_my_service": read_metadata}
    exec(example.text, space)
    space["test_the_service_survives_what_was_recorded"]()
    assert seed == ""
    assert (tmp_path / "records.jsonl").read_text().count('"value"') == 53
    assert "'max_version'" in served
