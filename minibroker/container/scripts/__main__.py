"""The way from a script's name to its module: `python -m minibroker.container.scripts NAME …`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TextIO

from minibroker import __version__
from minibroker.cli.program import drop_rest
from minibroker.container.scripts.options import ScriptError, WordsError, help_of, parse
from minibroker.kafka.errors import ConfigError, KafkaError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MODULES: Final = {
    "cub": "waiting",
    "dub": "waiting",
    "kafka-broker-api-versions": "brokers",
    "kafka-cluster": "brokers",
    "kafka-configs": "configs",
    "kafka-console-consumer": "consumer",
    "kafka-console-producer": "producer",
    "kafka-consumer-groups": "groups",
    "kafka-get-offsets": "offsets",
    "kafka-topics": "topics",
    "nc": "waiting",
    "wait-for-port": "waiting",
}
_CLASSES: Final = {
    "kafka.tools.GetOffsetShell": "kafka-get-offsets",
    "org.apache.kafka.tools.GetOffsetShell": "kafka-get-offsets",
    "kafka.admin.TopicCommand": "kafka-topics",
    "org.apache.kafka.tools.TopicCommand": "kafka-topics",
    "kafka.admin.ConfigCommand": "kafka-configs",
    "kafka.admin.ConsumerGroupCommand": "kafka-consumer-groups",
}
"""Classes of `kafka-run-class CLASS …`."""
KAFKA_VERSION: Final = "3.9.1"
"""The release whose options and output the scripts have."""


def main(words: Sequence[str], out: TextIO = sys.stdout, errors: TextIO = sys.stderr) -> int:
    """Do `NAME WORDS…`; return the exit code."""
    name, *rest = words or [""]
    name = name.rpartition("/")[2].removesuffix(".sh")
    if name == "kafka-run-class" and rest:
        name = _CLASSES.get(rest.pop(0), name)
    module_name = _MODULES.get(name)
    if module_name is None:
        errors.write(f"{name}: not among the scripts of this image: {', '.join(_MODULES)}\n")
        return 1
    module = import_module(f"minibroker.container.scripts.{module_name}")
    if module_name == "waiting":
        return int(module.run(name, rest, out, errors))
    try:
        code = _run(name, module, rest, out, errors)
        out.flush()
    except BrokenPipeError:  # `… | head` has read enough
        drop_rest(out)
        return 1
    return code


def _run(name: str, module: Any, rest: list[str], out: TextIO, errors: TextIO) -> int:
    """Run a script; return its exit code. Raises BrokenPipeError: nobody reads `out` any more."""
    options = module.OPTIONS[name]
    page = help_of(name, module.DOES[name], options)
    try:
        words = parse(rest, options)
        if words.has("version"):
            out.write(f"{KAFKA_VERSION} (minibroker {__version__})\n")
            return 0
        if words.has("help"):
            out.write(page)
            return 0
        return int(module.run(name, words, out, errors))
    except WordsError as error:
        errors.write(f"{error}\n{page}")
    except ScriptError as error:
        errors.write(f"{error}\n")
    except KafkaError as error:
        errors.write(f"{name}: {error.detail or error.code.meaning}\n")
    except BrokenPipeError:
        raise
    except (OSError, ProtocolError, ConfigError) as error:
        errors.write(f"{name}: {error}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
