"""Records what Apache Avro's Java 1.12.0 says of schemas; it comes with `make registry`.

    python -m tests.golden.record_avro

Asks again all of `avro.json`: `texts` (schemas that the last one refers to, and the last one: its
text, null for an error) and `pairs` (reader, writer: reasons, null for an error). To add a case,
add it there without an answer.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.build_files import required
from tests.support.java import SOURCES
from tests.support.registry import APICURIO

RECORDED = Path(__file__).with_name("avro.json")


def ask(lines: list[list[str]]) -> list[list[str] | None]:
    """Return the columns of each answer, None for an error."""
    required(APICURIO / ".done")
    done = subprocess.run(
        ["java", "-cp", f"{APICURIO}/lib/*", str(SOURCES / "AvroSchemas.java")],
        input="".join("\t".join(columns) + "\n" for columns in lines),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        check=True,
    )
    answers = [answer.split("\t") for answer in done.stdout.split("\n")[:-1]]
    assert len(answers) == len(lines)
    return [answer[1:] if answer[0] == "ok" else None for answer in answers]


def main() -> None:
    """Ask all, and write what was said."""
    cases: dict[str, list[dict[str, Any]]] = json.loads(RECORDED.read_text())
    texts = ask([["text", *case["schemas"]] for case in cases["texts"]])
    for case, answer in zip(cases["texts"], texts, strict=True):
        case["text"] = None if answer is None else answer[0]
    pairs = ask([["pair", case["reader"], case["writer"]] for case in cases["pairs"]])
    for case, answer in zip(cases["pairs"], pairs, strict=True):
        case["reasons"] = answer
    RECORDED.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
