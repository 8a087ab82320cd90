"""Verdicts of a registry on a pair, asked over its REST API; those that Apicurio gave.

`make registry-calls` asks Apicurio's registry again and writes `apicurio.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.compat_registry.pairs import Pair
from tests.support.registry_calls import RegistryAnswer, ask, posted

RECORDED: Final = Path(__file__).with_name("apicurio.json")
LEVELS: Final = {"backward": "BACKWARD", "forward": "FORWARD"}

Verdict = dict[str, bool | int | None]
"""Question → the answer, or the error's code.

`registered`: only if the old schema is refused. `same`: the new text is the old schema. `backward`:
the new schema reads data of the old one. `forward`: the old one reads data of the new one.
"""


def title(pair: Pair) -> str:
    """Return the name of a pair among all formats."""
    return f"{pair.kind}: {pair.name}"


def verdict(url: str, pair: Pair) -> Verdict:
    """Return what the registry at a URL says of a pair, with six calls."""
    subject = quote(title(pair), safe="")
    registered = ask(url, "POST", f"/subjects/{subject}/versions", posted(pair.old, pair.kind))
    if registered.status != 200:
        return {"registered": registered.code}
    lookup = ask(url, "POST", f"/subjects/{subject}", posted(pair.new, pair.kind))
    result: Verdict = {"same": lookup.status == 200}
    for name, level in LEVELS.items():
        configured = ask(url, "PUT", f"/config/{subject}", {"compatibility": level})
        assert configured.status == 200, configured
        path = f"/compatibility/subjects/{subject}/versions/latest?verbose=true"
        result[name] = _compatible(ask(url, "POST", path, posted(pair.new, pair.kind)))
    return result


def load() -> dict[str, Verdict]:
    """Return what Apicurio's registry said of each pair."""
    verdicts: dict[str, Verdict] = json.loads(RECORDED.read_text())
    return verdicts


def write(verdicts: dict[str, Verdict]) -> None:
    """Replace the file: a pair a line."""
    lines = (f" {json.dumps(name)}: {json.dumps(verdicts[name])}" for name in verdicts)
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _compatible(answer: RegistryAnswer) -> bool | int:
    if answer.status != 200:
        return answer.code
    return bool(answer.body["is_compatible"])
