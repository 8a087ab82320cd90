"""`make docs`: write all pages of the site as Markdown files, with those made out of the code.

    python -m docs.site.pages build/docs

writes `pages/` and `mkdocs.yml` into that directory. An engine that reads MkDocs' configuration
makes the site from them and needs nothing of this repository, so it can be another one any day.
Made here are: what is served and known differences, metrics, permissions. `make generate` makes the
pages about the command line and the control API; they are in docs/.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from minibroker.broker.handlers.common.permissions import REQUEST_NEEDS
from minibroker.broker.handlers.registry import HANDLERS
from minibroker.control.families import families
from minibroker.kafka.protocol.api_keys import APIS
from minibroker.testing import Broker
from tests.compat.known_differences import KNOWN_DIFFERENCES
from tests.compat.verdict import AS_OURS, KAFKA_39, KAFKA_44, Difference
from tests.support.part_needs import PART_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minibroker.rig.node import Node

DOCS = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str]) -> int:
    """Write everything into the directory that the only argument names; return the exit code."""
    (name,) = arguments
    directory = Path(name)
    pages = directory / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("site", "__pycache__"))
    for path, content in (
        ("reference/compatibility.md", _compatibility_page()),
        ("reference/metrics.md", _metrics_page()),
        ("reference/permissions.md", _permissions_page()),
    ):
        (pages / path).write_text(content, encoding="utf-8")
    shutil.copy(DOCS / "site" / "mkdocs.yml", directory)
    return 0


def _permissions_page() -> str:
    """Return the table of the permissions that each API needs."""
    lines = [
        "# Permissions of every API",
        "",
        "With an authorizer a request needs these permissions, as in Apache Kafka.",
        "Without one of the whole request it is refused; without one of a part, that part is.",
        "",
        "| API | part | operation | resource |",
        "|---|---|---|---|",
    ]
    for key in sorted(REQUEST_NEEDS.keys() | PART_NEEDS.keys()):
        needs = [
            *((need, "the whole request") for need in REQUEST_NEEDS.get(key, ())),
            *((need, need.part) for need in PART_NEEDS.get(key, ())),
        ]
        for need, part in needs:
            operation, kind = need.operation.name, need.resource_type.name
            lines.append(f"| {APIS[key].name} | {part} | {operation} | {kind} |")
    return "\n".join(lines) + "\n"


def _metrics_page() -> str:
    """Return the table of the metrics."""
    lines = [
        "# Metrics",
        "",
        "Families of `/metrics` of the [control API](control-api.md), in Prometheus' text format.",
        "",
        "| metric | kind | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {kind} | {text} |" for name, kind, text in sorted(_metrics())]
    return "\n".join(lines) + "\n"


def _metrics() -> Iterator[tuple[str, str, str]]:
    """Yield name, kind and meaning of each family of a broker that has served a request."""
    with Broker(topics=["t"]) as broker:
        broker.produce("t", "x")
        text = broker.await_node(_families)
    texts: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, meaning = line.removeprefix("# HELP ").partition(" ")
            texts[name] = meaning
        elif line.startswith("# TYPE "):
            name, _, kind = line.removeprefix("# TYPE ").partition(" ")
            yield name, kind, texts[name]


async def _families(node: Node) -> str:
    return "".join(families(node.app))


def _compatibility_page() -> str:
    """Return the tables of APIs and of known differences."""
    lines = [
        "# Compatibility",
        "",
        "The same raw requests go to Apache Kafka 3.9.1, Apache Kafka 4.4.0 and minibroker.",
        "The decoded answers have to be equal. These are the APIs that are served, with the",
        "versions of Kafka 0.8 to 4.4, and the differences that are known.",
        "",
        "## APIs",
        "",
        "| key | API | versions |",
        "|---:|---|---|",
    ]
    for key in sorted(HANDLERS):
        api = APIS[key]
        lines.append(f"| {key} | {api.name} | {api.min_version} to {api.max_version} |")
    missing = ", ".join(api.name for key, api in sorted(APIS.items()) if key not in HANDLERS)
    lines += ["", f"Not served, and not advertised: {missing}.", "", *_differences()]
    return "\n".join(lines) + "\n"


def _differences() -> list[str]:
    """Return the table of known differences, each reason once for each scenario."""
    rows: dict[tuple[str, str], set[str]] = {}
    for line in KNOWN_DIFFERENCES:
        releases = rows.setdefault((line.scenario, line.reason), set())
        if isinstance(line, Difference):
            stated = {KAFKA_39: line.kafka_39, KAFKA_44: line.kafka_44}
            releases |= {release for release, value in stated.items() if value != AS_OURS}
        else:
            releases.add(line.lacked_by)
    lines = [
        "## Known differences",
        "",
        "Each line is proved by the tests: where it stops being true, they fail. Where the two",
        "Kafkas differ from each other, minibroker follows one of them.",
        "",
        "| dialogue | differs from | reason |",
        "|---|---|---|",
    ]
    for (scenario, reason), releases in sorted(rows.items()):
        lines.append(
            f"| {scenario.replace('_', ' ')} | {', '.join(sorted(releases))} |"
            f" {reason.replace('|', chr(92) + '|')} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
