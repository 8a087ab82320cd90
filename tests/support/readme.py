"""The commands and blocks of code in README.md and docs/, by section.

Each is run by a test, or is in `NOT_RUN` with the reason. The name of a section is its heading, of
the first or the second level.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = (
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.parent.name != "decisions" and page.name != "architecture.md"
    ),
)
"""The pages for users; those about the code have no commands to type."""
GENERATED_PAGE: Final = ROOT / "docs" / "reference" / "command-line.md"
"""A page that is made; tests/unit/cli/test_program.py tries its commands."""
SHELL: Final = "shell"
TOP: Final = "Start it"
"""The section of README.md with the first commands."""

_NEEDS_DOCKER = (
    "needs a Docker daemon, which these tests do without; tests/integration/test_container.py runs "
    "what the image holds"
)
_RUNS_TESTS = "runs tests, or takes longer than all of them; here make is asked whether it can"

NOT_RUN: Final = {
    "minibroker serve [--listen HOST:PORT]": "all flags in one line, which is no command",
    "pip install": "needs a package registry; here the extra's name is looked up",
    "broker.id=0": "settings of Apache Kafka; tests/integration/test_kafka_takes_over.py has them",
    "minibroker serve --zookeeper": "needs a ZooKeeper: see test_zookeeper_kafka.py",
    "minibroker serve --config": "of a Kafka that was there: see test_kafka_takes_over.py",
    "password.encoder.secret=": "a setting of passwords; tests/integration/test_secrets.py has it",
    "sasl.mechanism.inter.broker.protocol=OAUTHBEARER": "settings; test_sasl_cluster.py has them",
    "delegation.token.secret.key=": "settings of tokens; the unit tests of tokens log in by one",
    "listeners=SASL_PLAINTEXT": "settings of Kafka; tests/support/sasl_dialogues.py has such",
    "sasl.enabled.mechanisms=OAUTHBEARER": "settings; test_signed_tokens.py has them",
    "KafkaServer {": "a JAAS file of a container; test_container.py has it",
    **dict.fromkeys(
        (
            *("python3 -m venv environment", "environment/bin/pip", "tar -C environment"),
            "minibroker pipeline archive --master spark:",
        ),
        "a Python for a cluster; tests/pipeline/test_standalone.py makes one and runs every job",
    ),
    "bootstrap.servers=broker.example": "settings of a client; tests/pipeline/test_secured.py",
    "security.protocol=SASL_SSL": "settings of a client; tests/pipeline/test_secured.py has such",
    "sasl.enabled.mechanisms=GSSAPI": "settings; test_kerberos.py has them",
    "listeners=PLAINTEXT://localhost:9092,TLS": "settings; test_altered_listeners.py runs them",
    "max.connections=": "settings; test_listener_limits.py alters them",
    "listeners=SSL": "settings of Kafka with files; tests/unit/broker/security has such",
    "broker.id=1": "settings of both kinds; tests/compat_cluster/moving.py writes them",
    "kafka-": "Apache Kafka's scripts; tests/compat_cluster runs the classes behind them",
    "curl --no-buffer": "goes on for ever; tests/unit/control/test_live.py reads such streams",
    "[pytest]": "a setting of pytest; tests/unit/testing/test_fixture_names.py has it",
    "- run: pytest --kafka-report": (
        "steps of a workflow; tests/unit/testing/test_failure_reports.py has the option"
    ),
    "the way of": "a drawing",
    "source <(minibroker completion": "tests/unit/verbs/test_completion.py asks real shells",
    "minibroker completion fish": "tests/unit/verbs/test_completion.py asks real shells",
    "log minibroker-data/": "a line of the log; tests/unit/broker/partitions has it",
    "minibroker pipeline archive --topic orders --to s3:": (
        "needs an object store; tests/pipeline/test_object_store.py has one"
    ),
    "tcpdump -i any": "captures as root; tests/unit/verbs/test_trace.py reads such a capture",
    "16:19:42.139 Produce": "lines that are printed",
    "minibroker trace: not recorded": "lines that are printed",
    "docker compose": _NEEDS_DOCKER,
    "export MINIBROKER_ALICE=": _NEEDS_DOCKER,
    "kcat -b localhost:9097": _NEEDS_DOCKER,
    "environment:": "variables of Kafka's images; test_container.py sets such",
    "docker build": _NEEDS_DOCKER,
    "docker run": _NEEDS_DOCKER,
    "var kafka = new KafkaContainer": _NEEDS_DOCKER,
    "from testcontainers.": _NEEDS_DOCKER,
    "container, err := kafka.Run": _NEEDS_DOCKER,
    "const { KafkaContainer }": _NEEDS_DOCKER,
    **dict.fromkeys(("make test", "make quick"), _RUNS_TESTS),
}
"""Start of a command or a block → the reason why no test runs it."""


class Block(NamedTuple):
    """Lines that stand apart from the prose."""

    section: str
    language: str
    """The language of a fenced block; `SHELL` for an indented one."""
    text: str


def blocks(pages: Iterable[Path] = PAGES) -> list[Block]:
    """Return all of these pages that are written by hand, in their order."""
    return [
        block for page in pages if page != GENERATED_PAGE for block in blocks_of(page.read_text())
    ]


def blocks_of(text: str) -> list[Block]:
    """Return those of one page."""
    all_blocks: list[Block] = []
    section, language, lines = TOP, "", list[str]()
    for line in [*text.splitlines(), ""]:
        if language not in ("", SHELL):
            if line == "```":
                all_blocks.append(Block(section, language, "\n".join(lines) + "\n"))
                language, lines = "", []
            else:
                lines.append(line)
        elif line.startswith("    ") or (language == SHELL and not line):
            language = SHELL
            lines.append(line[4:])
        else:
            if lines:
                all_blocks.append(Block(section, SHELL, "\n".join(lines).strip() + "\n"))
            language, lines = "", []
            if line.startswith(("# ", "## ")):
                section = line.lstrip("#").strip()
            elif line.startswith("```"):
                language = line[3:]
    return all_blocks


def commands(page_blocks: Iterable[Block]) -> list[str]:
    """Each command of shell blocks in one line, without the comment behind it."""
    text = "\n".join(block.text for block in page_blocks if block.language == SHELL)
    lines = re.sub(r"\s*\\?\n[ \t]+", " ", text).splitlines()  # indented: it goes on
    bare = (re.sub(r"(^|\s+)# .*", "", line).strip() for line in lines)
    return [line for line in bare if line]


def reason_not_to_run(text: str) -> str | None:
    """Return why no test runs a command or a block, None if one does."""
    for beginning, reason in NOT_RUN.items():
        if text.lstrip().startswith(beginning):
            return reason
    return None
