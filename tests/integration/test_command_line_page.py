"""The page about the command line, its commands run as a user types them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.support import readme
from tests.support.shell import run_command, serving

if TYPE_CHECKING:
    from pathlib import Path

VERBS = re.compile(r"minibroker (topics|produce|consume|groups|wait)\b")
SERVE = "minibroker serve --listen 127.0.0.1:0"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def commands(section: str) -> list[str]:
    return readme.commands([block for block in readme.blocks() if block.section == section])


def run_section(section: str, directory: Path, address: str) -> list[str]:
    """Return the output of each command of a section, at another address."""
    return [
        run_command(VERBS.sub(rf"minibroker \1 --bootstrap {address}", command), directory)
        for command in commands(section)
    ]


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    with serving(f"{SERVE} --memory", tmp_path) as address:
        records = run_section("Records on the command line", tmp_path, address)
        created, production, table, last, seed, again, tombstone, described = records
        assert created == "orders is made\n"
        assert (production, seed, again, tombstone) == ("", "", "", "")
        assert sorted(table.splitlines()) == ["o-1\tpaid", "o-2\topen"]
        assert re.fullmatch(rf"(\d:\d {TIME} o-\d = (paid|open)\n)+", last)
        assert (tmp_path / "orders.jsonl").read_text().count('"value": "') == 2
        assert "  retention.ms=600000\n" in described
        values = run_command(f"minibroker consume orders --bootstrap {address}", tmp_path)
        assert sorted(values.split()) == ["NULL", "open", "open", "paid", "paid"]

        groups = run_section("Groups on the command line", tmp_path, address)
        values_read, groups_listed, view, dry, reset = groups
        assert sorted(values_read.split()) == sorted(values.split())
        assert re.search(r"billing +Empty +0 +0\n", groups_listed)
        assert "billing: Empty, no members" in view
        assert dry.endswith("nothing is committed: leave --dry-run out\n")
        assert re.search(r"orders +\d +\d +0\n", reset)

        run_command(f"minibroker consume orders -g billing --bootstrap {address}", tmp_path)
        *quiet, failed = run_section("Waits in a script", tmp_path, address)
        assert [*quiet, failed] == ["", "", "", "not yet\n"]


def test_a_secured_broker_is_reached_with_three_words(tmp_path: Path) -> None:
    secured = "--security SASL_SSL --user alice:secret"
    with serving(f"{SERVE} --topic orders {secured}", tmp_path) as address:
        _, listing = commands("Secured brokers")
        assert secured in listing
        assert "orders" in run_command(f"{listing} --bootstrap {address}", tmp_path)
        (tmp_path / "client.properties").write_text(
            f"bootstrap.servers={address}\nsecurity.protocol=SASL_SSL\n"
            "sasl.mechanisms=PLAIN\nsasl.username=alice\nsasl.password=secret\n"
            "ssl.ca.location=minibroker-data-tls/ca.pem\n"
        )
        printed = run_command(
            "echo one | minibroker produce orders --kafka-config client.properties && "
            "minibroker consume orders --kafka-config client.properties",
            tmp_path,
        )
        assert printed == "one\n"
